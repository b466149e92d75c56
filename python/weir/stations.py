"""Machines at routers, for `stations.NAME` of a lab: weir.stations.Policer(at="left", rate="5 Mbit/s")."""

from ._labs import members

__getattr__, __dir__ = members(__name__)
