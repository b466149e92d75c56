"""Labs that the tests run, a second of traffic each, and the command line."""

import os
import subprocess

import pytest

import weir

TEXT = """\
format = 1
name = "first"
[run]
duration = "1 s"
warmup = "200 ms"
[dumbbell]
rate = "5 Mbit/s"
rtt = "20 ms"
[traffic.bulk]
cc = "cubic"
"""


def command_line(*arguments):
    """Runs the program `weir` of the same sources, which WEIR names; returns what it prints."""
    command = [os.environ["WEIR"], *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture
def lab():
    """A lab of one run."""
    return weir.Lab.parse(TEXT)


@pytest.fixture(scope="session")
def result(tmp_path_factory):
    """The result of a lab that varies its queue, each of two repeats."""
    lab = weir.Lab.parse(TEXT).vary("dumbbell.queue", ["tail-drop", "pie"]).set("run.repeats", 2)
    return weir.run(lab, out=tmp_path_factory.mktemp("result") / "first", progress=False)
