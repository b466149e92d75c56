"""weir: a workbench for transport control. Labs, runs on the simulator and on real Linux, and results as tables and plots.

>>> lab = weir.Lab.read("labs/quickstart.toml")
>>> result = weir.run(lab)
>>> frame = polars.DataFrame(result.flows)
"""

from typing import TYPE_CHECKING

from . import _labs, controllers, queues, stations, transports, utilities, workloads
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

if TYPE_CHECKING:
    from ._labs import Chain, Dumbbell, Expect, Graph, Nic, Overlay, ParkingLot, Plot, Run, Star, Traffic

__getattr__ = _labs.__getattr__

__all__ = [
    "Ack",
    "BuiltIn",
    "Chain",
    "Comparison",
    "Congestion",
    "Controller",
    "Delivered",
    "Dumbbell",
    "Error",
    "Expect",
    "Graph",
    "Lab",
    "LabError",
    "Link",
    "Nic",
    "Overlay",
    "Packet",
    "ParkingLot",
    "Plot",
    "Queue",
    "RateSample",
    "Restart",
    "Result",
    "Run",
    "Sent",
    "Star",
    "Start",
    "Table",
    "Timeout",
    "Timestamps",
    "Traffic",
    "__version__",
    "compare",
    "controller",
    "controllers",
    "open",
    "queue",
    "queues",
    "run",
    "stations",
    "sweep",
    "transports",
    "utilities",
    "workloads",
]
