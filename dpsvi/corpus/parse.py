"""Compiled parsers: bytes of whole lines in, (row, column, value) entries out.

Two grammars cover the text formats. A *triple* line is ``row column value`` (UCI, Matrix Market);
a *document* line is ``n column:value ...`` (Blei's LDA-C). Numbers are read by hand: the common
case, a few decimal digits, costs a few instructions a byte. Every block ends with a newline, so no
loop over digits or spaces needs to look at the end of the block.

Each parser takes the block, the `limits` of the file, the running `state`, and the three arrays to
append to; it returns OK, or what is wrong with the line that `state` then points at.
"""

import numpy as np
from numba import njit
from numba.core import cgutils
from numba.extending import intrinsic

from dpsvi.kernels.code_cache import can_be_kept

_FLAGS = {"cache": can_be_kept(), "nogil": True}

# Slots of `limits`, int64: what the file may hold.
N_ROWS, N_COLUMNS, NNZ, INDEX_BASE, ALLOW_FRACTIONAL = range(5)
N_LIMITS = 5

# Slots of `state`, int64: what has been read so far, across blocks.
LINE, START, N_READ, N_KEPT, LAST_ROW, LAST_COLUMN, ROWS_IN_ORDER, CANONICAL = range(8)
N_DOCUMENTS, BLANK = 8, 9
N_STATE = 10

(OK, BAD_LINE, BAD_ROW, BAD_COLUMN, NEGATIVE, NOT_FINITE, FRACTIONAL, TOO_LARGE, TOO_MANY,
 WRONG_TERMS, BLANK_LINE) = range(11)  # fmt: skip

MAX_VALUE = 2**31 - 1
_FULL = 10**17  # one more digit than this, and no further one, is sure to fit an int64
_LARGEST_POWER = 10**6  # beyond float64 either way

_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_PLUS, _MINUS, _POINT, _COLON = 43, 45, 46, 58


def new_state(line: int) -> np.ndarray:
    """Return the state before line ``line + 1``."""
    state = np.zeros(N_STATE, np.int64)
    state[LINE] = line
    state[LAST_ROW] = state[LAST_COLUMN] = -1
    state[ROWS_IN_ORDER] = state[CANONICAL] = 1
    return state


def explain(code: int, limits: np.ndarray) -> str:
    """Return in words what is wrong with a line."""
    base = limits[INDEX_BASE]
    return {
        BAD_LINE: "expected 'document word count' or 'n word:count ...'",
        BAD_ROW: f"document number outside {base}..{limits[N_ROWS] - 1 + base}",
        BAD_COLUMN: f"word id outside {base}..{limits[N_COLUMNS] - 1 + base} (index_base={base})",
        NEGATIVE: "negative count",
        NOT_FINITE: "count is NaN or infinite",
        FRACTIONAL: "count is not whole (allow_fractional=True takes it)",
        TOO_LARGE: f"count above {MAX_VALUE}",
        TOO_MANY: f"more entries than the {limits[NNZ]} of the header",
        WRONG_TERMS: "the line does not hold the number of terms it starts with",
        BLANK_LINE: "a line after a blank one; an empty document is '0'",
    }[code]


