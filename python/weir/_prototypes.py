"""Controllers and queues as Python classes: what a class derives from, and how it gets the name by which labs use it."""

from __future__ import annotations

import inspect
import json
import os
import textwrap
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Mapping, TypeVar

from . import _weir

if TYPE_CHECKING:
    from ._weir import Ack, Congestion, Delivered, Link, Packet, Restart, Sent, Start, Timeout

__all__ = ["Controller", "Queue", "controller", "queue"]

T = TypeVar("T", bound=type)


class Controller:
    """A congestion controller. A class that derives from it has at least `on_ack` and `window`.

    An object of it is made for each connection. Its `__init__` takes the Start, then the parameters that labs may give. Hooks and
    their names are those of the controllers in Rust. Times are integers in nanoseconds from the start of the run, sizes in bytes,
    rates in bits per second. An exception in a hook ends the run. A run is to depend on nothing but its hooks' arguments: random
    numbers come from `ack.random`."""

    codepoint: ClassVar[str] = "ect0"
    """The codepoint of data segments if the connection has ECN: "off", "ect0" or "ect1"."""
    feedback: ClassVar[str] = "classic"
    """How the receiver reports marks: "classic" (RFC 3168), "dctcp" (RFC 8257) or "accurate" (RFC 9768)."""
    recovery: ClassVar[str] = "proportional"
    """What reduces the window step by step in recovery: the transport's PRR (RFC 6937), "proportional", or the controller, "own"."""
    keeps_queues_short: ClassVar[bool] = False
    """Whether it follows the delay and keeps the bottleneck's queue short."""

    def __init__(self, start: Start) -> None:
        self.mss = start.mss

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrives. Called for every acknowledgement, in every phase."""
        raise NotImplementedError("a controller has a hook on_ack")

    def window(self) -> int:
        """How many bytes may be in flight; at least 1. Below a segment, segments leave further apart than a round trip."""
        raise NotImplementedError("a controller has a hook window")

    def slow_start_threshold(self) -> int | None:
        """The slow-start threshold in bytes; None if it has none. Before the first loss it is 2**64 - 1."""

    def pacing_rate(self) -> int | None:
        """The rate in bit/s at which segments leave; with None the transport decides."""

    def on_enter_recovery(self, congestion: Congestion) -> None:
        """Loss recovery begins, or a reduction for an ECN echo or at its own request. `window` is the reduced one from now on; the
        transport's PRR approaches it."""

    def wants_reduction(self) -> bool:
        """Whether it asks for a reduction for a reason of its own, after an acknowledgement."""
        return False

    def on_exit_recovery(self, now: int) -> None:
        """Recovery has ended."""

    def on_undo(self, now: int) -> None:
        """The last reduction was spurious: it restores the state before it."""

    def on_timeout(self, timeout: Timeout) -> None:
        """The retransmission timer fired."""

    def on_restart(self, restart: Restart) -> None:
        """Sending resumes after an idle time, or the application did not fill the window."""

    def on_sent(self, sent: Sent) -> None:
        """A segment is sent."""

    def on_delivered(self, delivered: Delivered) -> None:
        """An acknowledgement delivered segments. Called before any response to it; `on_ack` comes last."""

    def send_quantum(self) -> int | None:
        """The smallest number of bytes that leave at once when pacing; None for two segments."""

    def windows_buffered(self) -> int:
        """How many windows the send buffer holds as it grows."""
        return 2

    def holds_back(self) -> bool:
        """Whether it now sends less than the path can carry, on purpose. Asked only with recovery "own"."""
        return False

    def open_to(self, window: int) -> None:
        """The path's rate was measured at the start: a window in slow start that is smaller opens to `window` bytes."""

    def set_mss(self, mss: int) -> None:
        """The payload of a full segment changes. A window that is counted in segments keeps their number."""
        self.mss = mss

    def state(self) -> Mapping[str, float]:
        """Its internal state for the records (`result.records("states")`): names and values."""
        return {}


class Queue:
    """A queue discipline. A class that derives from it has `enqueue` and `dequeue`.

    An object of it is made for each link. Its `__init__` takes the Link, then the parameters that labs may give. Times are integers in
    nanoseconds from the start of the run. An exception in a hook ends the run. A run is to depend on nothing but its hooks' arguments:
    random numbers come from `link.random`. Packets and bytes in the queue are counted outside of it."""

    def __init__(self, link: Link) -> None:
        pass

    def enqueue(self, packet: Packet, now: int) -> None:
        """A packet arrives. It is kept, or dropped (`packet.drop("full")`); others may be dropped or marked."""
        raise NotImplementedError("a queue has a hook enqueue")

    def dequeue(self, now: int) -> Packet | None:
        """The link is free: the packet to send, or None if the queue holds none. Packets may be dropped or marked before."""
        raise NotImplementedError("a queue has a hook dequeue")

    def departs(self, now: int) -> int:
        """The earliest time, `now` or later, at which it can send one of the packets that it holds. Only a shaper has this hook; its
        `dequeue` may return None before that time."""
        return now

    def state(self) -> Mapping[str, float]:
        """Its internal state for the records: names with their unit (`drop_probability`, `delay_ms`) and values."""
        return {}


