"""Labs, runs and results of weir."""

from os import PathLike
from random import Random
from typing import Any, Mapping, Sequence, Union, final

from typing_extensions import Unpack

from ._labs import LabKeys

Path = Union[str, PathLike[str]]
Value = Union[str, bool, int, float, Sequence["Value"], Mapping[str, "Value"]]
Problem = tuple[str, str | None, str | None, int | None, int | None]

__version__: str

class Error(Exception):
    """Something that weir cannot do; `suggestion` says what would help, or is None."""

    suggestion: str | None

class LabError(Error):
    """A lab that is wrong. `file`, `line` and `column` (from 1) are the place of the first problem, `suggestion` what to write
    there; each is None if there is none. `problems` has all of them: (message, suggestion, file, line, column)."""

    file: str | None
    line: int | None
    column: int | None
    problems: list[Problem]

@final
class Lab:
    """A lab that was read and found sound.

    It describes a network, its traffic, and what varies. Values that have a unit are texts: "20 Mbit/s", "40 ms", "64 KiB".

    Lab(**keys) makes a lab of the keys at the top of a lab file, such as weir.Lab(dumbbell=weir.Dumbbell(rate="20 Mbit/s",
    rtt="40 ms"), traffic={"bulk": weir.Traffic(cc="cubic")}). Values are objects of weir's classes, dicts, lists and plain values;
    None stands for a key that is left out, and `format` is 1. Files that the lab names are looked for in the working folder. Raises
    LabError if the lab is wrong: its lines are those of the text that weir writes of the keys."""

    def __init__(self, **keys: Unpack[LabKeys]) -> None: ...
    @staticmethod
    def read(path: Path) -> Lab:
        """Reads a lab file and what it extends. Raises LabError if the lab is wrong or cannot be read."""
    @staticmethod
    def parse(text: str, name: str = "lab") -> Lab:
        """Reads a lab from a text in TOML. `name` is the lab's name if the text gives none; files that the text extends are
        looked for in the working folder. Raises LabError if the lab is wrong."""
    def set(self, path: str, value: Value) -> Lab:
        """Sets the value at a path, such as lab.set("dumbbell.rate", "20 Mbit/s"), and returns the lab. A level that varies this
        path is taken out of the tree. Raises LabError if the lab would be wrong; it stays as it was then."""
    def vary(self, path: str, values: Sequence[Value] | Mapping[str, Mapping[str, Value]]) -> Lab:
        """Varies the value at a path, such as lab.vary("dumbbell.queue", ["tail-drop", "pie"]), and returns the lab. With a dict
        of labels, each with its settings, `path` is the name of the level. Raises LabError if the lab would be wrong; it stays as
        it was then."""
    def toml(self) -> str:
        """The lab as it runs, as one text in TOML: with all that it extends and all settings."""
    @property
    def name(self) -> str:
        """The lab's name: letters, digits, `-` and `_`."""
    @property
    def title(self) -> str | None:
        """What the lab shows, in a sentence; None if it does not say."""
    @property
    def run_count(self) -> int:
        """Number of runs of the lab's tree on one engine."""

@final
class Table:
    """A table. Its columns carry their unit in their names: `queue_delay_ms`, `goodput_mbps`, `at_ns`.

    pyarrow.table(t) and polars.DataFrame(t) take it without copies, and pandas.DataFrame.from_arrow(t) takes it too. t["run"] is a
    column as a list."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
    def __len__(self) -> int:
        """Number of rows."""
    def __getitem__(self, column: str) -> list[Any]:
        """A column as a list; None stands for no value. Raises KeyError if there is no such column."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface: the table as a stream of record batches. A requested schema is not followed."""
    def __arrow_c_schema__(self) -> object:
        """Arrow's PyCapsule interface: the names and types of the columns."""

