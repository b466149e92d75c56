"""Labs, runs and results of weir."""

from os import PathLike
from typing import Any, Mapping, Sequence, Union, final

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

    It describes a network, its traffic, and what varies. Values that have a unit are texts: "20 Mbit/s", "40 ms", "64 KiB"."""

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

def run(
    lab: Lab,
    on: str = "sim",
    jobs: int | None = None,
    out: Path | None = None,
    progress: bool = True,
    rerun: bool = False,
    report: bool = True,
) -> Result:
    """Runs a lab, as `weir run` does, and returns its result.

    lab: the lab.
    on: the engine, "sim". The command line runs labs on real Linux.
    jobs: number of runs side by side; all cores by default.
    out: the result folder, by default results/NAME. Runs that it holds already are kept, and the others are done.
    progress: whether the progress is shown on sys.stderr.
    rerun: whether runs that the folder holds are done again.
    report: whether the report is written.

    Other threads of Python run meanwhile. Ctrl-C ends the runs and raises KeyboardInterrupt; finished runs stay in the folder,
    and the same call goes on with the others. Raises Error if a run fails or the folder cannot be used."""

def open(folder: Path) -> Result:
    """Opens a result folder, which weir.run() or `weir run` has written. Its records are read when they are first needed. Raises
    Error if the folder holds no results or cannot be read."""

def compare(reference: Result, other: Result) -> Comparison:
    """Compares a result with a reference, as `weir compare` does: the difference of each metric that has a bound, with its 95 %
    interval over pairs of runs of the same cell and repeat. Raises Error if the two have no valid run in common."""
