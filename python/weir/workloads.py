"""What applications do, for `traffic.NAME.workload` of a lab: weir.workloads.Transfer(size="1 MB").

A member without parameters may also be given by its name alone."""

from ._labs import members

__getattr__, __dir__ = members(__name__)
