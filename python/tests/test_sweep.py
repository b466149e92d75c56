"""Labs over a Dask cluster of real processes: the folders are those of one machine, whatever happens to workers."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import weir
from cluster import Cluster
from conftest import TEXT
from weir import _sweep


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def singles():
    """A lab whose runs have folders of their own."""
    return weir.Lab.parse(TEXT).vary("dumbbell.queue", ["tail-drop", "pie"]).set("run.repeats", 5)


def shards(runs=330, duration="500 ms"):
    """A lab whose runs are kept in shards of 64, the last one shorter."""
    return weir.Lab.parse(TEXT).set("run.repeats", runs).set("run.duration", duration)


def files(folder):
    """Each file below a folder but the lock, with its digest."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".weir-lock"
    }


def differences(one, other):
    one, other = files(one), files(other)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The shards' lab, run in this process."""
    return weir.run(shards(), jobs=2, out=tmp_path_factory.mktemp("alone") / "out", progress=False).path


@pytest.mark.parametrize("carry", [False, True], ids=["shared", "carry"])
@pytest.mark.parametrize("lab", [singles, shards], ids=["singles", "shards"])
def test_the_folder_is_that_of_one_machine(cluster, tmp_path, lab, carry, alone):
    result = weir.sweep(lab(), cluster.client, out=tmp_path / "swept", carry=carry, progress=False)
    assert result.is_complete
    if lab is singles:
        alone = weir.run(lab(), jobs=2, out=tmp_path / "alone", progress=False).path
    assert differences(result.path, alone) == []
    assert not (result.path / ".weir-sweep").exists()
    assert list(cluster.place.glob("worker-*/**/sim-*")) == []


@pytest.mark.parametrize("carry", [False, True], ids=["shared", "carry"])
def test_this_process_reads_no_records_of_the_tasks(cluster, tmp_path, monkeypatch, alone, carry):
    out, run = tmp_path / "swept", _sweep._Tasks.run

    def run_and_damage(self, threads):
        run(self, threads)
        for table in out.glob("runs/*/*.parquet"):
            table.write_bytes(b"damaged")

    monkeypatch.setattr(_sweep._Tasks, "run", run_and_damage)
    weir.sweep(shards(), cluster.client, out=out, carry=carry, progress=False)
    differ = differences(out, alone)
    assert differ and {pathlib.Path(name).suffix for name in differ} == {".parquet"}


