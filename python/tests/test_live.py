"""Labs on real Linux. They need network namespaces: without them the tests skip and say so; with WEIR_REQUIRE_LIVE that is a failure."""

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import weir
from conftest import TEXT, command_line

LIVE = TEXT.replace('duration = "1 s"', 'duration = "2 s"')
LONG = TEXT.replace('duration = "1 s"', 'duration = "60 s"')
PATIENCE = 20.0
"""Seconds that the kernel may take to clear up."""

CLONE_NEWUSER = 0x10000000
PR_CAPBSET_DROP, CAP_SYS_ADMIN = 24, 21


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The result of a live run."""
    try:
        return weir.run(weir.Lab.parse(LIVE), on="live", out=tmp_path_factory.mktemp("live") / "out", progress=False)
    except weir.Error as error:
        if "network namespaces" not in str(error) or "WEIR_REQUIRE_LIVE" in os.environ:
            raise
        pytest.skip(f"this system permits no live runs: {error}")


def started(script, *arguments):
    """Python that runs a script."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(weir.__file__).parents[1])


def text(path):
    """A file of /proc; empty if its process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def descendants(process):
    """The processes that a process has started, and those that these have started."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in text(task).split():
            found += [int(child), *descendants(int(child))]
    return found


def state(process):
    """The state of the process or thread with this folder in /proc; empty if there is none."""
    return text(process / "stat").rpartition(")")[2][1:2]


def are_gone(processes):
    """Whether processes have ended. Who adopts them may take a while to hear of it."""
    return all(state(Path(f"/proc/{each}")) in ("", "Z", "X") for each in processes)


def namespaces_of(processes):
    """The network namespaces that processes hold, and this one does not."""
    links = set()
    for process in processes:
        for link in [*Path(f"/proc/{process}/task").glob("*/ns/net"), *Path(f"/proc/{process}/fd").glob("*")]:
            try:
                links.add(os.readlink(link))
            except OSError:
                pass
    return {link for link in links if link.startswith("net:")} - {os.readlink("/proc/self/ns/net")}


def within(holds):
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def test_a_live_run_is_one_of_the_kernel(live):
    assert live.is_complete and live.flows["goodput_mbps"][0] > 1
    assert live.runs["engine"] == ["live"]
    assert (live.path / "index.html").is_file()


def test_the_command_line_reads_it(live):
    assert "live" in command_line("report", live.path)


def test_both_engines_run_into_one_folder(live, tmp_path):
    lab = weir.Lab.parse(LIVE)
    both = weir.run(lab, on="sim,live", out=tmp_path / "both", report=False, progress=False)
    assert sorted(both.runs["engine"]) == ["live", "sim"]
    sim = weir.run(lab, out=tmp_path / "sim", report=False, progress=False)
    ours = dict(zip(both.flows["engine"], both.flows["goodput_mbps"]))
    assert ours["sim"] == sim.flows["goodput_mbps"][0]
    # What the other process did is kept, and done by none again.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "both").rglob("*.parquet")}
    weir.run(lab, out=tmp_path / "both", report=False, progress=False)
    weir.run(lab, on="live", out=tmp_path / "both", report=False, progress=False)
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "both").rglob("*.parquet")}


