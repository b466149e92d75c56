"""The stub says what the module does: the same names, parameters and descriptions."""

import ast
import inspect
import pathlib

import pytest

import weir
from stubs import stubs
from weir import _labs, _prototypes, _sweep

FOLDER = pathlib.Path(weir.__file__).parent
STUB = ast.parse((FOLDER / "_weir.pyi").read_text())
ENTRIES = [node for node in STUB.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]


def members(node):
    return [member for member in node.body if isinstance(member, ast.FunctionDef)]


CALLS = [(None, node) for node in ENTRIES if isinstance(node, ast.FunctionDef)]
CALLS += [(node, member) for node in ENTRIES if isinstance(node, ast.ClassDef) for member in members(node)]


def runtime(owner, node):
    return inspect.getattr_static(getattr(weir, owner.name) if owner else weir, node.name)


def words(text):
    return (text or "").split()


def test_the_stub_has_the_public_names():
    own = {node.name for node in ENTRIES} | set(_labs._tables()) | set(_labs.KINDS) | {"__version__"}
    assert own | set(_prototypes.__all__) | set(_sweep.__all__) == set(weir.__all__)
    for node in ENTRIES:
        if isinstance(node, ast.ClassDef) and not issubclass(getattr(weir, node.name), Exception):
            public = {name for name in vars(getattr(weir, node.name)) if not name.startswith("_")}
            assert public == {member.name for member in members(node) if not member.name.startswith("_")}


@pytest.mark.parametrize("node", ENTRIES, ids=lambda node: node.name)
def test_the_stub_describes_as_the_module_does(node):
    assert words(ast.get_docstring(node)) == words(getattr(weir, node.name).__doc__)


@pytest.mark.parametrize(("owner", "node"), CALLS, ids=lambda node: node and node.name)
def test_calls_have_the_parameters_and_descriptions_of_the_module(owner, node):
    call = runtime(owner, node)
    call = call.__func__ if isinstance(call, staticmethod) else call
    if node.name.startswith("__"):
        # Python itself names what a special method takes.
        return
    assert words(ast.get_docstring(node)) == words(call.__doc__)
    if any(getattr(decorator, "id", None) == "property" for decorator in node.decorator_list):
        return
    parameters = inspect.signature(call).parameters
    arguments = node.args
    assert list(parameters) == [argument.arg for argument in arguments.args + arguments.kwonlyargs]
    defaults = [parameter.default for parameter in parameters.values() if parameter.default is not parameter.empty]
    told = [ast.literal_eval(default) for default in arguments.defaults + arguments.kw_defaults]
    assert len(defaults) == len(told)
    assert [default for default in defaults if default is not ...] == [
        value for value, default in zip(told, defaults) if default is not ...
    ]


@pytest.mark.parametrize(("name", "text"), stubs().items(), ids=lambda each: each if each.endswith(".pyi") else "")
def test_the_stubs_of_the_tables_of_labs_are_current(name, text):
    ast.parse(text)
    assert (FOLDER / name).read_text() == text, "`make python-stubs` renews them"