@final
class Result:
    """The result of a lab: its tidy tables, its records and plots of its metrics."""

    @property
    def path(self) -> PathLike[str]:
        """The result folder."""
    @property
    def lab(self) -> Lab:
        """The lab as it was run."""
    @property
    def is_complete(self) -> bool:
        """Whether no run of the lab's tree is missing."""
    @property
    def runs(self) -> Table:
        """A row for each run, and one for each of its named windows: the chosen label on each level, and the run's metrics."""
    @property
    def flows(self) -> Table:
        """A row for each flow without random arrivals, with the flow's metrics."""
    @property
    def groups(self) -> Table:
        """A row for each traffic group, with the group's metrics."""
    @property
    def links(self) -> Table:
        """A row for each link and one for each class of its packets, with the link's metrics."""
    def records(self, table: str, run: str | None = None) -> Table:
        """The records of all runs, or of the run with this id: links, delays, flows, rtts, transits, transport, states, events,
        decisions, messages or packets. The first column is the run's id; times are in nanoseconds from the run's start. Raises
        Error if there is no such table or run, or if records cannot be read."""
    def plot(
        self,
        metric: str | None = None,
        kind: str = "bars",
        *,
        of: str | None = None,
        by: str | None = None,
        along: str | None = None,
        only: dict[str, str] | None = None,
        mean_over: Sequence[str] = (),
        log: bool = False,
        title: str | None = None,
        size: tuple[int, int] | None = None,
    ) -> str:
        """A plot as SVG, as `weir plot` draws it.

        metric: the metric, such as "queue_delay_ms"; `weir list metrics` prints all.
        kind: "time", "cdf", "bars", "lines", "heat" or "delay-throughput".
        of: the metric's link or group, if there are several.
        by: the level whose labels have a colour each. along: the level along the horizontal axis.
        only: a dict of labels that are kept, by level. mean_over: levels over whose labels the mean is taken.
        log: whether the axis of values ("cdf") or of the level ("lines") is logarithmic.
        title: a title other than the metric's. size: width and height in pixels.

        Raises Error if the result does not have what the plot asks for."""

@final
class Comparison:
    """Two results, compared."""

    @property
    def verdict(self) -> str:
        """ "agree" if every row agrees, "differ" if any row differs, otherwise "cannot tell"."""
    @property
    def rows(self) -> Table:
        """A row for each metric of each subject, in each cell and, if there are several, over all cells (`cell` is empty then):
        both means in the metric's unit, the difference with its 95 % interval (`low`, `high`), the bound, and the verdict. With
        `relative` 1, differences and the bound are shares of the reference's mean; with 0 they are in the metric's unit."""
    @property
    def left_out(self) -> list[tuple[str, str]]:
        """The runs that were left out, each with the reason."""

@final
class Start:
    """A connection that has just been established."""

    @property
    def now(self) -> int:
        """When it was established, in ns."""
    @property
    def mss(self) -> int:
        """Largest payload of a segment, in bytes."""
    @property
    def initial_window(self) -> int:
        """Initial window in segments."""
    @property
    def paced(self) -> bool:
        """Whether segments are paced even if the controller gives no rate."""
    @property
    def rtt(self) -> int | None:
        """Round-trip time of the handshake in ns; None if it could not be measured."""

@final
class Ack:
    """An acknowledgement, as the sender sees it."""

    @property
    def now(self) -> int:
        """When it arrived, in ns."""
    @property
    def delivered_segments(self) -> int:
        """Segments newly delivered, cumulatively or selectively."""
    @property
    def rtt(self) -> int | None:
        """Round-trip time in ns of the newest segment that was not retransmitted; None if no such segment was delivered."""
    @property
    def delayed(self) -> bool:
        """Whether the receiver may have delayed the acknowledgement, so that `rtt` is too long."""
    @property
    def srtt(self) -> int | None:
        """Smoothed RTT in ns after this sample (RFC 6298); None before the first sample."""
    @property
    def timestamps(self) -> Timestamps | None:
        """Its timestamps (RFC 7323); None without the option."""
    @property
    def rate(self) -> RateSample | None:
        """The sample of the delivery rate, if there is one."""
    @property
    def delivered(self) -> int:
        """All segments delivered so far, with the handshake as one."""
    @property
    def lost_segments(self) -> int:
        """Segments newly marked lost."""
    @property
    def lost(self) -> int:
        """All segments ever marked lost."""
    @property
    def departure(self) -> int:
        """When the pacer releases the next segment, in ns; not later than `now` if it may leave now."""
    @property
    def ce_packets(self) -> int:
        """Packets newly reported CE; with classic feedback, the segments acknowledged while ECE was set."""
    @property
    def in_flight_before(self) -> int:
        """Bytes in flight before this acknowledgement."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight after this acknowledgement."""
    @property
    def next_sequence(self) -> int:
        """Offset of the next new byte to be sent."""
    @property
    def acknowledged(self) -> int:
        """Offset of the first byte not acknowledged."""
    @property
    def round_start(self) -> bool:
        """Whether a round trip ended with this acknowledgement."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window, not the application or the receiver, limited sending."""
    @property
    def may_grow(self) -> bool:
        """Whether the window may grow: no reduction is under way, and data was delivered."""
    @property
    def phase(self) -> str:
        """The sender's phase: "open", "disorder", "cwr", "recovery" or "loss"."""
    @property
    def random(self) -> Random:
        """The connection's own random.Random, seeded by the run."""

