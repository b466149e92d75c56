"""Classes of utilities. Written by python/tests/stubs.py."""

from typing import Literal, Mapping, Sequence

from ._weir import Value
from ._labs import LabTable

class Log(LabTable):
    """Elastic: U = p log(a r + 1), so r = K p / Q - 1 / a bit/s at a depth of Q bits, at most the cap
        (GNAT proxy, LOG). "log" in a lab.

    priority: Priority p, above 0: flows share a bottleneck in proportion to it. Takes a number.
        Default: 1.0. Example: 1.0.
    cap: The most that the flow may send. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s).
        Default: "10 Mbit/s". Example: "10 Mbit/s".
    shape: Shape a in seconds per bit, above 0; its inverse is subtracted from the rate. Takes a number.
        Default: 20.0. Example: 20.0.
    """

    def __init__(
        self,
        *,
        priority: float | None = None,
        cap: str | None = None,
        shape: float | None = None,
    ) -> None: ...

class Strap(LabTable):
    """Inelastic: the whole rate m or nothing; on while Q <= K p / (m (1 - delta i)) bits, with inertia i
        that grows from 0 to 1 (GNAT proxy, STRAP). "strap" in a lab.

    priority: Priority p, above 0. What counts is p / m: of two flows of one priority the one of the
        larger rate yields first. Takes a number. Default: 1.0. Example: 1.0.
    rate: Nominal rate m of its payload; by default what its workload offers. Takes a rate with its unit
        (bit/s, kbit/s, Mbit/s or Gbit/s). Example: "3 Mbit/s".
    delta: delta, from 0 to below 1: by how much a flow of full inertia tolerates a higher price, and
        what part of its packets may be lost. Takes a number. Default: 0.2. Example: 0.2.
    steps: Steps n from nothing to the whole rate, from 1 to 1000. Takes a whole number of 0 or more.
        Default: 8. Example: 8.
    """

    def __init__(
        self,
        *,
        priority: float | None = None,
        rate: str | None = None,
        delta: float | None = None,
        steps: int | None = None,
    ) -> None: ...

class Trap(LabTable):
    """Inelastic as STRAP, with a written rate m, at most b bit/s and delta 0.9; loss does not stop it
        (GNAT proxy, TRAP). "trap" in a lab.

    priority: Priority p, above 0. Takes a number. Default: 1.0. Example: 1.0.
    rate: Nominal rate m of its payload. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s).
        Default: "1 Mbit/s". Example: "10 Mbit/s".
    burst: Burst rate b, at least m: the most at which packets are admitted; by default twice m. Takes a
        rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s). Example: "2 Mbit/s".
    delta: delta, from 0 to below 1: by how much a flow of full inertia tolerates a higher price. Takes
        a number. Default: 0.9. Example: 0.9.
    """

    def __init__(
        self,
        *,
        priority: float | None = None,
        rate: str | None = None,
        burst: str | None = None,
        delta: float | None = None,
    ) -> None: ...

class Flog(LabTable):
    """Elastic with a floor: r = K p / Q - 1 / a bit/s, and nothing if the mean stays below the floor for
        16 intervals of 0.1 s (GNAT proxy, FLOG). "flog" in a lab.

    priority: Priority p, above 0: flows share a bottleneck in proportion to it. Takes a number.
        Default: 1.0. Example: 1.0.
    cap: The most that the flow may send. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s).
        Default: "100 Mbit/s". Example: "10 Mbit/s".
    floor: The least that is worth anything, at most the cap. Takes a rate with its unit (bit/s, kbit/s,
        Mbit/s or Gbit/s). Default: "0 bit/s". Example: "10 Mbit/s".
    shape: Shape a in seconds per bit, above 0; its inverse is subtracted from the rate. Takes a number.
        Default: 20.0. Example: 20.0.
    """

    def __init__(
        self,
        *,
        priority: float | None = None,
        cap: str | None = None,
        floor: str | None = None,
        shape: float | None = None,
    ) -> None: ...

class File(LabTable):
    """A transfer of a size with a time to end: value p log(size / time + 1); LOG of a priority from 1 to
        25 that follows from what is left (GNAT planner, file transfers). "file" in a lab.

    priority: Priority p of its value, above 0. Takes a number. Default: 1.0. Example: 1.0.
    within: The time from its start within which it should end; `size` beside `admit` says what it has.
        Takes a time with its unit (ns, us, ms, s, min or h). Default: "60 s". Example: "25 ms".
    cap: The most that the flow may send. Takes a rate with its unit (bit/s, kbit/s, Mbit/s or Gbit/s).
        Default: "100 Mbit/s". Example: "10 Mbit/s".
    """

    def __init__(
        self,
        *,
        priority: float | None = None,
        within: str | None = None,
        cap: str | None = None,
    ) -> None: ...
