"""weir.sweep: the runs of a lab on a Dask cluster.

A task runs one part of the lab's tree, a shard or some single runs, into a folder of its own. This process alone writes into the result
folder: it moves the folders of a part there when the task has ended. So a worker that dies, or that Dask took for dead, leaves nothing
that counts."""

from __future__ import annotations

import collections
import contextlib
import functools
import os
import queue
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator

from . import _weir
from ._progress import Line
from ._weir import Error, Lab, Result

if TYPE_CHECKING:
    from distributed import Client, Future

__all__ = ["sweep"]

SCRATCH = ".weir-sweep"
"""Folder in the result folder in which parts wait until they are moved."""
DIGEST = "digest"
"""File of a part beside its runs: their summaries, and their share of the report."""
TOKEN = "token"
"""File in it by which a worker finds out whether it sees the same folder."""
VISIBLE = 3.0
"""Seconds within which a network file system shows a new file to other machines, or else counts as another one."""
MOST_RUNS = 64
"""Most single runs of a task."""
TASKS_A_THREAD = 4
"""Tasks that each thread of the cluster gets at least, if the lab has so many runs: the last tasks keep few threads waiting."""
AHEAD = 2
"""Tasks for each thread that the scheduler has at a time: a thread never waits, and few results wait to be taken."""
LOOK = 0.25
"""Seconds between two lines of progress."""
ASK = 1.0
"""Seconds between two questions to the scheduler, how large the cluster is."""


def sweep(
    lab: Lab,
    client: Client,
    on: str = "sim",
    out: str | os.PathLike[str] | None = None,
    carry: bool = False,
    progress: bool = True,
    rerun: bool = False,
    report: bool = True,
) -> Result:
    """Runs a lab on a Dask cluster and returns its result: the files are those of weir.run().

    lab: the lab. Classes of Python that it names are unknown to workers, so that such a lab is refused.
    client: a `distributed.Client`. All workers and the scheduler have this build of the package.
    on: the engine, "sim".
    out: the result folder, by default results/NAME. Runs that it holds already are kept, and the others are done.
    carry: whether results travel back over the network. By default workers write into the result folder, which all of them mount
        under the same path.
    progress: whether the progress is shown on sys.stderr; Dask's dashboard shows a task for each shard of 64 runs, or for up to 64
        single runs.
    rerun: whether runs that the folder holds are done again.
    report: whether the report is written, when all runs have ended.

    Ctrl-C cancels the tasks and raises KeyboardInterrupt. Finished shards stay in the folder, and the same call goes on with the
    others. Raises Error if a worker cannot take part (another build, a folder that it does not share, a full disk), if the scheduler
    is gone or a run fails."""
    return swept(lab, client, on, out, carry, progress, rerun, report)[0]


