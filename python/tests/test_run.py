"""Labs run into folders that are those of the command line."""

import signal
import subprocess
import sys
import threading
import time

import pytest

import weir
from conftest import TEXT, command_line

def files(folder):
    """Each file of a result folder but those that name the build, by its path."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in paths if path.suffix in (".parquet", ".html")} | {
        "summary.json": (folder / "summary.json").read_bytes()
    }


def test_a_run_writes_the_files_of_the_command_line(result, tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text(result.lab.toml())
    command_line("run", lab, "--out", tmp_path / "cli", "--jobs", 1)
    ours, theirs = files(result.path), files(tmp_path / "cli")
    assert sorted(map(str, ours)) == sorted(map(str, theirs))
    assert [str(path) for path in ours if ours[path] != theirs[path]] == []


def test_the_command_line_reads_what_was_run_here(result):
    assert "tail-drop" in command_line("report", result.path)


def test_what_the_command_line_wrote_is_opened(result, tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text(result.lab.toml())
    command_line("run", lab, "--out", tmp_path / "cli", "--no-report")
    opened = weir.open(tmp_path / "cli")
    assert opened.runs["run"] == result.runs["run"]
    assert opened.flows["goodput_mbps"] == result.flows["goodput_mbps"]


def test_finished_runs_are_kept(lab, tmp_path):
    out = tmp_path / "out"
    weir.run(lab, out=out)
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    weir.run(lab, out=out)
    assert before and before == {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}


def test_another_lab_in_the_folder_is_refused_unless_it_is_rerun(lab, tmp_path):
    weir.run(lab, out=tmp_path / "out", report=False)
    lab.set("dumbbell.rate", "6 Mbit/s")
    with pytest.raises(weir.Error) as caught:
        weir.run(lab, out=tmp_path / "out", report=False)
    assert "rerun=True" in caught.value.suggestion
    assert '"6 Mbit/s"' in weir.run(lab, out=tmp_path / "out", rerun=True, report=False).lab.toml()


def test_the_default_folder_is_that_of_the_command_line(lab, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weir.run(lab, report=False)
    assert (tmp_path / "results" / "first" / "lab.toml").is_file()


def test_wrong_arguments_are_refused_before_anything_is_written(lab, tmp_path):
    out = tmp_path / "out"
    for arguments, error in [
        ({"on": "moon"}, weir.Error),
        ({"on": "sim,moon"}, weir.Error),
        ({"on": ""}, weir.Error),
        ({"jobs": 0}, ValueError),
        ({"jobs": "two"}, TypeError),
    ]:
        with pytest.raises(error):
            weir.run(lab, out=out, **arguments)
    with pytest.raises(TypeError):
        weir.run("lab.toml", out=out)
    assert not out.exists()


def test_a_folder_that_cannot_be_written_is_an_exception(lab, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(weir.Error) as caught:
        weir.run(lab, out=tmp_path / "file" / "out")
    assert caught.value.suggestion


def test_other_threads_run_meanwhile(lab, tmp_path):
    lab.set("run.duration", "60 s").set("run.repeats", 4)
    counted, over = 0, threading.Event()

    def count():
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    weir.run(lab, out=tmp_path / "out", report=False, progress=False)
    during = counted - before
    over.set()
    thread.join()
    assert during > 1


INTERRUPTED = """
import sys, weir
lab = weir.Lab.parse(sys.argv[1]).set("run.duration", "30 s").set("run.repeats", 5000)
print("begun", flush=True)
try:
    weir.run(lab, out=sys.argv[2], jobs=1, report=False)
except KeyboardInterrupt as interrupt:
    print(interrupt)
"""


def test_an_interrupt_keeps_the_finished_runs(tmp_path):
    out = tmp_path / "out"
    arguments = [sys.executable, "-c", INTERRUPTED, TEXT, str(out)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    while not any(out.rglob("*.parquet")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate()
    assert (process.returncode, errors.strip().count("Traceback")) == (0, 0)
    assert "of 5000 runs are kept" in told and "the same call resumes" in told
    left = weir.open(out)
    assert 0 < len(left.runs) < 5000 and not left.is_complete
