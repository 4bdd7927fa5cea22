"""What is said unasked: where, and how often."""

import logging

from dpsvi.files import notices


def bare(monkeypatch):
    """A logger without handlers, as a program has them that never heard of logging.

    It is no fixture: pytest would give it handlers before the test begins.
    """
    monkeypatch.setattr(notices, "_shown", set())
    log = logging.getLogger("apart")
    monkeypatch.setattr(log, "propagate", False)
    monkeypatch.setattr(log, "handlers", [])
    assert not log.hasHandlers()
    return log


def test_without_handlers_it_is_on_stderr_once(monkeypatch, capsys):
    log = bare(monkeypatch)
    for k in (1, 1, 2):
        notices.notice(log, "pass %d", k)
    shown = capsys.readouterr()
    assert shown.err == "dpsvi: pass 1\ndpsvi: pass 2\n" and shown.out == ""


def test_who_logs_decides(monkeypatch, capsys, caplog):
    log = bare(monkeypatch)
    log.addHandler(logging.NullHandler())
    log.addHandler(caplog.handler)
    log.setLevel(logging.WARNING)
    notices.notice(log, "pass %d", 1)
    assert not caplog.messages
    log.setLevel(logging.INFO)
    notices.notice(log, "pass %d", 2)
    assert caplog.messages == ["pass 2"] and capsys.readouterr().err == ""


def test_one_of_several_processes_says_it(monkeypatch, capsys):
    log = bare(monkeypatch)
    monkeypatch.setattr(notices, "launched_rank", lambda: 1)
    notices.notice(log, "pass 1")
    assert capsys.readouterr().err == ""