def swept(
    lab: Lab,
    client: Client,
    on: str = "sim",
    out: str | os.PathLike[str] | None = None,
    carry: bool = False,
    progress: bool = True,
    rerun: bool = False,
    report: bool = True,
) -> tuple[Result, int, int]:
    """The same. Returns also how many runs were done, and how many were there before."""
    if not isinstance(lab, Lab):
        raise TypeError(f"lab is a weir.Lab, not {type(lab).__name__}")
    _require(client)
    threads = _threads(client)
    most = min(max(-(-lab.run_count // (TASKS_A_THREAD * max(threads, 1))), 1), MOST_RUNS)
    parts = _weir._Parts(lab, on, None if out is None else Path(out), rerun, report, most)
    try:
        with _scratch(parts) as (scratch, token):
            tasks = _Tasks(lab, client, parts, scratch, token, carry, progress)
            tasks.run(threads)
        try:
            return parts.finish(), tasks.done, tasks.before
        except Error as failure:
            failure.runs_failed = tasks.failed > 0
            raise
    finally:
        parts.close()


def error(message: str, suggestion: str) -> Error:
    """An exception with a suggestion."""
    made = Error(f"{message}\n  help: {suggestion}")
    made.suggestion = suggestion
    return made


def _require(client: Any) -> None:
    try:
        import distributed
    except ImportError as missing:
        raise error(f"a sweep needs the package distributed: {missing}", "pip install distributed") from None
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError("client is a distributed.Client that is not asynchronous")


def _gone(client: Client, why: object) -> Error:
    address = client.scheduler.address if client.scheduler is not None else "the scheduler"
    return error(
        f"no scheduler answers at {address} ({why})",
        "start it again with `dask scheduler`; finished shards stay, and the same call goes on with the others",
    )


def _threads(client: Client) -> int:
    """Number of threads of all workers that are there now."""
    try:
        return sum(client.nthreads().values())
    except (OSError, TimeoutError, RuntimeError) as why:
        raise _gone(client, why) from None


@contextlib.contextmanager
def _scratch(parts: _weir._Parts) -> Iterator[tuple[Path, str]]:
    """The folder in which parts wait, with a new token, which is removed at the end."""
    scratch, token = parts.path.resolve() / SCRATCH, secrets.token_hex(8)
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir()
        (scratch / TOKEN).write_text(token)
        yield scratch, token
    except OSError as why:
        raise error(str(why), "check that the folder is writable and has space; out=DIR writes elsewhere") from None
    finally:
        # The token goes first: a task that ends after this removes what it wrote, and one that has ended before writes no more.
        with contextlib.suppress(OSError):
            (scratch / TOKEN).unlink()
        shutil.rmtree(scratch, ignore_errors=True)


class _Tasks:
    """The tasks of a sweep, from this process."""

    def __init__(
        self, lab: Lab, client: Client, parts: _weir._Parts, scratch: Path, token: str, carry: bool, progress: bool
    ) -> None:
        self.lab, self.client, self.parts, self.scratch, self.token = lab, client, parts, scratch, token
        self.line = Line() if progress else None
        shared = None if carry else (str(scratch), token)
        files = tuple([("lab.toml", lab.toml().encode()), *lab._attachments()]) if carry else ()
        self.work = (_weir._build(), shared, files, parts.size, parts.groups)
        self.waiting = collections.deque(enumerate(parts.missing))
        self.running: dict[Future, tuple[int, str, int]] = {}
        self.ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.wanted = sum(len(runs) for _, (_, runs) in self.waiting)
        self.before = parts.run_count - self.wanted
        self.done, self.failed, self.began = 0, 0, time.monotonic()

    def run(self, threads: int) -> None:
        """Runs all tasks and takes in what they bring."""
        if not self.waiting:
            return
        self._check()
        next_look, next_question = time.monotonic() + LOOK, time.monotonic() + ASK
        try:
            while self.waiting or self.running:
                while self.waiting and len(self.running) < AHEAD * max(threads, 1):
                    self._submit()
                with contextlib.suppress(queue.Empty):
                    self._take_in(self.ended.get(timeout=LOOK))
                if time.monotonic() >= next_question:
                    threads, next_question = _threads(self.client), time.monotonic() + ASK
                if time.monotonic() >= next_look:
                    next_look = time.monotonic() + LOOK
                    self._show(threads)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; {self.before + self.done} of {self.parts.run_count} runs are kept in {self.parts.path}; "
                "the same call resumes the sweep"
            ) from None
        finally:
            if self.line:
                self.line.clear()
            if self.running and self.client.status == "running":
                with contextlib.suppress(Exception):
                    self.client.cancel(list(self.running), force=True)

    def _check(self) -> None:
        """Asks the workers that are there whether they can take part; a worker that comes later is asked by its first task."""
        try:
            answers = self.client.run(_unable, self.work[0], self.work[1], on_error="return")
        except (OSError, TimeoutError) as why:
            raise _gone(self.client, why) from None
        except Exception as why:
            raise error(f"the cluster cannot run weir's tasks: {why!r}", _SAME_BUILD) from None
        for address, answer in sorted(answers.items()):
            if isinstance(answer, BaseException):
                raise error(f"the worker {address} cannot run weir's tasks: {answer!r}", _SAME_BUILD)
            if answer is not None:
                raise error(f"the worker {address} {answer[0]}", answer[1])

    def _submit(self) -> None:
        part, (name, runs) = self.waiting.popleft()
        # The token keeps the tasks of two sweeps of the same lab apart.
        key = f"{self.lab.name}-{name}-{self.token}"
        future = self.client.submit(_task, self.work, name, runs, key=key, pure=False)
        self.running[future] = (part, name, len(runs))
        future.add_done_callback(self.ended.put)

    def _take_in(self, future: Future) -> None:
        part, name, runs = self.running.pop(future)
        folder, files, failed = self._outcome(future, name)
        place = self.scratch / f"carried-{name}" if folder is None else Path(folder)
        for path, content in files:
            _write(place, path, content)
        self.parts.take_in(part, place, failed)
        shutil.rmtree(place, ignore_errors=True)
        future.release()
        self.done += runs - len(failed)
        self.failed += len(failed)

    def _outcome(self, future: Future, name: str) -> tuple[str | None, list[tuple[str, bytes]], list[tuple[str, str]]]:
        from distributed import CancelledError, KilledWorker

        try:
            return future.result()
        except Error:
            raise
        except KilledWorker as killed:
            raise error(
                f"the worker died in each of {killed.allowed_failures + 1} attempts to run {name}",
                "see the workers' logs, for lack of memory for example; the setting distributed.scheduler.allowed-failures of the "
                "scheduler permits more attempts; finished shards stay, and the same call goes on with the others",
            ) from None
        except (CancelledError, OSError, TimeoutError) as why:
            raise _gone(self.client, why) from None
        except Exception as why:
            raise error(f"{name} cannot be run: {why!r}", _SAME_BUILD) from why

    def _show(self, threads: int) -> None:
        if self.line is None:
            return
        gone = time.monotonic() - self.began
        left = f", about {_rounded(gone / self.done * (self.wanted - self.done))} left" if self.done else ""
        cluster = f"{threads} threads" if threads else "waiting for workers"
        share = 100 * self.done / self.wanted
        self.line.show(
            f"{share:3.0f} %  {self.done} of {self.wanted} runs on {cluster}; {_rounded(gone)} gone{left}"
        )


def _rounded(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _write(place: Path, path: str, content: bytes) -> None:
    """Writes a file of a part that has travelled back; its path is runs/RUN/FILE or FILE."""
    *folders, name = path.split("/")
    if len(folders) not in (0, 2) or folders[:1] not in ([], ["runs"]) or {"", ".", ".."} & {*folders, name}:
        raise error(f"a worker sent a file named {path!r}", _SAME_BUILD)
    inner = place.joinpath(*folders)
    inner.mkdir(parents=True, exist_ok=True)
    (inner / name).write_bytes(content)


# What follows runs in workers.

_SAME_BUILD = "install the same wheel of weir for the client, the scheduler and all workers"


def _unable(build: str, shared: tuple[str, str] | None) -> tuple[str, str] | None:
    """Why this worker cannot take part, and what to do; None if it can."""
    own = _weir._build()
    if own != build:
        return f"has another build of weir ({own}; the sweep's is {build})", _SAME_BUILD
    if shared is not None and not _eventually(lambda: _reads(shared)):
        folder = os.path.dirname(shared[0])
        return (
            f"does not share the folder {folder}",
            "give a folder that all workers mount under this path, or carry=True, with which results travel back",
        )
    return None


def _reads(shared: tuple[str, str]) -> bool:
    try:
        return (Path(shared[0]) / TOKEN).read_text() == shared[1]
    except OSError:
        return False


def _eventually(holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + VISIBLE
    while not holds():
        if time.monotonic() >= until:
            return False
        time.sleep(0.1)
    return True


@functools.lru_cache(maxsize=2)
def _lab(shared: tuple[str, str] | None, files: tuple[tuple[str, bytes], ...]) -> Lab:
    """The lab as the result folder has it, or from files that came with the task."""
    if shared is not None:
        return Lab.read(Path(shared[0]).parent / "lab.toml")
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return Lab.read(Path(folder, "lab.toml"))


def _task(
    work: tuple[str, tuple[str, str] | None, tuple[tuple[str, bytes], ...], int | None, list[str] | None],
    name: str,
    runs: list[int],
) -> tuple[str | None, list[tuple[str, bytes]], list[tuple[str, str]]]:
    """Runs a part. Returns its folder, or with carry its files, and the runs that failed, each with the reason."""
    from distributed import get_worker

    build, shared, files, size, groups = work
    worker = get_worker()
    unable = _unable(build, shared)
    if unable is not None:
        raise error(f"the worker {worker.address} {unable[0]}", unable[1])
    place = worker.local_directory if shared is None else shared[0]
    # Another attempt at this part may still be under way.
    folder = Path(place, f"{name}-{secrets.token_hex(4)}")
    kept = False
    try:
        failed = _weir._part(_lab(shared, files), runs, size, folder, groups)
        if shared is not None:
            # If the sweep has ended, nobody takes it.
            kept = _reads(shared)
            return str(folder), [], failed
        found = sorted(path for path in [*folder.glob("runs/*/*"), folder / DIGEST] if path.is_file())
        return None, [(str(path.relative_to(folder)), path.read_bytes()) for path in found], failed
    except (Error, OSError) as why:
        message = str(why).partition("\n  help: ")[0]
        elsewhere = "start the workers with another --local-directory" if shared is None else "out=DIR writes elsewhere"
        raise error(
            f"the worker {worker.address} cannot run {name}: {message}",
            f"check that this worker may write there and has space, or {elsewhere}; finished shards stay, and the same call goes on "
            "with the others",
        ) from None
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
            if shared is not None and not _reads(shared):
                # The folder of a sweep that has ended came back with what was written here.
                with contextlib.suppress(OSError):
                    os.rmdir(shared[0])
