"""How data is carried, for `traffic.NAME.transport` of a lab: weir.transports.Tfrc(discounting=False).

A member without parameters may also be given by its name alone."""

from ._labs import members

__getattr__, __dir__ = members(__name__)