def test_a_trace_reaches_the_other_process(live, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("steps").write_text("seconds,rate\n0,5000000\n1,2000000\n")
    lab = weir.Lab.parse(LIVE).set("dumbbell.rate", {"trace": "steps"})
    Path("steps").unlink()
    result = weir.run(lab, on="live", out="out", report=False, progress=False)
    assert result.flows["goodput_mbps"][0] > 0.5


def test_progress_is_shown_and_other_threads_run(live, tmp_path, monkeypatch):
    ticks, over, shown = [], threading.Event(), []
    monkeypatch.setattr(weir._progress, "Line", lambda: SimpleNamespace(show=shown.append, clear=lambda: shown.append("")))

    def tick():
        while not over.wait(0.01):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    weir.run(weir.Lab.parse(LIVE), on="live", out=tmp_path / "out", report=False)
    during = len(ticks) - before
    over.set()
    thread.join()
    assert during > 50
    assert len(shown) > 2 and all("of 1 runs" in text for text in shown[:-1]) and shown[-1] == ""


def test_a_warning_of_the_plan_is_one_of_python(live, tmp_path):
    lab = weir.Lab.parse(LIVE).set("dumbbell.outage", [weir.Dumbbell.Outage(at="30 s", for_="1 s")])
    with pytest.warns(UserWarning, match="outage from 30 s on never happens") as caught:
        weir.run(lab, on="live", out=tmp_path / "out", report=False, progress=False)
    assert caught[0].filename == __file__


def test_commands_run_with_permission_alone(live, tmp_path):
    lab = weir.Lab.parse(LIVE)
    command = f"echo began > {tmp_path / 'witness'}"
    lab.set("traffic.tool", {"workload": {"kind": "command", "run": command}})
    with pytest.raises(weir.Error) as caught:
        weir.run(lab, on="live", out=tmp_path / "out", progress=False)
    assert command in str(caught.value) and "allow_commands=True" in caught.value.suggestion
    assert not (tmp_path / "out").exists() and not (tmp_path / "witness").exists()
    weir.run(lab, on="live", out=tmp_path / "out", report=False, progress=False, allow_commands=True)
    assert (tmp_path / "witness").read_text() == "began\n"


def test_a_run_that_fails_is_an_exception(live, tmp_path):
    lab = weir.Lab.parse(LIVE).set("traffic.tool", {"workload": {"kind": "command", "run": "exit 3"}})
    with pytest.raises(weir.Error, match="1 of 1 runs failed.*status 3") as caught:
        weir.run(lab, on="live", out=tmp_path / "out", report=False, progress=False, allow_commands=True)
    assert caught.value.suggestion == "the same call tries them again"


def test_a_lab_that_the_engine_cannot_do_is_an_exception(live, tmp_path):
    lab = weir.Lab.parse(LIVE).set("traffic.bulk.cc", "copa")
    with pytest.raises(weir.Error) as caught:
        weir.run(lab, on="live", out=tmp_path / "out", progress=False)
    assert "copa" in str(caught.value) and not (tmp_path / "out").exists()


def test_python_classes_run_on_the_simulator_only(tmp_path):
    @weir.controller("not-live")
    class NotLive(weir.Controller):
        def on_ack(self, ack):
            pass

        def window(self):
            return 10 * self.mss

    lab = weir.Lab.parse(LIVE).set("traffic.bulk.cc", "not-live")
    with pytest.raises(weir.Error) as caught:
        weir.run(lab, on="sim,live", out=tmp_path / "out", progress=False)
    assert 'on="sim"' in caught.value.suggestion and not (tmp_path / "out").exists()


OVERLAY = """
format = 1
name = "overlay"
[run]
duration = "3 s"
[graph]
routers = ["a", "b"]
links = { ab = { from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms" } }
[overlay]
nodes = ["a", "b"]
[traffic.t]
from = "a"
to = "b"
workload = { kind = "udp", rate = "1 Mbit/s", packet = "1200 B" }
overlay = true
"""


def test_an_overlay_runs_with_the_program_of_the_same_build_alone(live, tmp_path, monkeypatch):
    lab, path = weir.Lab.parse(OVERLAY), os.environ["PATH"]
    program = tmp_path / "weir"
    monkeypatch.setenv("PATH", str(tmp_path))
    for script, told in [(None, "is not there"), ("#!/bin/sh\necho weir 0.0.1\n", 'is "weir 0.0.1"')]:
        if script:
            program.write_text(script)
            program.chmod(0o755)
        with pytest.raises(weir.Error) as caught:
            weir.run(lab, on="live", out=tmp_path / "out", progress=False)
        assert told in str(caught.value) and not (tmp_path / "out").exists()
    program.unlink()
    program.symlink_to(os.environ["WEIR"])
    monkeypatch.setenv("PATH", f"{tmp_path}:{path}")
    result = weir.run(lab, on="live", out=tmp_path / "out", report=False, progress=False)
    assert result.flows["goodput_mbps"][0] > 0.5
    assert running(program) == []


def running(program):
    """The command lines of a program's processes."""
    lines = []
    for each in all_processes():
        words = text(Path(f"/proc/{each}/cmdline")).split("\0")
        if words[0] == str(program):
            lines.append(" ".join(words))
    return lines


RUNS = """
import sys, threading, weir
lab = weir.Lab.parse(sys.argv[1])
if len(sys.argv) > 3:
    lab.set("traffic.tool", {"workload": {"kind": "command", "run": sys.argv[3]}})
print("begun", flush=True)
try:
    weir.run(lab, on="live", out=sys.argv[2], report=False, allow_commands=True)
except KeyboardInterrupt as interrupt:
    print(interrupt)
"""


def under_way(process, threads):
    """The processes of a call that is under way, once one of them has a thread of this name."""
    names = lambda: [text(name).strip() for each in descendants(process.pid) for name in Path(f"/proc/{each}/task").glob("*/comm")]
    assert process.stdout.readline() == "begun\n"
    assert within(lambda: threads in names() or process.poll() is not None) and process.poll() is None
    return descendants(process.pid)


def test_an_interrupt_ends_the_run_and_leaves_nothing(live, tmp_path):
    process = started(RUNS, LONG, tmp_path / "out")
    processes = under_way(process, "weir-pump")
    held = namespaces_of(processes)
    assert len(held) >= 3
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate()
    assert (process.returncode, errors.count("Traceback")) == (0, 0), errors
    assert "interrupted; 0 of 1 runs are kept" in told and "the same call resumes the run" in told
    assert within(lambda: are_gone(processes))
    assert within(lambda: not held & namespaces_of(all_processes()))


def all_processes():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def test_a_second_interrupt_ends_a_process_that_does_not_answer(live, tmp_path):
    process = started(RUNS, LONG, tmp_path / "out")
    engine, *_ = processes = under_way(process, "weir-pump")
    os.kill(engine, signal.SIGSTOP)
    # Before all of its threads have stopped, one may take the interrupt.
    assert within(lambda: {state(task) for task in Path(f"/proc/{engine}/task").iterdir()} == {"T"})
    process.send_signal(signal.SIGINT)
    pending = lambda: int(re.search(r"ShdPnd:\s*(\w+)", Path(f"/proc/{engine}/status").read_text())[1], 16)
    assert within(lambda: pending() >> signal.SIGINT - 1 & 1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate()
    assert (process.returncode, told.strip(), errors.count("Traceback")) == (0, "", 0), errors
    assert within(lambda: are_gone(processes))


def test_nothing_is_left_of_a_run_whose_python_is_killed(live, tmp_path):
    process = started(RUNS, LONG, tmp_path / "out", "sleep 1000 & sleep 1001")
    processes = under_way(process, "sleep")
    held = namespaces_of(processes)
    assert len(held) >= 3 and len(processes) >= 3
    process.kill()
    process.communicate()
    assert within(lambda: are_gone(processes))
    assert within(lambda: not held & namespaces_of(all_processes()))


def test_a_killed_engine_is_an_exception_and_the_same_call_goes_on(live, tmp_path):
    script = RUNS.replace("except KeyboardInterrupt as interrupt:\n    print(interrupt)", "except weir.Error as error:\n    print(error)")
    process = started(script, LIVE, tmp_path / "out")
    os.kill(under_way(process, "weir-pump")[0], signal.SIGKILL)
    told, errors = process.communicate()
    assert process.returncode == 0 and "ended unexpectedly (status -9)" in told, errors
    assert not weir.open(tmp_path / "out").is_complete
    assert weir.run(weir.Lab.parse(LIVE), on="live", out=tmp_path / "out", report=False, progress=False).is_complete


UNPRIVILEGED = """
import ctypes, sys, threading, weir
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl({drop}, {admin}, 0, 0, 0) == 0, ctypes.get_errno()
threading.Thread(target=threading.Event().wait, daemon=True).start()
print(weir.run(weir.Lab.parse(sys.argv[1]), on="live", out=sys.argv[2], progress=False).is_complete)
""".format(drop=PR_CAPBSET_DROP, admin=CAP_SYS_ADMIN)


def test_an_ordinary_program_with_threads_runs_live(live, tmp_path):
    if ctypes.CDLL(None).prctl(23, CAP_SYS_ADMIN, 0, 0, 0) != 1 or os.geteuid() != 0:
        pytest.skip("this user is an ordinary one: the other tests show it")
    process = started(UNPRIVILEGED, LIVE, tmp_path / "out")
    told, errors = process.communicate()
    if "cannot be made" in errors and "WEIR_REQUIRE_LIVE" not in os.environ:
        pytest.skip("this system permits no user namespaces")
    assert (told, process.returncode) == ("True\n", 0), errors


WITHOUT = """
import ctypes, os, sys
ids = os.geteuid(), os.getegid()
if ctypes.CDLL(None).unshare({user}) != 0:
    sys.exit(77)
for name, text in [("setgroups", "deny"), ("uid_map", f"0 {{ids[0]}} 1"), ("gid_map", f"0 {{ids[1]}} 1")]:
    open(f"/proc/self/{{name}}", "w").write(text)
for name in ("net", "user"):
    open(f"/proc/sys/user/max_{{name}}_namespaces", "w").write("0")
import weir
try:
    weir.run(weir.Lab.parse(sys.argv[1]), on="live", out=sys.argv[2], progress=False)
except weir.Error as error:
    print(error)
    print(error.suggestion)
print(os.path.exists(sys.argv[2]))
""".format(user=CLONE_NEWUSER)


def test_without_namespaces_the_words_are_those_of_the_doctor(tmp_path):
    process = started(WITHOUT, LIVE, tmp_path / "out")
    told, errors = process.communicate()
    if process.returncode == 77:
        assert "WEIR_REQUIRE_LIVE" not in os.environ, "WEIR_REQUIRE_LIVE is set"
        pytest.skip("this system permits no user namespaces, so that none can be forbidden in one")
    assert process.returncode == 0, errors
    lines = told.splitlines()
    assert re.fullmatch(r"network namespaces: cannot be made: .*", lines[0])
    assert lines[1].strip() == "help: " + lines[2] and "sysctl user.max_user_namespaces" in lines[2]
    assert lines[3] == "False"