@pytest.mark.parametrize("path", ["", "..", "../digest", "/tmp/digest", "runs/a", "runs/../a", "runs/a/b/c", "a/b/c", "runs//a"])
def test_a_file_that_a_worker_sends_stays_in_the_folder_of_its_part(tmp_path, path):
    with pytest.raises(weir.Error, match="a worker sent a file"):
        _sweep._write(tmp_path / "part", path, b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("carry", [False, True], ids=["shared", "carry"])
def test_files_that_the_lab_names_reach_the_workers(cluster, tmp_path, carry):
    trace = tmp_path / "steps.csv"
    trace.write_text("seconds,mbps\n0,5\n0.5,2\n1,8\n")
    lab = weir.Lab.parse(TEXT).set("dumbbell.rate", {"trace": str(trace)}).set("run.repeats", 3)
    result = weir.sweep(lab, cluster.client, out=tmp_path / "swept", carry=carry, progress=False)
    assert differences(result.path, weir.run(lab, out=tmp_path / "alone", progress=False).path) == []


def test_it_works_in_the_default_folder_and_tells_how_far_it_is(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("weir._progress.BETWEEN_LINES", 0.0)
    # The sweep may take less than a second, so it shows its progress as often as it can.
    monkeypatch.setattr(_sweep, "LOOK", 0.01)
    weir.sweep(shards(800), cluster.client, report=False)
    assert (tmp_path / "results" / "first" / "summary.json").is_file()
    assert " of 800 runs on 2 threads; " in capsys.readouterr().err


def test_a_rerun_replaces_the_results(cluster, tmp_path):
    out = tmp_path / "out"
    weir.run(shards(220).set("dumbbell.rate", "6 Mbit/s"), out=out, progress=False)
    with pytest.raises(weir.Error) as caught:
        weir.sweep(shards(220), cluster.client, out=out)
    assert "rerun=True" in caught.value.suggestion
    result = weir.sweep(shards(220), cluster.client, out=out, rerun=True, progress=False)
    assert differences(result.path, weir.run(shards(220), out=tmp_path / "alone", progress=False).path) == []


def test_finished_shards_are_kept_and_the_others_are_run(cluster, tmp_path, alone):
    out = tmp_path / "out"
    shutil.copytree(alone, out)
    for gone in ("sim-0001", "sim-0005"):
        shutil.rmtree(out / "runs" / gone)
    kept = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    weir.sweep(shards(), cluster.client, out=out, progress=False)
    assert kept and {path: path.stat().st_mtime_ns for path in kept} == kept
    assert differences(out, alone) == []


def test_a_worker_that_is_killed_changes_nothing(tmp_path, alone):
    with Cluster(tmp_path / "cluster", workers=2, allowed_failures=4) as cluster:
        out, killed = tmp_path / "out", []

        def kill():
            # The first tasks are under way: their folders are there.
            while not list(out.glob(".weir-sweep/sim-*/runs")) and not killed:
                time.sleep(0.01)
            cluster.kill(cluster.workers[0])
            killed.append(cluster.workers[0])
            cluster.add_worker()

        thread = threading.Thread(target=kill)
        thread.start()
        result = weir.sweep(shards(), cluster.client, out=out, progress=False)
        killed.append(None)
        thread.join()
        assert killed[0] is not None
        assert differences(result.path, alone) == []


INTERRUPTED = """
import sys, weir
from distributed import Client
lab = weir.Lab.parse(sys.argv[1]).set("run.repeats", 2000)
with Client(sys.argv[3]) as client:
    print("begun", flush=True)
    try:
        weir.sweep(lab, client, out=sys.argv[2], report=False, progress=False)
    except KeyboardInterrupt as interrupt:
        print(interrupt)
"""


def test_an_interrupt_keeps_the_finished_shards_and_the_same_call_resumes(cluster, tmp_path):
    out = tmp_path / "out"
    arguments = [sys.executable, "-c", INTERRUPTED, TEXT, str(out), cluster.address]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    while not list(out.glob("runs/sim-*/runs.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "of 2000 runs are kept" in told and "the same call resumes" in told
    left = weir.open(out)
    assert 0 < len(left.runs) < 2000 and len(left.runs) % 64 == 0
    # Tasks that were under way end meanwhile, and remove what they wrote.
    until = time.monotonic() + 30
    while (out / ".weir-sweep").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not (out / ".weir-sweep").exists()
    kept = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    lab = weir.Lab.parse(TEXT).set("run.repeats", 2000)
    assert weir.sweep(lab, cluster.client, out=out, report=False, progress=False).is_complete
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def refused(cluster, out, carry=False):
    with pytest.raises(weir.Error) as caught:
        weir.sweep(shards(), cluster.client, out=out, carry=carry, progress=False)
    return str(caught.value)


def can_mount(options, folder):
    mount = ["unshare", *options, "mount", "-t", "tmpfs", "none", folder]
    return subprocess.run(mount, stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_a_folder_that_workers_do_not_share_is_refused_and_results_travel_back(tmp_path, alone):
    out = tmp_path / "shared" / "out"
    out.parent.mkdir()
    allowed = [options for options in (["-m"], ["-Urm"]) if can_mount(options, out.parent)]
    if not allowed and not os.environ.get("WEIR_REQUIRE_LIVE"):
        pytest.skip("this machine allows no mount namespaces")
    apart = ["unshare", *allowed[0], "sh", "-c", f'mount -t tmpfs none "{out.parent}" && exec "$@"', "sh"]
    with Cluster(tmp_path / "cluster", workers=0) as cluster:
        cluster.add_worker(first=apart)
        cluster.client.wait_for_workers(1, timeout=60)
        told = refused(cluster, out)
        assert "does not share the folder" in told and "carry=True" in told
        result = weir.sweep(shards(), cluster.client, out=out, carry=True, progress=False)
        assert differences(result.path, alone) == []


def test_a_worker_of_another_build_is_refused(tmp_path):
    # The same package with a byte more has another build.
    package = tmp_path / "other" / "weir"
    shutil.copytree(pathlib.Path(weir.__file__).parent, package)
    (library,) = package.glob("_weir*.so")
    content = bytearray(library.read_bytes())
    note = content.index(b"GNU\0", content.index(b"\x03\0\0\0GNU\0")) + 4
    content[note] ^= 1
    library.write_bytes(content)
    with Cluster(tmp_path / "cluster", workers=1) as cluster:
        cluster.add_worker(environment={"PYTHONPATH": str(package.parent)})
        cluster.client.wait_for_workers(2, timeout=60)
        told = refused(cluster, tmp_path / "out")
    assert "has another build of weir" in told and "the same wheel" in told


@pytest.mark.parametrize("carry", [False, True], ids=["shared", "carry"])
def test_a_worker_that_cannot_write_is_named_and_finished_shards_stay(tmp_path, carry):
    with Cluster(tmp_path / "cluster", workers=1) as cluster:
        weir.sweep(shards(), cluster.client, out=tmp_path / "out", report=False, progress=False)
        shutil.rmtree(tmp_path / "out" / "runs" / "sim-0000")
        cluster.kill(cluster.workers[0])
        cluster.add_worker(largest_file=2048)
        while len(cluster.client.nthreads()) != 1 or cluster.workers[1].poll() is not None:
            time.sleep(0.05)
        cluster.client.wait_for_workers(1, timeout=60)
        told = refused(cluster, tmp_path / "out", carry)
    assert "cannot run sim-0000" in told and "space" in told
    assert len(weir.open(tmp_path / "out").runs) == 330 - 64


def test_a_scheduler_that_is_gone_ends_the_sweep(tmp_path):
    with Cluster(tmp_path / "cluster", workers=1) as cluster:
        out = tmp_path / "out"

        def kill():
            while not list(out.glob("runs/sim-*/runs.json")):
                time.sleep(0.01)
            cluster.scheduler.kill()

        thread = threading.Thread(target=kill)
        thread.start()
        with pytest.raises(weir.Error) as caught:
            weir.sweep(shards(2000, "2 s"), cluster.client, out=out, progress=False)
        thread.join()
    assert "no scheduler answers" in str(caught.value) and "finished shards stay" in caught.value.suggestion
    assert len(weir.open(out).runs) > 0


def test_labs_that_workers_cannot_run_are_refused_before_anything_is_written(cluster, tmp_path):
    @weir.controller("only-here")
    class OnlyHere(weir.Controller):
        def on_ack(self, ack):
            pass

        def window(self):
            return 10 * self.mss

    out = tmp_path / "out"
    command = singles().set("traffic.bulk", {"workload": {"kind": "command", "run": "true"}})
    for lab, arguments in [(singles(), {"on": "live"}), (command, {})]:
        with pytest.raises(weir.Error):
            weir.sweep(lab, cluster.client, out=out, **arguments)
    with pytest.raises(weir.Error, match="only-here"):
        weir.sweep(singles().set("traffic.bulk.cc", "only-here"), cluster.client, out=out)
    for lab, client in [("lab.toml", cluster.client), (singles(), cluster.address)]:
        with pytest.raises(TypeError):
            weir.sweep(lab, client, out=out)
    assert not out.exists()


def command_line(*arguments, environment=None):
    command = [os.environ["WEIR"], "run", *map(str, arguments)]
    # The command line starts python3, which is this one.
    path = {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | path | (environment or {}), check=False)


def test_the_command_line_sweeps_and_prints_its_table(cluster, tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text(singles().toml())
    swept = command_line(lab, "--dask", cluster.address, "--out", tmp_path / "swept", "--set", "run.repeats=3")
    assert swept.returncode == 0, swept.stderr
    alone = command_line(lab, "--jobs", 2, "--out", tmp_path / "alone", "--set", "run.repeats=3")
    assert swept.stdout.replace("swept", "alone") == alone.stdout
    named = differences(tmp_path / "swept", tmp_path / "alone")
    # The builds of the package and of the program differ, and their names stand in the descriptions of runs.
    assert {pathlib.Path(name).name for name in named} <= {"run.json", "records.json"}
    again = command_line(lab, "--dask", cluster.address, "--out", tmp_path / "swept", "--set", "run.repeats=3", "--json")
    assert len(json.loads(again.stdout)["runs"]) == 6


def test_the_command_line_says_what_is_missing(cluster, tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text(singles().toml())
    (tmp_path / "empty").mkdir()
    (tmp_path / "fake" / "distributed").mkdir(parents=True)
    (tmp_path / "fake" / "distributed" / "__init__.py").write_text("raise ImportError('not installed')\n")
    older = tmp_path / "older" / "weir"
    older.mkdir(parents=True)
    (older / "__init__.py").write_text("")
    for arguments, environment, told in [
        (["--dask", cluster.address], {"PATH": str(tmp_path / "empty")}, "needs python3, which is not there"),
        (["--dask", cluster.address], {"PYTHONPATH": str(older.parent)}, "cannot import the package weir"),
        (["--dask", cluster.address], {"PYTHONPATH": f"{tmp_path / 'fake'}:{os.environ.get('PYTHONPATH', '')}"}, "distributed"),
        (["--dask", "tcp://127.0.0.1:1"], {}, "no scheduler answers at tcp://127.0.0.1:1"),
        (["--dask", "nonsense"], {}, "no scheduler answers at nonsense"),
        (["--dask", cluster.address, "--on", "live"], {}, "on the simulator only"),
        (["--dask", cluster.address, "--jobs", 2], {}, "cannot be used with"),
        (["--carry"], {}, "--dask"),
    ]:
        run = command_line(lab, "--out", tmp_path / "out", *arguments, environment=environment)
        assert run.returncode == 2 and told in run.stderr, (arguments, run.stderr)
        assert "Traceback" not in run.stderr
    assert not (tmp_path / "out").exists()
