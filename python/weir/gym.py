"""A `gymnasium` environment in which an agent is the congestion controller of one flow on the simulator.

    env = weir.gym.ControllerEnv(lab, "bulk", capacity_mbps=10)
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(action)

The simulator runs in a thread of its own. At the end of each step a hook of the controller hands over the observation and waits for the
action; virtual time stands still meanwhile. So an episode follows from the lab, the seed and the actions alone, however long the agent
thinks. It needs the package gymnasium (`pip install weir[gym]`)."""

from __future__ import annotations

import copy
import itertools
import math
import queue
import tempfile
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy

from ._prototypes import Controller, controller
from ._weir import Ack, Congestion, Lab, Start, Timeout, run

__all__ = ["ControllerEnv"]

NAME = "gym-agent"
"""The controller's name in labs."""
LEAST, MOST = 2, 100_000
"""Bounds of the window in segments."""
NS_PER_MS = 1e6


class ControllerEnv(gymnasium.Env):
    """One flow whose window an agent sets.

    lab: a lab of one run with one flow in the group.
    group: the name of the flow's group, whose controller is replaced.
    capacity_mbps: the rate in Mbit/s at which a reward of 1 is given for the throughput.
    interval_ms: the least length of a step in ms of the run; it ends with the first acknowledgement after that.
    delay_weight, loss_weight: what delay and loss cost.

    Action: a number a of [-1, 1]; the window becomes 2**a times as large, within 2 to 100,000 segments.

    Observation, of the step that has ended, five numbers of 0 or more:
    0. the mean round-trip time, relative to the least one so far
    1. the data delivered, in Mbit/s
    2. the share of segments that were lost
    3. the share of segments that were marked
    4. the window, in segments, as its logarithm to base 2

    Reward: delivered / capacity_mbps - delay_weight * (observation 0 - 1) - loss_weight * observation 2.

    An episode is a run: it is truncated when the run has ended. `reset(seed=n)` sets the run's seed; without a seed, the first episode has
    the lab's, and later ones have seeds that follow from the first. `info` has the time in ms ("time_ms"), the seed ("seed") and the
    window in segments ("window")."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        lab: Lab,
        group: str,
        capacity_mbps: float,
        interval_ms: float = 50.0,
        delay_weight: float = 0.2,
        loss_weight: float = 5.0,
    ) -> None:
        if lab.run_count != 1:
            raise ValueError(f"an environment needs a lab of one run; this one has {lab.run_count}")
        if not (capacity_mbps > 0 and interval_ms > 0):
            raise ValueError("capacity_mbps and interval_ms are above 0")
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), numpy.float32)
        self.observation_space = gymnasium.spaces.Box(0.0, numpy.inf, (5,), numpy.float32)
        self.capacity_mbps, self.interval = capacity_mbps, int(interval_ms * NS_PER_MS)
        self.delay_weight, self.loss_weight = delay_weight, loss_weight
        self._number = next(_NUMBERS)
        self._lab = copy.copy(lab).set(f"traffic.{group}.cc", {"kind": NAME, "number": self._number})
        self._episode: _Episode | None = None
        self._seed: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[numpy.ndarray, dict[str, Any]]:
        """Begins an episode. Returns the observation of its first step, in which the window is the initial one, and `info`."""
        again = seed is None and self._seed is not None
        super().reset(seed=seed)
        if again:
            seed = int(self.np_random.integers(1, 2**31))
        self.close()
        if seed is not None:
            self._lab.set("run.seed", seed)
            self._seed = seed
        else:
            # The environment's own random numbers begin anew too, so that later seeds follow from the lab's.
            self._seed = 0
            super().reset(seed=0)
        self._episode = _EPISODES[self._number] = _Episode(self.interval)
        self._episode.begin(self._lab)
        observation, _, _, _, info = self._told(self._episode.next())
        return observation, info

    def step(self, action: Any) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        """Takes an action. Returns the observation of the step that follows, its reward, False, whether the run has ended, and
        `info`."""
        if self._episode is None or self._episode.over:
            raise gymnasium.error.ResetNeeded("the episode has ended: call reset()")
        change = float(numpy.asarray(action, dtype=numpy.float64).reshape(-1)[0])
        if not math.isfinite(change):
            raise ValueError(f"an action is a number of [-1, 1], not {change}")
        return self._told(self._episode.act(min(max(change, -1.0), 1.0)))

    def close(self) -> None:
        """Ends the episode, if one is under way."""
        if self._episode is not None:
            self._episode.end()
            self._episode = None
        _EPISODES.pop(self._number, None)

    def _told(self, step: _Step) -> tuple[numpy.ndarray, float, bool, bool, dict[str, Any]]:
        segments = max(step.delivered + step.lost, 1)
        delay = step.mean_rtt / step.least_rtt if step.least_rtt else 1.0
        delivered_mbps = 8e3 * step.delivered * step.mss / max(step.length, 1)
        lost, marked = step.lost / segments, step.marked / segments
        observation = [delay, delivered_mbps, lost, marked, math.log2(step.window / step.mss)]
        reward = delivered_mbps / self.capacity_mbps - self.delay_weight * (delay - 1) - self.loss_weight * lost
        info = {"time_ms": step.end / NS_PER_MS, "seed": self._seed, "window": step.window / step.mss}
        return numpy.array(observation, numpy.float32), reward, False, step.last, info


_NUMBERS = itertools.count()
_EPISODES: dict[int, _Episode] = {}
"""The episodes under way, by the number of their environment."""


class _Ended(Exception):
    """Ends a run whose episode nobody goes on with."""


class _Step:
    """What happened since the last action. Times in ns, sizes in bytes, the rest in segments."""

    def __init__(self, begin: int, mss: int, window: int, least_rtt: int) -> None:
        self.begin, self.end, self.mss, self.window, self.least_rtt = begin, begin, mss, window, least_rtt
        self.delivered = self.lost = self.marked = self.rtts = self.rtt_sum = 0
        self.last = False

    @property
    def length(self) -> int:
        return self.end - self.begin

    @property
    def mean_rtt(self) -> float:
        return self.rtt_sum / self.rtts if self.rtts else float(self.least_rtt)


class _Episode:
    """A run in a thread of its own. The run and the agent take turns: one of them waits at any time."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.connection: _Agent | None = None
        self.over = False
        self.actions: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self.steps: queue.SimpleQueue[_Step | BaseException] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None

    def begin(self, lab: Lab) -> None:
        """Begins the run. The lab may change afterwards."""
        lab = copy.copy(lab)
        self.thread = threading.Thread(target=self._run, args=(lab,), name="weir.gym", daemon=True)
        self.thread.start()

    def _run(self, lab: Lab) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="weir-gym-") as folder:
                run(lab, jobs=1, out=Path(folder, "run"), progress=False, report=False)
            if self.connection is None:
                raise RuntimeError("the run has no connection: the flow did not begin")
            last = self.connection.step
            last.last = True
            self.steps.put(last)
        except _Ended:
            pass
        except BaseException as error:
            self.steps.put(error)

    def next(self) -> _Step:
        """The next step, when the run has reached its end."""
        step = self.steps.get()
        if isinstance(step, BaseException):
            self.over = True
            raise step
        self.over = step.last
        return step

    def act(self, change: float) -> _Step:
        self.actions.put(change)
        return self.next()

    def end(self) -> None:
        self.actions.put(None)
        if self.thread is not None:
            self.thread.join()
        self.over = True


