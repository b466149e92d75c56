"""The line that shows how far a session is."""

import io
import sys

from weir._progress import Line


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_one_line_that_is_redrawn_and_removed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    line = Line()
    line.show(" 10 %  2 of 20 runs")
    line.show(" 20 %  done")
    line.clear()
    shown = sys.stderr.getvalue().split("\r")
    assert shown == ["", " 10 %  2 of 20 runs", " 20 %  done        ", " " * 11, ""]


class OfANotebook(io.StringIO):
    __module__ = "ipykernel.iostream"


def test_a_notebook_redraws_the_line_too(monkeypatch):
    monkeypatch.setattr(sys, "stderr", OfANotebook())
    Line().show(" 10 %  2 of 20 runs")
    assert sys.stderr.getvalue() == "\r 10 %  2 of 20 runs"


def test_elsewhere_lines_are_seldom_and_plain(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    line = Line()
    line.show("a second after the start")
    line.next = 0
    line.show(" 50 %  10 of 20 runs")
    line.show("a second later")
    line.clear()
    assert sys.stderr.getvalue() == "weir:  50 %  10 of 20 runs\n"


def test_without_stderr_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    line = Line()
    line.show("50 %")
    line.clear()
