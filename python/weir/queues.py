"""Queue disciplines and shapers, for `dumbbell.queue` of a lab: weir.queues.Pie(target="5 ms").

A member without parameters may also be given by its name alone."""

from ._labs import members

__getattr__, __dir__ = members(__name__)