@intrinsic
def _borrow(typingctx, array):
    """Return the same array without an owner; the caller's reference keeps it alive.

    Passing an array to a function costs two atomic reference counts, even if inlined. Several
    times a number, that took six times as long as the parsing itself.
    """

    def codegen(context, builder, signature, args):
        view = context.make_array(signature.args[0])(context, builder, args[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        view.parent = cgutils.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), codegen


@njit(**_FLAGS)
def parse_triples(text, limits, state, rows, columns, values):
    """Parse lines of ``row column value``; blank lines are skipped."""
    text, limits, state = _borrow(text), _borrow(limits), _borrow(state)
    rows, columns, values = _borrow(rows), _borrow(columns), _borrow(values)
    p, end = 0, len(text)
    while p < end:
        state[LINE] += 1
        state[START] = p
        p = _skip_spaces(text, p)
        if text[p] != _NEWLINE:
            row, p = _integer(text, p)
            column, p = _integer(text, _skip_spaces(text, p))
            if row < 0 or column < 0 or not _at_space(text, p):
                return BAD_LINE
            value, p, code = _number(text, _skip_spaces(text, p), limits[ALLOW_FRACTIONAL])
            if code != OK:
                return code
            p = _skip_spaces(text, p)
            if text[p] != _NEWLINE:
                return BAD_LINE
            code = _append(row, column, value, limits, state, rows, columns, values)
            if code != OK:
                return code
        p += 1
    return OK


@njit(**_FLAGS)
def parse_documents(text, limits, state, rows, columns, values):
    """Parse lines of ``n column:value ...``; row numbers count the lines.

    A blank line would shift all rows after it, so it may only stand at the end of the file.
    """
    text, limits, state = _borrow(text), _borrow(limits), _borrow(state)
    rows, columns, values = _borrow(rows), _borrow(columns), _borrow(values)
    p, end = 0, len(text)
    while p < end:
        state[LINE] += 1
        state[START] = p
        p = _skip_spaces(text, p)
        if text[p] == _NEWLINE:
            state[BLANK] = 1
            p += 1
            continue
        if state[BLANK]:
            return BLANK_LINE
        declared, p = _integer(text, p)
        if declared < 0 or not _at_space(text, p):
            return BAD_LINE
        row = state[N_DOCUMENTS] + limits[INDEX_BASE]
        found = 0
        p = _skip_spaces(text, p)
        while text[p] != _NEWLINE:
            column, p = _integer(text, p)
            if column < 0 or text[p] != _COLON:
                return BAD_LINE
            value, p, code = _number(text, p + 1, limits[ALLOW_FRACTIONAL])
            if code == OK:
                code = _append(row, column, value, limits, state, rows, columns, values)
            if code != OK:
                return code
            found += 1
            p = _skip_spaces(text, p)
        if found != declared:
            return WRONG_TERMS
        state[N_DOCUMENTS] += 1
        p += 1
    return OK


@njit(**_FLAGS, forceinline=True)
def _append(row, column, value, limits, state, rows, columns, values):
    """Check one entry against the limits and store it, unless it is zero."""
    row -= limits[INDEX_BASE]
    column -= limits[INDEX_BASE]
    if row < 0 or row >= limits[N_ROWS]:
        return BAD_ROW
    if column < 0 or column >= limits[N_COLUMNS]:
        return BAD_COLUMN
    if state[N_READ] >= limits[NNZ]:
        return TOO_MANY
    state[N_READ] += 1
    if value == 0:
        return OK
    if row < state[LAST_ROW]:
        state[ROWS_IN_ORDER] = 0
    if row < state[LAST_ROW] or (row == state[LAST_ROW] and column <= state[LAST_COLUMN]):
        state[CANONICAL] = 0
    state[LAST_ROW] = row
    state[LAST_COLUMN] = column
    n = state[N_KEPT]
    rows[n] = row
    columns[n] = column
    values[n] = value
    state[N_KEPT] = n + 1
    return OK


@njit(**_FLAGS, forceinline=True)
def _skip_spaces(text, p):
    while text[p] == _SPACE or text[p] == _TAB or text[p] == _RETURN:
        p += 1
    return p


@njit(**_FLAGS, forceinline=True)
def _at_space(text, p):
    c = text[p]
    return c == _NEWLINE or c == _SPACE or c == _TAB or c == _RETURN


@njit(**_FLAGS, forceinline=True)
def _starts(text, p, first, second):
    """Whether two lower-case letters stand at ``p``, in either case."""
    return text[p] | 32 == first and text[p + 1] | 32 == second


@njit(**_FLAGS, forceinline=True)
def _digits(text, p, value):
    """Append the decimal digits at ``p`` to ``value``, as far as an int64 holds them.

    Returns the value, what follows the digits, and how many were left out.
    """
    left_out = 0
    while 48 <= text[p] <= 57:
        if value < _FULL:
            value = value * 10 + (np.int64(text[p]) - 48)
        else:
            left_out += 1
        p += 1
    return value, p, left_out


@njit(**_FLAGS, forceinline=True)
def _integer(text, p):
    """Read an unsigned integer: its value, or -1 where there is none, and what follows it."""
    value, stop, _ = _digits(text, p, np.int64(0))
    # With digits left out it is wrong, but still too large for any limit.
    return value if stop > p else np.int64(-1), stop


@njit(**_FLAGS, forceinline=True)
def _number(text, p, allow_fractional):
    """Read a count: float32 value, what follows it, and OK or why it is refused."""
    mantissa, stop, _ = _digits(text, p, np.int64(0))
    value = np.float64(mantissa)
    # Anything but a run of digits takes the slow road.
    if stop == p or not _at_space(text, stop):
        value, stop, code = _decimal(text, p)
        if code != OK:
            return np.float32(0), stop, code
    if value > MAX_VALUE:
        return np.float32(0), stop, TOO_LARGE
    if value != np.trunc(value) and not allow_fractional:
        return np.float32(0), stop, FRACTIONAL
    return np.float32(value), stop, OK


@njit(**_FLAGS)
def _decimal(text, p):
    """Read ``[+-]digits[.digits][e[+-]digits]`` as float64, or recognise NaN and infinity."""
    negative = text[p] == _MINUS
    if negative or text[p] == _PLUS:
        p += 1
    if _starts(text, p, 110, 97) or _starts(text, p, 105, 110):  # na, in
        return 0.0, p, NOT_FINITE
    mantissa, stop, exponent = _digits(text, p, np.int64(0))
    n_digits = stop - p
    p = stop
    if text[p] == _POINT:
        mantissa, stop, left_out = _digits(text, p + 1, mantissa)
        decimals = stop - p - 1
        n_digits += decimals
        exponent -= decimals - left_out
        p = stop
    if n_digits == 0:
        return 0.0, p, BAD_LINE
    if text[p] | 32 == 101:  # e
        p += 1
        falling = text[p] == _MINUS
        if falling or text[p] == _PLUS:
            p += 1
        power, stop, _ = _digits(text, p, np.int64(0))
        if stop == p:
            return 0.0, p, BAD_LINE
        power = min(power, _LARGEST_POWER)
        exponent += -power if falling else power
        p = stop
    if not _at_space(text, p):
        return 0.0, p, BAD_LINE
    # Dividing by an exact power of ten rounds once, multiplying by its inverse twice.
    if exponent < 0:
        value = mantissa / 10.0**-exponent
    else:
        value = mantissa * 10.0**exponent if mantissa else 0.0
    if negative and mantissa:
        return 0.0, p, NEGATIVE
    return value, p, OK
