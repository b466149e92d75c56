"""Classes for the tables of labs, and for what labs use by name: a class for each table of the schema of lab files, with a keyword for each
of its keys. They are made when one is first used; `_labs.pyi` and the stubs beside it tell type checkers and editors the same."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import keyword
import textwrap
from typing import Any, Callable, ClassVar

from . import _weir

KINDS = {
    "controllers": "controller",
    "queues": "queue",
    "stations": "station",
    "transports": "transport",
    "utilities": "utility",
    "workloads": "workload",
}
"""The modules of members: what each is in the schema."""
SIDES = ("down", "up")
"""The keys of a value for each direction of a link, which is a dict of the two."""
WIDTH = 100
"""Length of a line in descriptions."""
BY_KIND = "stations"
"""The table whose members have a class for each kind, in the module of this name."""


class LabTable(dict):
    """A table of a lab: a dict of the keys that were given. A key that is left out, or None, has the default of labs."""

    _path: ClassVar[str] = ""
    _keys: ClassVar[dict[str, str]] = {}
    """The key for each keyword."""
    _kind: ClassVar[dict[str, str]] = {}

    def __init__(self, **values: Any) -> None:
        super().__init__(self._kind)
        for word, value in values.items():
            if word not in self._keys:
                raise TypeError(f"{_name(type(self))} has no key {word!r}{_nearest(word, self._keys)}")
            if value is not None:
                self[self._keys[word]] = value

    def __repr__(self) -> str:
        own = {key: word for word, key in self._keys.items()}
        given = [f"{own.get(key, key)}={value!r}" for key, value in self.items() if (key, value) not in self._kind.items()]
        return f"{_name(type(self))}({', '.join(given)})"


def _name(of: type) -> str:
    return f"{of.__module__}.{of.__qualname__}"


def _nearest(word: str, known: Any) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"


def _word(key: str) -> str:
    """The keyword for a key: words of Python get an underscore."""
    return f"{key}_" if keyword.iskeyword(key) else key


def _class_name(name: str, several: bool) -> str:
    """The name of a class: fq-codel is FqCodel, and one of the `links` a Link."""
    words = name.replace("-", "_").split("_")
    if several and len(words[-1]) > 1:
        words[-1] = words[-1].removesuffix("s")
    return "".join(word.capitalize() for word in words)


def _made(module: str, qualname: str, about: str, helps: list[dict[str, Any]], names: dict[str, Any]) -> type[LabTable]:
    """A class with a keyword for each key."""
    keys = {_word(key["path"].rpartition(".")[2]): key["path"].rpartition(".")[2] for key in helps}
    told = "\n".join(_folded(f"{word}: {_told(key)}") for word, key in zip(keys, helps))
    parameters = [inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None) for word in keys]
    own = {
        "__doc__": f"{_folded(about)}\n\n{told}" if told else _folded(about),
        "__module__": module,
        "__qualname__": qualname,
        "__signature__": inspect.Signature(parameters),
        "_keys": keys,
    }
    return type(qualname.rpartition(".")[2], (LabTable,), own | names)


def _told(key: dict[str, Any]) -> str:
    """What a key is, what it takes, its default and an example."""
    told = f"{key['summary']} Takes {key['values']}."
    if key["default"] is not None and not isinstance(key["default"], dict):
        told += f" Default: {_shown(key['default'])}."
    if key["example"] is not None:
        told += f" Example: {_shown(key['example'])}."
    return told


def _folded(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


@functools.cache
def _tables() -> dict[str, type[LabTable]]:
    """The classes of the tables at the top of a lab, with those of the tables below them."""
    known: dict[str, type[LabTable]] = {}
    tables = [(name, json.loads(_weir._setting(name))) for name in _weir._tables() if name != BY_KIND]
    made = (_table("", name, name, told, known) for name, told in tables)
    return {of.__qualname__: of for of in made}


def _own(keys: list[str]) -> list[str]:
    return [key for key in keys if key not in SIDES]


def _table(outer: str, key: str, path: str, told: dict[str, Any], known: dict[str, type[LabTable]]) -> type[LabTable]:
    """The class of a table at a path. Equal tables have one class, which has the name of the first of them."""
    keys = _own(told["keys"])
    helps = [json.loads(_weir._setting(f"{path}.{below}")) for below in keys]
    same = json.dumps([key, told["summary"], keys, [[of["summary"], of["values"]] for of in helps]])
    if same not in known:
        named = any(below.startswith("NAME.") for below in keys)
        several = bool(outer) and key.endswith("s") and (named or "a list" in told["values"])
        name = _class_name(key, several)
        qualname = f"{outer}.{name}" if outer else name
        inner = {}
        for below, of in zip(keys, helps):
            if _own(of["keys"]):
                made = _table(qualname, below.removeprefix("NAME."), of["path"], of, known)
                inner[made.__name__] = made
        inner["_path"] = f"{path}.NAME" if named else path
        known[same] = _made("weir", qualname, f"{told['summary']} `{path}` of a lab.", helps, inner)
    return known[same]


@functools.cache
def _members(module: str) -> dict[str, type[LabTable]]:
    """The classes of the members of a kind."""
    told = json.loads(_weir._setting(module) or "{}").get("keys", [])
    every = [json.loads(_weir._setting(f"{module}.{key}")) for key in told if key != "NAME.kind"]
    made = {}
    for name, about, parameters in json.loads(_weir._members(KINDS[module])):
        own = {"_kind": {"kind": name}, "_path": name}
        of = _made(f"weir.{module}", _class_name(name, False), f'{about}. "{name}" in a lab.', every + parameters, own)
        made[of.__qualname__] = of
    return made


def members(module: str) -> tuple[Callable[[str], type[LabTable]], Callable[[], list[str]]]:
    """The `__getattr__` and the `__dir__` of a module of members."""
    last = module.rpartition(".")[2]
    return functools.partial(_found, module, functools.partial(_members, last)), lambda: sorted(_members(last))


def _found(module: str, classes: Callable[[], dict[str, type[LabTable]]], name: str) -> type[LabTable]:
    if not name[:1].isupper() or name not in classes():
        near = _nearest(name, classes()) if name[:1].isupper() else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{near}")
    return classes()[name]


__getattr__ = functools.partial(_found, "weir", _tables)