@final
class Timestamps:
    """The timestamps of an acknowledgement."""

    @property
    def peer_ticks(self) -> int:
        """The peer's clock when it sent the acknowledgement, in its ticks."""
    @property
    def echoed_ticks(self) -> int:
        """Our clock when we sent the segment that is acknowledged, in our ticks."""
    @property
    def tick(self) -> int:
        """Length of a tick in ns, assumed to be the same at both ends."""

@final
class RateSample:
    """A sample of the delivery rate: segments delivered over an interval."""

    @property
    def delivered(self) -> int:
        """Segments delivered over the interval."""
    @property
    def interval(self) -> int:
        """The longer of the sample's send and acknowledgement intervals, in ns."""
    @property
    def prior_delivered(self) -> int:
        """Segments delivered when the newest acknowledged segment was sent."""
    @property
    def losses(self) -> int:
        """Segments newly marked lost."""
    @property
    def app_limited(self) -> bool:
        """Whether the sample was taken while the application limited sending."""

@final
class Congestion:
    """The congestion at which recovery or a reduction begins."""

    @property
    def now(self) -> int:
        """When it begins, in ns."""
    @property
    def signal(self) -> str:
        """Its signal: "loss", "ecn", "own" (by wants_reduction) or "refused" (the host's own queue refused a segment)."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight."""

@final
class Timeout:
    """The retransmission timer fired."""

    @property
    def now(self) -> int:
        """When it fired, in ns."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight without those marked lost."""
    @property
    def next_sequence(self) -> int:
        """Offset of the next new byte to be sent."""
    @property
    def reduce(self) -> bool:
        """Whether to lower the threshold: false if a loss in this flight has already caused a reduction."""
    @property
    def delivered(self) -> int:
        """All segments delivered so far, with the handshake as one."""
    @property
    def lost(self) -> int:
        """All segments ever marked lost."""

@final
class Restart:
    """Sending resumes, or the window was not used. Values that a kind does not have are None."""

    @property
    def kind(self) -> str:
        """"idle": nothing was sent for longer than a retransmission timeout. "transmit": sending begins while nothing is in
        flight. "unused": for a whole timeout the application used only part of the window."""
    @property
    def now(self) -> int:
        """The current time in ns."""
    @property
    def idle(self) -> int | None:
        """How long nothing was sent, in ns ("idle", "transmit")."""
    @property
    def rto(self) -> int | None:
        """The retransmission timeout in ns ("idle")."""
    @property
    def initial_window(self) -> int | None:
        """Initial window in segments ("idle", "unused")."""
    @property
    def app_limited(self) -> bool | None:
        """Whether the application limits sending ("transmit")."""
    @property
    def used(self) -> int | None:
        """Largest number of segments in flight in that time ("unused")."""

@final
class Sent:
    """A segment that is sent."""

    @property
    def now(self) -> int:
        """When it is sent, in ns."""
    @property
    def bytes(self) -> int:
        """Length of its payload in bytes."""
    @property
    def in_flight_before(self) -> int:
        """Bytes in flight before it."""
    @property
    def retransmission(self) -> bool:
        """Whether it is a retransmission."""

@final
class Delivered:
    """The delivery that an acknowledgement reports."""

    @property
    def now(self) -> int:
        """When the acknowledgement arrived, in ns."""
    @property
    def segments(self) -> int:
        """Segments newly delivered, cumulatively or selectively."""
    @property
    def acked_segments(self) -> int:
        """Segments that left the retransmission queue."""
    @property
    def sacked_out(self) -> int:
        """Segments reported by SACK that are not yet acknowledged cumulatively."""
    @property
    def ce_packets(self) -> int:
        """Newly delivered segments that were reported CE."""
    @property
    def rtt(self) -> int | None:
        """Round-trip time in ns of the newest segment that was not retransmitted; None if no such segment was delivered."""
    @property
    def delayed(self) -> bool:
        """Whether the receiver may have delayed the acknowledgement, so that `rtt` is too long."""
    @property
    def timestamps(self) -> Timestamps | None:
        """Its timestamps (RFC 7323); None without the option."""
    @property
    def own_ticks(self) -> int:
        """Our clock when the acknowledgement arrived, in the ticks of its timestamps; 0 without the option."""
    @property
    def next_sequence(self) -> int:
        """Offset of the next new byte to be sent."""
    @property
    def acknowledged(self) -> int:
        """Offset of the first byte not acknowledged."""
    @property
    def phase(self) -> str:
        """The sender's phase: "open", "disorder", "cwr", "recovery" or "loss"."""
    @property
    def predicted(self) -> bool:
        """Whether the acknowledgement only advanced the cumulative number: no SACK blocks, no other window, no echo of a
        mark."""

