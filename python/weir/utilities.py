"""How the overlay admits flows, for `traffic.NAME.overlay.admit` of a lab: weir.utilities.Log(priority=2).

A member without parameters may also be given by its name alone."""

from ._labs import members

__getattr__, __dir__ = members(__name__)