@controller(NAME)
class _Agent(Controller):
    """The flow's controller: counts what happens, and asks the agent at the end of each step. The connection's other end has one too,
    which never hears of an acknowledgement of data."""

    def __init__(self, start: Start, number: int = 0) -> None:
        super().__init__(start)
        self.episode = _EPISODES[number]
        self.cwnd = start.initial_window * start.mss
        self.step = _Step(start.now, self.mss, self.cwnd, start.rtt or 0)

    def on_ack(self, ack: Ack) -> None:
        if self.episode.connection is not self and ack.delivered_segments > 0:
            if self.episode.connection is not None:
                raise ValueError("an environment needs a group of one flow with one connection")
            self.episode.connection = self
        step = self.step
        step.delivered += ack.delivered_segments
        step.lost += ack.lost_segments
        step.marked += ack.ce_packets
        step.end = ack.now
        if ack.rtt is not None:
            step.rtts += 1
            step.rtt_sum += ack.rtt
            step.least_rtt = min(step.least_rtt or ack.rtt, ack.rtt)
        if step.length >= self.episode.interval:
            self._ask(step)

    def _ask(self, step: _Step) -> None:
        self.episode.steps.put(step)
        change = self.episode.actions.get()
        if change is None:
            raise _Ended
        self.cwnd = int(min(max(self.cwnd * 2**change, LEAST * self.mss), MOST * self.mss))
        self.step = _Step(step.end, self.mss, self.cwnd, step.least_rtt)

    def on_enter_recovery(self, congestion: Congestion) -> None:
        """The agent alone decides on the window."""

    def on_timeout(self, timeout: Timeout) -> None:
        """As above: the transport itself sends one segment at first."""

    def window(self) -> int:
        return self.cwnd
