"""Writes the stubs of the classes that weir makes from the schema of labs: `weir/_labs.pyi`, and one for each module of members. The test
of the stubs compares them. `make python-stubs` renews them."""

import json
import sys
import textwrap
from pathlib import Path

from conftest import command_line

from weir import _labs

HEAD = '''\
"""{about} Written by python/tests/stubs.py."""

from typing import {names}

from ._weir import Value
'''
TABLE = '''
class LabTable(dict[str, Value]):
    """A table of a lab: a dict of the keys that were given. A key that is left out, or None, has the default of labs."""
'''
LAB = '''
class LabKeys(TypedDict, total=False):
    """The keys at the top of a lab."""

'''
TYPES = {"string": "str", "boolean": "bool", "integer": "int", "number": "float", "object": "Mapping[str, Value]"}


class Schema:
    """The schema of lab files."""

    def __init__(self):
        self.root = json.loads(command_line("schema"))

    def forms(self, schema):
        """The alternatives that a schema allows."""
        while "$ref" in schema:
            schema = self.root["$defs"][schema["$ref"].rpartition("/")[2]]
        if "anyOf" in schema:
            return [form for one in schema["anyOf"] for form in self.forms(one)]
        return [schema]

    def below(self, path):
        """The keys of the table at this path, each with its schema. NAME is any name, and a list is as its entries are."""
        found = [self.root]
        for key in path.split("."):
            found = [form for each in self.members(found, key) for form in self.forms(each)]
        keys = {}
        for form in [entry for form in found for entry in self.entries(form)]:
            for key, about in form.get("properties", {}).items():
                keys.setdefault(key, about)
        return keys

    def entries(self, form):
        return [form, *(self.forms(form["items"]) if "items" in form else [])]

    def members(self, forms, key):
        for form in [entry for form in forms for entry in self.entries(form)]:
            if key in form.get("properties", {}):
                yield form["properties"][key]
            elif key == "NAME" and isinstance(form.get("additionalProperties"), dict):
                yield form["additionalProperties"]

    def parameters(self, kind, name):
        """The keys of a member of a kind, each with its schema."""
        forms = self.root["$defs"][kind]["anyOf"]
        return next(form.get("properties", {}) for form in forms if form.get("title") == name)

    def annotation(self, schema):
        """The types of what a key takes."""
        words, forms = [], self.forms(schema)
        if any("title" in form for form in forms):
            # What programs add has names of its own.
            words.append("str")
        for form in forms:
            choices = form.get("enum", [one["const"] for one in form.get("oneOf", [form]) if "const" in one])
            choices = [choice for choice in choices if choice is not None]
            if choices and "str" not in words:
                words.append(f"Literal[{', '.join(map(_labs._shown, choices))}]")
                continue
            types = form.get("type", "object" if "properties" in form else "null")
            for name in [types] if isinstance(types, str) else types:
                if name == "array":
                    words.append(f"Sequence[{self.annotation(form['items']) if 'items' in form else 'Value'}]")
                elif name != "null":
                    words.append(TYPES[name])
        return " | ".join(dict.fromkeys(words))


def class_of(of, keys, schema):
    """The lines of a class."""
    doc = of.__doc__.replace("\\", "\\\\")
    lines = [f"class {of.__name__}(LabTable):", f'    """{doc.splitlines()[0]}']
    lines += [f"    {line}".rstrip() for line in doc.splitlines()[1:]]
    lines += ['    """', ""]
    for name, inner in vars(of).items():
        if isinstance(inner, type):
            if inner.__qualname__ != f"{of.__qualname__}.{name}":
                lines += [f"    {name} = {inner.__qualname__}"]
            else:
                lines += textwrap.indent("\n".join(class_of(inner, schema.below(inner._path), schema)), "    ").splitlines()
    parameters = [f"        {word}: {schema.annotation(keys[key])} | None = None," for word, key in of._keys.items()]
    if not parameters:
        return [*lines, "    ...", ""]
    return [*lines, "    def __init__(", "        self,", "        *,", *parameters, "    ) -> None: ...", ""]


def stubs():
    """The text of each stub, by the name of its file."""
    schema = Schema()
    classes = [class_of(of, schema.below(of._path), schema) for of in _labs._tables().values()]
    head = HEAD.format(about="Classes for the tables of labs.", names="Literal, Mapping, Sequence, TypedDict")
    keys = [f"    {key}: {schema.annotation(about)} | None\n" for key, about in schema.root["properties"].items()]
    texts = {"_labs.pyi": head + TABLE + "\n" + "\n".join("\n".join(lines) for lines in classes) + LAB + "".join(keys)}
    for module, kind in _labs.KINDS.items():
        own = schema.below(f"{_labs.BY_KIND}.NAME") if module == _labs.BY_KIND else {}
        classes = [class_of(of, own | schema.parameters(kind, of._path), schema) for of in _labs._members(module).values()]
        head = HEAD.format(about=f"Classes of {module}.", names="Literal, Mapping, Sequence") + "from ._labs import LabTable\n\n"
        texts[f"{module}.pyi"] = head + "\n".join("\n".join(lines) for lines in classes)
    return texts


if __name__ == "__main__":
    for name, text in stubs().items():
        Path(sys.argv[1], name).write_text(text)
