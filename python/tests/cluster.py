"""A Dask cluster of real processes on loopback: a scheduler and workers, which tests start and kill."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time

from distributed import Client

START = 60
"""Seconds that a process may take to start on a busy machine."""


class Cluster:
    """A scheduler and its workers, each a process with a folder of its own. Workers have one thread and no nanny: a worker that is killed
    stays dead."""

    def __init__(self, place, workers=2, allowed_failures=3):
        self.place, self.workers = place, []
        self.place.mkdir(parents=True, exist_ok=True)
        self.environment = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
        ready = self.place / "scheduler.json"
        arguments = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(ready)]
        self.scheduler = self._start("scheduler", arguments)
        self._until(ready.exists, "the scheduler")
        self.client = Client(scheduler_file=str(ready), timeout=f"{START} s")
        self.address = self.client.scheduler.address
        for _ in range(workers):
            self.add_worker()
        if workers:
            self.client.wait_for_workers(workers, timeout=START)

    def add_worker(self, first=(), largest_file=None, environment=None):
        """Starts a worker: `first` is put before its command, it writes no files above `largest_file` bytes."""
        local = self.place / f"worker-{len(self.workers)}"
        local.mkdir()
        arguments = [self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(local)]

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        worker = self._start("worker", arguments, first, limit if largest_file else None, environment)
        self.workers.append(worker)
        return worker

    def kill(self, worker):
        """Kills a worker as the machine's failure would."""
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    def close(self):
        with contextlib.suppress(Exception):
            self.client.close(timeout=2)
        for process in [*self.workers, self.scheduler]:
            if process.poll() is None:
                process.kill()
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self, what, arguments, first=(), prepare=None, environment=None):
        log = open(self.place / f"{what}-{len(self.workers)}.log", "wb")
        command = [*first, sys.executable, "-m", "dask", what, *arguments]
        return subprocess.Popen(
            command, stdout=log, stderr=log, preexec_fn=prepare, env=self.environment | (environment or {})
        )

    def _until(self, holds, what):
        until = time.monotonic() + START
        while not holds():
            if time.monotonic() > until:
                logs = {path.name: path.read_text(errors="replace")[-2000:] for path in self.place.glob("*.log")}
                raise TimeoutError(f"{what} did not start: {logs}")
            time.sleep(0.05)
