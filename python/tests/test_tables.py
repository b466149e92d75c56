"""Labs of objects: the classes are those of the schema, and what they make is what a lab file would say."""

import copy
import inspect
import json
import pickle

import pytest

import weir
from conftest import TEXT, command_line
from weir import _labs

SCHEMA = json.loads(command_line("schema"))
MODULES = [weir.controllers, weir.queues, weir.stations, weir.transports, weir.utilities, weir.workloads]


def nested(of):
    """A class and those within it."""
    yield of
    for inner in vars(of).values():
        if isinstance(inner, type) and inner.__qualname__.startswith(f"{of.__qualname__}."):
            yield from nested(inner)


TABLES = [each for of in _labs._tables().values() for each in nested(of)]
MEMBERS = [getattr(module, name) for module in MODULES for name in dir(module)]


def first(**changes):
    """The lab of TEXT, of objects."""
    keys = {
        "name": "first",
        "run": weir.Run(duration="1 s", warmup="200 ms"),
        "dumbbell": weir.Dumbbell(rate="5 Mbit/s", rtt="20 ms"),
        "traffic": {"bulk": weir.Traffic(cc="cubic")},
    }
    return weir.Lab(**(keys | changes))


def keys_of(definition):
    return set(SCHEMA["$defs"][definition]["properties"])


def test_a_lab_of_objects_is_the_lab_of_the_text():
    assert [line for line in first().toml().splitlines() if line] == TEXT.splitlines()


def test_its_results_are_those_of_the_text(tmp_path):
    ours = weir.run(first(), out=tmp_path / "objects", report=False, progress=False)
    theirs = weir.run(weir.Lab.parse(TEXT), out=tmp_path / "text", report=False, progress=False)
    for name in ("flows", "links"):
        assert [getattr(ours, name)[column] for column in ours.flows.columns if column in getattr(ours, name).columns] == [
            getattr(theirs, name)[column] for column in theirs.flows.columns if column in getattr(theirs, name).columns
        ]


def test_each_table_of_the_schema_has_a_class_with_its_keys():
    assert set(weir.Dumbbell._keys.values()) == keys_of("Bottleneck")
    assert set(weir.Traffic._keys.values()) == keys_of("Traffic")
    assert set(weir.Run._keys.values()) == keys_of("Timing")
    assert set(weir.Graph.Link._keys.values()) == keys_of("GraphLink")
    assert set(weir.Expect._keys.values()) == keys_of("Written")
    assert set(weir.Dumbbell.Rate._keys.values()) == keys_of("TraceFile")
    assert set(weir.Dumbbell.Loss._keys.values()) == keys_of("LossTable")
    # All tables of the schema with keys of their own are in some class.
    known = [set(of._keys.values()) for of in TABLES]
    for name, definition in SCHEMA["$defs"].items():
        if "properties" in definition:
            assert any(set(definition["properties"]) <= keys for keys in known) or name in BELOW_MEMBERS, name


BELOW_MEMBERS = {"Application", "Config2", "Coordination", "StreamParameters", "StreamParameters2", "StreamParameters3"}
"""Tables among the parameters of members, which are dicts."""


def test_each_member_of_the_schema_has_a_class_with_its_parameters():
    for module, kind in _labs.KINDS.items():
        forms = {form["title"]: form for form in SCHEMA["$defs"][kind]["anyOf"] if "title" in form}
        classes = {of()["kind"]: of for of in _labs._members(module).values()}
        assert set(classes) == set(forms)
        for name, form in forms.items():
            assert set(classes[name]._keys.values()) == set(form.get("properties", {})) - {"kind"}, name


def test_public_names_are_those_of_the_tables():
    tables = {name for name in weir.__all__ if name in _labs._tables()}
    assert tables == set(_labs._tables())
    assert all(getattr(weir, name).__module__ == "weir" for name in tables)


@pytest.mark.parametrize("of", TABLES + MEMBERS, ids=lambda of: f"{of.__module__}.{of.__qualname__}")
def test_a_class_has_a_signature_and_tells_of_each_key(of):
    assert list(inspect.signature(of).parameters) == list(of._keys)
    lines = of.__doc__.split("\n")
    assert len(lines[0]) > 10
    for word, key in of._keys.items():
        told = [line for line in lines if line.startswith(f"{word}: ")]
        assert len(told) == 1 and word.isidentifier(), (key, told)
    assert all(len(line) <= _labs.WIDTH or " " not in line.strip() for line in lines)


def test_a_description_has_unit_default_and_example():
    told = " ".join(weir.Run.__doc__.split())
    assert 'Takes a time with its unit (ns, us, ms, s, min or h). Default: "10 s". Example: "25 ms".' in told
    assert "Takes a whole number from 1 to 1023. Default: 717." in " ".join(weir.controllers.Cubic.__doc__.split())


OF_LINKS_AND_FLOWS = [of for of in MEMBERS if of.__module__ in ("weir.controllers", "weir.queues")]


