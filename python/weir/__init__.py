"""weir: a workbench for transport control. Labs, runs on the simulator, and results as tables and plots.

>>> lab = weir.Lab.read("labs/quickstart.toml")
>>> result = weir.run(lab)
>>> frame = polars.DataFrame(result.flows)
"""

from ._prototypes import Controller, Queue, controller, queue
from ._sweep import sweep
from ._weir import (
    Ack,
    BuiltIn,
    Comparison,
    Congestion,
    Delivered,
    Error,
    Lab,
    LabError,
    Link,
    Packet,
    RateSample,
    Restart,
    Result,
    Sent,
    Start,
    Table,
    Timeout,
    Timestamps,
    __version__,
    compare,
    open,
    run,
)

__all__ = [
    "Ack",
    "BuiltIn",
    "Comparison",
    "Congestion",
    "Controller",
    "Delivered",
    "Error",
    "Lab",
    "LabError",
    "Link",
    "Packet",
    "Queue",
    "RateSample",
    "Restart",
    "Result",
    "Sent",
    "Start",
    "Table",
    "Timeout",
    "Timestamps",
    "__version__",
    "compare",
    "controller",
    "open",
    "queue",
    "run",
    "sweep",
]
