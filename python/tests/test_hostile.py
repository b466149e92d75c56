"""Whatever comes in, an exception of weir or of Python comes out, never a panic."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weir
from conftest import TEXT
from weir import _labs

ORDINARY = (weir.Error, TypeError, ValueError, OverflowError, KeyError)
WORDS = ["run.repeats", "dumbbell", "dumbbell.queue", "traffic.bulk.cc", "vary", "pie", "20 Mbit/s", "-1 ms", "queue", "=", "a.b"]
WORDS += ["queue_delay_ms", "goodput_mbps", "links", "bulk", "dumbbell.rate", "time", "cdf", "lines", "heat", "delay-throughput"]

KEYS = ["name", "format", "title", "extends", "run", "dumbbell", "traffic", "vary", "only", "chain", "stations", "expect", "nic", "overlay"]
TABLES = [*_labs._tables().values(), *(of for module in _labs.KINDS for of in _labs._members(module).values())]

texts = st.sampled_from(WORDS) | st.text(max_size=20)
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=4) | texts
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.integers(), inner, max_size=3))
optional = st.none() | texts
hostile = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


@hostile
@given(st.text(max_size=200), st.integers(0, len(TEXT)), st.integers(0, len(TEXT)))
def test_any_text_is_a_lab_or_an_exception(text, start, end):
    for whole in (text, TEXT[:start] + text + TEXT[end:]):
        with contextlib.suppress(ORDINARY):
            weir.Lab.parse(whole, name=text)


@hostile
@given(texts, values, st.booleans())
def test_any_setting_makes_a_lab_or_leaves_it_as_it_was(path, value, varies):
    lab = weir.Lab.parse(TEXT)
    before = lab.toml()
    try:
        (lab.vary if varies else lab.set)(path, value)
    except ORDINARY:
        assert lab.toml() == before
    else:
        assert weir.Lab.parse(lab.toml()).run_count == lab.run_count


@hostile
@given(st.sampled_from(TABLES), st.dictionaries(texts, values, max_size=3), st.data())
def test_any_keys_make_an_object_or_an_exception(of, others, data):
    known = data.draw(st.dictionaries(st.sampled_from(sorted(of._keys) or ["none"]), values, max_size=3))
    try:
        table = of(**known, **others)
    except TypeError:
        assert not set(known | others) <= set(of._keys) or set(known) & set(others)
    else:
        assert isinstance(table, dict) and repr(table).startswith("weir.")


@hostile
@given(st.dictionaries(st.sampled_from(sorted(KEYS)) | texts, values, max_size=3), st.booleans(), st.data())
def test_any_objects_make_a_lab_or_an_exception(keys, sound, data):
    if sound:
        dumbbell = data.draw(st.dictionaries(st.sampled_from(sorted(weir.Dumbbell._keys)), values, max_size=2))
        traffic = data.draw(st.dictionaries(st.sampled_from(sorted(weir.Traffic._keys)), values, max_size=2))
        keys = {
            "run": weir.Run(duration="1 s"),
            "dumbbell": weir.Dumbbell(**({"rate": "5 Mbit/s", "rtt": "20 ms"} | dumbbell)),
            "traffic": {"bulk": weir.Traffic(**({"cc": "cubic"} | traffic))},
        } | keys
    try:
        lab = weir.Lab(**keys)
    except ORDINARY:
        return
    assert weir.Lab.parse(lab.toml()).run_count == lab.run_count


@hostile
@given(texts, optional, optional, optional, optional, st.dictionaries(texts, texts, max_size=2), st.lists(texts, max_size=2))
def test_any_request_is_a_plot_or_an_exception(result, kind, metric, of, by, along, only, mean_over):
    with contextlib.suppress(ORDINARY):
        assert result.plot(metric, kind, of=of, by=by, along=along, only=only, mean_over=mean_over).startswith("<svg")


@hostile
@given(plain, plain)
def test_any_name_is_a_table_or_an_exception(result, table, run):
    with contextlib.suppress(ORDINARY):
        assert isinstance(result.records(table, run), weir.Table)
    with contextlib.suppress(ORDINARY):
        assert isinstance(result.runs[table], list)
    with pytest.raises(ORDINARY):
        weir.open(table)
    with pytest.raises(ORDINARY):
        weir.compare(result, run)
    with pytest.raises(ORDINARY):
        weir.run(run)