@pytest.mark.parametrize("of", OF_LINKS_AND_FLOWS, ids=lambda of: of.__qualname__)
def test_a_member_with_its_defaults_spelled_out_is_the_same_lab(of):
    kind, place = of()["kind"], "dumbbell.queue" if of.__module__ == "weir.queues" else "traffic.bulk.cc"
    helps = json.loads(weir._weir._members(_labs.KINDS[of.__module__.rpartition(".")[2]]))
    parameters = next(parameters for name, _, parameters in helps if name == kind)
    defaults = {_labs._word(help["path"]): help["default"] for help in parameters if help["default"] is not None}
    plain, spelled = (lab_with(place, each) for each in (of(), of(**defaults)))
    if isinstance(plain, weir.Lab):
        assert isinstance(spelled, weir.Lab), spelled
        assert all(help["path"] in spelled.toml() for help in parameters if help["default"] is not None)
    else:
        # A member that needs more than its defaults, or another transport, is refused for that, with and without them.
        assert "has no parameter" not in str(spelled)


def lab_with(place, member):
    try:
        return first().set(place, member)
    except weir.LabError as error:
        return error


def test_objects_are_values_of_settings_and_levels():
    lab = first().vary("dumbbell.queue", ["tail-drop", weir.queues.Pie(target="5 ms")])
    assert lab.run_count == 2 and '"pie"' in lab.toml() and '"5 ms"' in lab.toml()
    lab.set("traffic.bulk.cc", weir.controllers.Cubic(beta=700)).set("traffic.bulk.workload", weir.workloads.Transfer(size="1 MB"))
    assert "beta = 700" in lab.toml()
    assert first().set("dumbbell", weir.Dumbbell(rate={"down": "5 Mbit/s", "up": "1 Mbit/s"}, rtt="20 ms")).run_count == 1


def test_groups_and_levels_keep_their_order(tmp_path):
    groups = ["zebra", "apple", "mango"]
    levels = {"traffic.zebra.cc": ["newreno", "cubic"], "dumbbell.rate": ["9 Mbit/s", "5 Mbit/s"]}
    lab = first(traffic={name: weir.Traffic(cc="cubic") for name in groups}, vary=levels)
    result = weir.run(lab, out=tmp_path / "out", report=False, progress=False)
    assert result.groups["group"][:3] == groups
    assert result.runs["run"][0].index("newreno") < result.runs["run"][0].index("9")
    mix = first().vary("mix", {"slow": {"dumbbell.rate": "1 Mbit/s"}, "fast": {"dumbbell.rate": "9 Mbit/s"}})
    assert weir.run(mix, out=tmp_path / "mix", report=False, progress=False).runs["mix"] == ["slow", "fast"]


def test_words_of_python_have_an_underscore():
    window = weir.Run.Window(from_="200 ms", to="1 s", of="bulk")
    assert window == {"from": "200 ms", "to": "1 s", "of": "bulk"}
    assert first(run=weir.Run(duration="2 s", windows={"end": window})).run_count == 1
    assert repr(window) == "weir.Run.Window(from_='200 ms', to='1 s', of='bulk')"


def test_none_leaves_a_key_out():
    assert weir.Dumbbell(rate="5 Mbit/s", queue=None) == {"rate": "5 Mbit/s"}
    assert "chain" not in first(chain=None).toml()


def test_a_member_has_its_kind_and_shows_its_parameters():
    pie = weir.queues.Pie(target="5 ms")
    assert pie == {"kind": "pie", "target": "5 ms"}
    assert (repr(pie), repr(weir.queues.FqCodel())) == ("weir.queues.Pie(target='5 ms')", "weir.queues.FqCodel()")


def test_equal_tables_have_one_class():
    assert weir.Star.Wifi is weir.Dumbbell.Wifi and weir.Graph.Link.Wifi is weir.Dumbbell.Wifi


def test_objects_are_copied_and_pickled():
    for table in (weir.Dumbbell(rate="5 Mbit/s"), weir.Dumbbell.Wifi(stations=2), weir.queues.Pie(target="5 ms")):
        for other in (copy.copy(table), copy.deepcopy(table), pickle.loads(pickle.dumps(table))):
            assert (type(other), other) == (type(table), table)


def test_an_unknown_keyword_is_refused_with_the_nearest():
    with pytest.raises(TypeError, match="weir.Dumbbell has no key 'quue'; did you mean 'queue'"):
        weir.Dumbbell(quue="pie")
    with pytest.raises(TypeError, match="did you mean 'target'"):
        weir.queues.Pie(traget="5 ms")
    with pytest.raises(TypeError):
        weir.Dumbbell("5 Mbit/s")
    with pytest.raises(weir.LabError) as caught:
        first(trafic={})
    assert "traffic" in caught.value.suggestion


def test_an_unknown_class_is_refused_with_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'FqCodel'"):
        weir.queues.FqCodell
    with pytest.raises(AttributeError, match="did you mean 'Dumbbell'"):
        weir.Dumbell
    with pytest.raises(AttributeError, match="'weir' has no attribute 'nothing'$"):
        weir.nothing


def test_a_wrong_value_is_refused_with_its_line_and_a_suggestion():
    with pytest.raises(weir.LabError) as caught:
        first(traffic={"bulk": weir.Traffic(cc="cubik")})
    error = caught.value
    assert 'cc = "cubik"' in str(error) and '"cubic"' in error.suggestion and error.line is not None
    with pytest.raises(TypeError):
        first(dumbbell=weir.Dumbbell(rate=object()))


def test_a_trace_is_found_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steps").write_text("seconds,rate\n0,5000000\n1,2000000\n")
    assert first(dumbbell=weir.Dumbbell(rate=weir.Dumbbell.Rate(trace="steps"), rtt="20 ms")).run_count == 1
