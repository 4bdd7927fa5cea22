"""Text in blocks: plain or gzip, with a bound on how much a small file may become.

Inflating goes through `zlib.decompressobj` with a limit on each piece of output, so that memory
never depends on what the compressed data claim or how repetitive they are.
"""

from __future__ import annotations

import codecs
import os
import stat
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from dpsvi.errors import CorpusFormatError

BLOCK = 4 << 20  # bytes of text handled at a time
MAX_RATIO = 200  # natural corpora compress about 4x; deflate's limit is 1032x
MAX_BYTES = 64 << 30
FREE_BYTES = 1 << 20  # text below this size is harmless whatever its ratio
MAX_LINE = 64 << 20  # an LDA-C line holds a whole document

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_FORMAT = 16 + zlib.MAX_WBITS  # header, checksum and length verified by zlib


class StreamError(ValueError):
    """The bytes cannot be turned into text; the caller knows the line and adds it."""


def expansion_limit(compressed: int, max_bytes: int | None) -> int:
    """Bytes that ``compressed`` bytes may become: ``max_bytes``, or 200 times as many."""
    if max_bytes is not None:
        return max_bytes
    return min(max(MAX_RATIO * compressed, FREE_BYTES), MAX_BYTES)


def text_limit(path: str | PathLike, max_bytes: int | None = None) -> int:
    """Most bytes of text that the file can hold, without reading it."""
    size = Path(path).stat().st_size
    return expansion_limit(size, max_bytes) if _is_gzip(path) else size


def read_blocks(path: str | PathLike, max_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the text of a plain or gzip file in blocks of at most `BLOCK` bytes.

    Parameters
    ----------
    path : str or Path
        What is inside, not the suffix, decides whether it is gzip.
    max_bytes : int or None
        Largest size of the inflated text; default 200 times the compressed size, at most 64 GiB.

    Raises
    ------
    StreamError
        The gzip data are damaged, cut short, or grow beyond ``max_bytes``.
    CorpusFormatError
        It is a pipe or a device.
    """
    if _is_gzip(path):
        yield from _inflate(path, text_limit(path, max_bytes))
        return
    with open(path, "rb") as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def read_lines(
    path: str | PathLike, encoding: str = "utf-8", max_bytes: int | None = None
) -> list[str]:
    """All lines of a plain or gzip file, without their ends and without a byte-order mark.

    Parameters and errors are those of :func:`read_text`.
    """
    return lines_of(read_text(path, encoding, max_bytes))


def lines_of(text: str) -> list[str]:
    """Its lines, without their ends; one that is empty where there is no text."""
    # Only "\n" ends a line: str.splitlines would also cut at rare characters inside words.
    return text.removesuffix("\n").split("\n")


def read_text(path: str | PathLike, encoding: str = "utf-8", max_bytes: int | None = None) -> str:
    """All of a plain or gzip file, without a byte-order mark.

    Parameters
    ----------
    path, max_bytes
        As in :func:`read_blocks`.
    encoding : str

    Raises
    ------
    CorpusFormatError
        ``file:line: reason`` for bytes not in `encoding`, and for damaged gzip data.
    """
    try:
        data = b"".join(read_blocks(path, max_bytes))
    except StreamError as error:
        raise CorpusFormatError.at(path, 1, error) from error
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"not {encoding} ({error.reason}); give another encoding"
        raise CorpusFormatError.at(path, line, reason) from error
    return text.removeprefix(codecs.BOM_UTF8.decode("utf-8"))


class LineReader:
    """Lines of a text file: the first ones singly, then the rest in blocks of whole lines.

    Parameters
    ----------
    path : str or Path
    max_bytes : int or None
        As in `read_blocks`.

    Attributes
    ----------
    line : int
        Number of the last line read, from 1. Whoever consumes `blocks` keeps it up to date, so
        that an error in the stream below can name the line.
    """

    def __init__(self, path: str | PathLike, max_bytes: int | None = None):
        self.path = path
        self.line = 0
        self._pending = b""
        self._blocks = read_blocks(path, max_bytes)

    def readline(self) -> bytes:
        """Return the next line without its end, or b"" after the last one."""
        while b"\n" not in self._pending and self._extend():
            pass
        text, _, self._pending = self._pending.partition(b"\n")
        self.line += 1
        return text

    def blocks(self) -> Iterator[bytes]:
        """Yield the remaining text; every block ends with the end of a line."""
        while True:
            cut = self._pending.rfind(b"\n") + 1
            if cut:
                whole, self._pending = self._pending[:cut], self._pending[cut:]
                yield whole
            if not self._extend():
                break
        if self._pending:
            yield self._pending + b"\n"

    def _extend(self):
        if len(self._pending) > MAX_LINE:
            raise self._error(f"a line of more than {MAX_LINE} bytes")
        try:
            block = next(self._blocks, b"")
        except StreamError as error:
            raise self._error(error) from error
        self._pending += block
        return bool(block)

    def _error(self, reason):
        return CorpusFormatError.at(self.path, self.line + 1, reason)


def _refuse_pipe(path):
    """To look whether it is gzip takes the first bytes of what can be read only once."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # open has an error of its own for folders
        raise CorpusFormatError(
            f"{path}: is no file but a pipe or a device, which can be read only once: write what "
            "comes from it into a file"
        )


def _is_gzip(path):
    _refuse_pipe(path)
    with open(path, "rb") as file:
        return file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC


def _inflate(path, limit):
    """Yield the text of the members of a gzip file, one after the other."""
    member, data, total = zlib.decompressobj(_GZIP_FORMAT), b"", 0
    with open(path, "rb") as file:
        while data := data or file.read(BLOCK):
            if member.eof:
                data = data.lstrip(b"\0")  # padding, which some archivers add
                if not data:
                    continue
                member = zlib.decompressobj(_GZIP_FORMAT)
            try:
                block = member.decompress(data, BLOCK)
            except zlib.error as error:
                raise StreamError(f"damaged gzip data: {error}") from error
            total += len(block)
            if total > limit:
                raise StreamError(
                    f"the gzip data expand to more than {limit} bytes; "
                    "raise max_bytes if the file is to be trusted"
                )
            if block:
                yield block
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise StreamError("the gzip data end too early: the file is cut")
