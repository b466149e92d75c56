"""Congestion controllers, for `traffic.NAME.cc` of a lab: weir.controllers.Cubic(beta=700).

A member without parameters may also be given by its name alone."""

from ._labs import members

__getattr__, __dir__ = members(__name__)
