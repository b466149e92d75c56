"""Results as tables, records, plots and verdicts."""

import pandas
import polars
import pyarrow
import pytest

import weir
from conftest import command_line

TABLES = ["runs", "flows", "groups", "links"]
RECORDS = ["links", "delays", "flows", "rtts", "transits", "transport", "states", "events", "decisions", "messages", "packets"]


@pytest.mark.parametrize("name", TABLES)
def test_pyarrow_polars_and_pandas_take_a_tidy_table(result, name):
    table = getattr(result, name)
    arrow, frame, other = pyarrow.table(table), polars.DataFrame(table), pandas.DataFrame.from_arrow(table)
    assert arrow.column_names == frame.columns == list(other.columns) == table.columns
    assert arrow.num_rows == frame.height == len(other) == len(table) >= 4
    for column in table.columns:
        assert arrow[column].to_pylist() == frame[column].to_list() == table[column]
        # In pandas, NaN stands for no value.
        assert [None if value != value else value for value in other[column]] == table[column]


def test_tidy_tables_are_those_of_the_export(result, tmp_path):
    command_line("export", result.path, "--out", tmp_path / "export")
    for name in TABLES:
        exported = polars.read_parquet(tmp_path / "export" / "tidy" / f"{name}.parquet")
        ours = polars.DataFrame(getattr(result, name))
        assert exported.columns == ours.columns
        for column in ours.columns:
            assert exported[column].to_list() == ours[column].to_list(), (name, column)


@pytest.mark.parametrize("name", RECORDS)
def test_records_of_all_runs_follow_each_other(result, name):
    table = result.records(name)
    frame = polars.DataFrame(table)
    assert table.columns[0] == "run" and frame.height == len(table)
    ids = result.runs["run"]
    assert [run for run in ids if run in set(table["run"])] == list(dict.fromkeys(table["run"]))
    of_one = result.records(name, run=ids[1])
    assert of_one["run"] == [ids[1]] * table["run"].count(ids[1])


def test_links_have_samples_of_the_whole_run(result):
    frame = polars.DataFrame(result.records("links", run=result.runs["run"][0]))
    assert frame.height > 0
    assert 0 < frame["at_ns"].max() <= 1_000_000_000


def test_consumers_read_the_table_where_it_is(result):
    table = result.records("links")
    first, second = pyarrow.table(table), pyarrow.table(table)
    for column in table.columns:
        for ours, theirs in zip(first[column].chunks, second[column].chunks, strict=True):
            addresses = [[buffer.address for buffer in array.buffers() if buffer is not None] for array in (ours, theirs)]
            assert addresses[0] == addresses[1]
    through_polars = polars.DataFrame(table).to_arrow()

    def values(column):
        return [chunk.buffers()[1].address for chunk in column.chunks]

    assert values(first["at_ns"]) == values(through_polars["at_ns"])


def test_a_table_outlives_its_result(lab, tmp_path):
    arrow = pyarrow.table(weir.run(lab, out=tmp_path / "out", report=False).records("links"))
    assert arrow["run"].to_pylist() == ["sim-r1"] * arrow.num_rows


def test_unknown_names_are_refused_with_a_suggestion(result):
    for ask, near in [
        (lambda: result.records("link"), "links"),
        (lambda: result.records("links", run="sim-pie-r9"), "sim-"),
        (lambda: result.plot("queue_delay"), "queue_delay_ms"),
        (lambda: result.plot("queue_delay_ms", kind="bar"), "bars"),
        (lambda: result.plot("queue_delay_ms", only={"queue": "red"}), "pie"),
        (lambda: result.plot(), "metric"),
    ]:
        with pytest.raises(weir.Error) as caught:
            ask()
        assert near in caught.value.suggestion
    with pytest.raises(KeyError):
        result.runs["no such"]
    with pytest.raises(ValueError):
        result.plot("queue_delay_ms", size=(0, 0))


@pytest.mark.parametrize("kind", ["time", "cdf", "bars"])
def test_a_plot_is_svg(result, kind):
    svg = result.plot("queue_delay_ms", kind=kind, by="queue", title="Delay of two queues")
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>")
    assert "Delay of two queues" in svg and "tail-drop" in svg and "pie" in svg


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(weir.Error) as caught:
        weir.open(tmp_path)
    assert caught.value.suggestion


def test_a_damaged_record_is_an_exception(lab, tmp_path):
    weir.run(lab, out=tmp_path / "out", report=False)
    (file,) = (tmp_path / "out").rglob("links.parquet")
    file.write_bytes(file.read_bytes()[:-10])
    opened = weir.open(tmp_path / "out")
    for ask in [lambda: opened.runs, lambda: opened.records("links")]:
        with pytest.raises(weir.Error, match="links.parquet"):
            ask()


def test_a_result_agrees_with_itself(result):
    compared = weir.compare(result, weir.open(result.path))
    assert compared.verdict == "agree"
    assert set(compared.rows["verdict"]) == {"agree"} and set(compared.rows["difference"]) == {0.0}


def test_another_rate_differs(result, tmp_path):
    lab = weir.Lab.parse(result.lab.toml()).set("dumbbell.rate", "10 Mbit/s")
    other = weir.run(lab, out=tmp_path / "out", report=False)
    compared = weir.compare(result, other)
    rows = polars.DataFrame(compared.rows)
    assert compared.verdict == "differ"
    assert rows.filter(polars.col("verdict") == "differ").height > 0


def test_results_of_different_labs_are_not_compared(result, lab, tmp_path):
    with pytest.raises(weir.Error):
        weir.compare(result, weir.run(lab, out=tmp_path / "out", report=False))
