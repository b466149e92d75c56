"""weir.run on real Linux: the process in which the engine works, and the one that waits for it.

The process is another Python, since a program in Python can give the engine neither a process of a single thread, which an ordinary user's
namespaces need, nor its whole memory to lock. The kernel kills it when the thread that has started it ends, and takes its namespaces away
with it: nothing is left when Python is killed."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import IO, Any

from . import _weir
from ._progress import Line
from ._sweep import error
from ._weir import Error, Lab

Asked = tuple[str, list[tuple[str, bytes]], str, Path, "int | None", bool, bool]
"""The lab's text and the files that it names, the engines, the result folder, the number of jobs, rerun and report."""

START = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from weir import _live
_live.main(int(sys.argv[2]))
"""
"""What the process runs, with the modules of this one."""


def run(asked: Asked, line: Line | None) -> tuple[Path, list[str]]:
    """Runs a lab in a process of its own. Returns the result folder and the notes that came before the runs.

    Ctrl-C asks the process to end; a second one kills it. The process is in a session of its own, so that a terminal's Ctrl-C reaches this
    one alone."""
    if not sys.executable:
        raise Error("live runs need a Python of their own, and this one does not know its program (sys.executable)")
    command = [sys.executable, "-I", "-c", START, json.dumps([str(folder) for folder in sys.path]), str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        answer, interrupt = _follow(process, pickle.dumps(asked), line)
    if line is not None:
        line.clear()
    if isinstance(interrupt, KeyboardInterrupt) and "interrupted" in answer:
        raise KeyboardInterrupt(answer["interrupted"]) from None
    if interrupt is not None:
        raise interrupt
    if "path" in answer:
        return Path(answer["path"]), answer["notes"]
    if "error" not in answer:
        raise error(f"the process of the live runs ended unexpectedly (status {process.returncode})", "the same call does the other runs")
    failed = Error(answer["error"])
    failed.suggestion = answer["suggestion"]
    raise failed


def _follow(
    process: subprocess.Popen[bytes], request: bytes, line: Line | None
) -> tuple[dict[str, Any], BaseException | None]:
    """Gives the process its request and shows its progress until it ends. Returns what it has told, and what a handler of a signal has
    raised meanwhile."""
    pipe, told = process.stdin, process.stdout
    assert pipe is not None and told is not None
    answer: dict[str, Any] = {}
    interrupt: BaseException | None = None
    while True:
        try:
            if request:
                sent, request = request, b""
                _send(pipe, sent)
            for each in told:
                answer |= _read(each)
                if line is not None and "show" in answer:
                    # What cannot be shown does not end the runs.
                    with contextlib.suppress(Exception):
                        line.show(answer.pop("show"))
            process.wait()
            return answer, interrupt
        except BaseException as raised:
            if interrupt is None:
                interrupt = raised
                process.send_signal(signal.SIGINT)
            else:
                process.kill()


def _send(pipe: IO[bytes], request: bytes) -> None:
    try:
        pipe.write(request)
        pipe.close()
    except BrokenPipeError:
        # The process has ended, and says why.
        pass


def _read(told: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(told))
    except ValueError:
        # An interrupt has come while the line was read.
        return {}


# What follows runs in the process.


class _Told:
    """A progress line that the other process shows."""

    def show(self, text: str) -> None:
        _tell({"show": text})

    def clear(self) -> None:
        pass


def _tell(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main(parent: int) -> None:
    """Does what the process `parent` asks, and tells it how that ended."""
    # Whoever ignores it has passed that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _weir._enter(parent)
        text, files, on, out, jobs, rerun, report = pickle.load(sys.stdin.buffer)
        lab = _lab(text, files)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            path = _weir._run_here(lab, on, out, jobs, rerun, report, _Told())
        _tell({"path": str(path), "notes": [str(note.message) for note in notes]})
    except KeyboardInterrupt as interrupt:
        _tell({"interrupted": str(interrupt) or "interrupted"})
    except Error as failed:
        _tell({"error": str(failed), "suggestion": failed.suggestion})
    except Exception as failed:
        _tell({"error": f"{type(failed).__name__}: {failed}", "suggestion": None})


def _lab(text: str, files: list[tuple[str, bytes]]) -> Lab:
    """The lab of this text, which names these files."""
    if not files:
        return Lab.parse(text)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in [("lab.toml", text.encode()), *files]:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return Lab.read(Path(folder, "lab.toml"))