def controller(name: str) -> Callable[[T], T]:
    """Gives a class that derives from Controller the name by which labs use it: `cc = "NAME"`, or `cc = { kind = "NAME", x = 1 }`
    with parameters. The name is lower-case letters, digits, - and _, and is not one of weir's own. A class of the same name before it
    is replaced."""
    return _adding("controller", name, Controller)


def queue(name: str) -> Callable[[T], T]:
    """Gives a class that derives from Queue the name by which labs use it: `queue = "NAME"`, or `queue = { kind = "NAME", x = 1 }`
    with parameters. The name is lower-case letters, digits, - and _, and is not one of weir's own. A class of the same name before it
    is replaced."""
    return _adding("queue", name, Queue)


def _adding(what: str, name: str, base: type) -> Callable[[T], T]:
    def add(cls: T) -> T:
        if not (isinstance(cls, type) and issubclass(cls, base)):
            raise TypeError(f"a {what} is a class that derives from weir.{base.__name__}")
        prototype = {
            "what": what,
            "name": name,
            "origin": _origin(cls),
            "source": _source(cls),
            "parameters": _parameters(cls),
            "properties": _properties(cls) if base is Controller else {},
        }
        own = [hook for hook in vars(base) if getattr(cls, hook) is not getattr(base, hook)]
        for hook in ("on_ack", "window") if base is Controller else ("enqueue", "dequeue"):
            if hook not in own:
                raise TypeError(f"{cls.__name__} has no method {hook}, which every {what} has")
        _weir._add(json.dumps(prototype), cls, own)
        return cls

    return add


_CHOICES = {
    "codepoint": ("off", "ect0", "ect1"),
    "feedback": ("classic", "dctcp", "accurate"),
    "recovery": ("proportional", "own"),
    "keeps_queues_short": (False, True),
}


def _properties(cls: type) -> dict[str, object]:
    properties = {name: getattr(cls, name) for name in _CHOICES}
    for name, value in properties.items():
        if value not in _CHOICES[name]:
            raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, _CHOICES[name]))}")
    return properties


def _parameters(cls: type) -> dict[str, dict[str, object]]:
    """The parameters of `__init__` after the first, with their defaults."""
    parameters: dict[str, dict[str, object]] = {}
    for name, parameter in list(inspect.signature(cls).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        parameters[name] = {} if parameter.default is parameter.empty else {"default": parameter.default}
        try:
            json.dumps(parameters[name], allow_nan=False)
        except (TypeError, ValueError):
            raise TypeError(
                f"the default of {name} is {parameter.default!r}; a lab has texts, numbers, True and False, lists and dicts"
            ) from None
    return parameters


def _origin(cls: type) -> str:
    """What it is and where, without the folder: results are the same wherever they are made."""
    try:
        file, (_, line) = inspect.getsourcefile(cls) or "", inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return "a Python class"
    return f"a Python class ({os.path.basename(file)}:{line})" if os.path.isfile(file) else "a Python class (in a notebook)"


def _source(cls: type) -> str:
    """The source of a class, of the classes that it derives from, and of what their functions name in their modules. Modules that are
    imported are not followed."""
    parts: dict[str, str] = {}
    for each in cls.__mro__:
        if each not in (Controller, Queue, object):
            _gather(each, each.__module__, parts)
    return "\n".join(parts.values())


def _gather(thing: Any, module: str, parts: dict[str, str]) -> None:
    key = f"{module}.{getattr(thing, '__qualname__', repr(thing))}"
    if key in parts:
        return
    functions = _functions(thing)
    try:
        parts[key] = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        # Text that was run without a file has no source; its code tells it apart.
        parts[key] = "\n".join(_code(function.__code__) for function in functions)
    for function in functions:
        for name in sorted(_names(function.__code__)):
            value = function.__globals__.get(name)
            if isinstance(value, (FunctionType, type)):
                if value.__module__ == module:
                    _gather(value, module, parts)
            elif isinstance(value, (set, frozenset)):
                parts[f"{module}.{name}"] = f"{name} = {{{', '.join(sorted(map(repr, value)))}}}"
            elif isinstance(value, (bool, int, float, str, tuple, list, dict)):
                parts[f"{module}.{name}"] = f"{name} = {value!r}"


def _functions(thing: Any) -> list[FunctionType]:
    if isinstance(thing, FunctionType):
        return [thing]
    inner = (getattr(value, "__func__", value) for value in vars(thing).values())
    inner = (value.fget if isinstance(value, property) else value for value in inner)
    return [value for value in inner if isinstance(value, FunctionType)]


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _code(code: CodeType) -> str:
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return f"{code.co_name} {code.co_names} {code.co_varnames} {constants} {code.co_code.hex()}"
