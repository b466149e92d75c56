"""Whatever comes in, an exception of weir or of Python comes out, never a panic."""

import contextlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weir
from conftest import TEXT

ORDINARY = (weir.Error, TypeError, ValueError, OverflowError, KeyError)
WORDS = ["run.repeats", "dumbbell", "dumbbell.queue", "traffic.bulk.cc", "vary", "pie", "20 Mbit/s", "-1 ms", "queue", "=", "a.b"]
WORDS += ["queue_delay_ms", "goodput_mbps", "links", "bulk", "dumbbell.rate", "time", "cdf", "lines", "heat", "delay-throughput"]

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