@final
class Link:
    """The link of a queue."""

    @property
    def rate(self) -> int:
        """Its initial rate in bit/s."""
    @property
    def base_rtt(self) -> int | None:
        """The base RTT of the lab in ns; None if it has no single one."""
    @property
    def mtu(self) -> int:
        """Length of the largest IP packet, in bytes."""
    @property
    def random(self) -> Random:
        """The queue's own random.Random, seeded by the run."""

@final
class Packet:
    """A packet in a queue."""

    @property
    def length(self) -> int:
        """Length of the IP packet in bytes, with its headers."""
    @property
    def flow(self) -> int:
        """Number of its flow in the run, from 0."""
    @property
    def ecn(self) -> str:
        """Its codepoint: "not-ect", "ect1", "ect0" or "ce"."""
    @property
    def dscp(self) -> int:
        """Its DSCP, 0 to 63."""
    @property
    def arrived(self) -> int:
        """When it arrived, in ns."""
    def drop(self, reason: str) -> None:
        """Drops it. reason: "full" (no room), "signal" (a congestion signal) or "overload" (it could have been marked).
        Raises ValueError if it has left the queue."""
    def mark(self) -> None:
        """Marks it CE. Raises ValueError if it is not ECN-capable or has left the queue."""

@final
class BuiltIn:
    """A controller of weir's own, with the hooks of Controller. `name` and parameters are those of labs. A controller in
    Python may follow it: it passes what its hooks take on, and differs where it likes."""

    def __init__(self, name: str, start: Start, **parameters: Value) -> None: ...
    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrives."""
    def on_sent(self, sent: Sent) -> None:
        """A segment is sent."""
    def on_delivered(self, delivered: Delivered) -> None:
        """An acknowledgement delivered segments."""
    def on_enter_recovery(self, congestion: Congestion) -> None:
        """Loss recovery begins, or a reduction."""
    def on_exit_recovery(self, now: int) -> None:
        """Recovery has ended."""
    def on_undo(self, now: int) -> None:
        """The last reduction was spurious."""
    def on_timeout(self, timeout: Timeout) -> None:
        """The retransmission timer fired."""
    def on_restart(self, restart: Restart) -> None:
        """Sending resumes, or the window was not used."""
    def open_to(self, window: int) -> None:
        """The path's rate was measured at the start: `window` in bytes."""
    def set_mss(self, mss: int) -> None:
        """The payload of a full segment changes, in bytes."""
    def window(self) -> int:
        """How many bytes may be in flight."""
    def slow_start_threshold(self) -> int | None:
        """The slow-start threshold in bytes; None if it has none."""
    def pacing_rate(self) -> int | None:
        """The rate in bit/s at which segments leave; None if the transport decides."""
    def wants_reduction(self) -> bool:
        """Whether it asks for a reduction for a reason of its own."""
    def state(self) -> dict[str, float]:
        """Its internal state: names and values."""

def run(
    lab: Lab,
    on: str = "sim",
    jobs: int | None = None,
    out: Path | None = None,
    progress: bool = True,
    rerun: bool = False,
    report: bool = True,
    allow_commands: bool = False,
) -> Result:
    """Runs a lab, as `weir run` does, and returns its result.

    lab: the lab.
    on: the engine: "sim", the simulator; "live", real Linux with its own TCP in network namespaces; or "sim,live", both.
    jobs: number of simulated runs side by side; all cores by default. Live runs take turns.
    out: the result folder, by default results/NAME. Runs that it holds already are kept, and the others are done.
    progress: whether the progress is shown on sys.stderr.
    rerun: whether runs that the folder holds are done again.
    report: whether the report is written.
    allow_commands: whether the lab's commands may run on this machine, as the user who runs Python. Without it, a lab that has some
    is refused on real Linux, and the exception shows them.

    An exception in a controller or a queue that is a Python class ends the runs, and is raised here.

    Other threads of Python run meanwhile. Ctrl-C ends the runs and raises KeyboardInterrupt; finished runs stay in the folder,
    and the same call goes on with the others. Live runs need root, or user namespaces (`weir doctor`); they are done by a process of
    their own, which ends with Python, however that ends. Raises Error if a run fails, if this machine cannot do it or the folder cannot be
    used."""

def open(folder: Path) -> Result:
    """Opens a result folder, which weir.run() or `weir run` has written. Its records are read when they are first needed. Raises
    Error if the folder holds no results or cannot be read."""

def compare(reference: Result, other: Result) -> Comparison:
    """Compares a result with a reference, as `weir compare` does: the difference of each metric that has a bound, with its 95 %
    interval over pairs of runs of the same cell and repeat. Raises Error if the two have no valid run in common."""
