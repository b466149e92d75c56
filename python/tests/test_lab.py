"""Labs are read, changed and refused."""

import pytest

import weir
from conftest import TEXT


def test_a_lab_is_read_from_a_file(tmp_path):
    file = tmp_path / "second.toml"
    file.write_text(TEXT.replace('name = "first"\n', 'title = "One flow"\n'))
    lab = weir.Lab.read(file)
    assert (lab.name, lab.title, lab.run_count) == ("second", "One flow", 1)


def test_a_setting_changes_the_lab_that_runs(lab):
    assert lab.set("dumbbell.rate", "20 Mbit/s").set("run.repeats", 3) is lab
    assert lab.run_count == 3
    assert '"20 Mbit/s"' in lab.toml()


def test_the_lab_reads_back_from_its_own_text(lab):
    lab.vary("dumbbell.queue", ["tail-drop", {"kind": "pie", "target": "5 ms"}]).set("run.repeats", 2)
    again = weir.Lab.parse(lab.toml())
    assert (again.name, again.run_count, again.toml()) == ("first", 4, lab.toml())


def test_labels_with_several_settings_vary_together(lab):
    lab.vary("mix", {"slow": {"dumbbell.rate": "1 Mbit/s"}, "fast": {"dumbbell.rate": "9 Mbit/s", "dumbbell.rtt": "5 ms"}})
    assert lab.run_count == 2


def test_a_setting_takes_a_varied_path_out_of_the_tree(lab):
    assert lab.vary("dumbbell.queue", ["tail-drop", "pie"]).run_count == 2
    assert lab.set("dumbbell.queue", "pie").run_count == 1


def test_a_wrong_lab_is_refused_with_its_place_and_a_suggestion():
    with pytest.raises(weir.LabError) as caught:
        weir.Lab.parse(TEXT.replace("cubic", "cubik"), name="wrong.toml")
    error = caught.value
    assert (error.file, error.line, error.column) == ("wrong.toml", 10, 6)
    assert '"cubic"' in error.suggestion
    assert error.problems == [(error.problems[0][0], error.suggestion, "wrong.toml", 10, 6)]
    assert "cubik" in str(error)
    assert isinstance(error, weir.Error)


def test_a_lab_that_cannot_be_read_has_no_place(tmp_path):
    with pytest.raises(weir.LabError) as caught:
        weir.Lab.read(tmp_path / "missing.toml")
    assert (caught.value.line, caught.value.column) == (None, None)
    assert caught.value.suggestion


def test_a_wrong_setting_leaves_the_lab_as_it_was(lab):
    before = lab.toml()
    for path, value in [("dumbbell.rate", "fast"), ("no.such", 1), ("a b = 3", 1), ("", ""), ("dumbbell.rate", 10**18)]:
        with pytest.raises(weir.LabError):
            lab.set(path, value)
    with pytest.raises(weir.LabError):
        lab.vary("dumbbell.queue", [])
    assert lab.toml() == before


def test_a_text_cannot_end_its_own_quotes(lab):
    title = 'a "quoted"\n\\ text\t with = and \u2028 \x7f'
    lab.set("title", title)
    assert lab.title == title
    assert weir.Lab.parse(lab.toml()).title == title


def test_values_of_other_types_are_refused(lab):
    circle = []
    circle.append(circle)
    for value, error in [(None, TypeError), (object(), TypeError), (b"1", TypeError), (circle, ValueError), (2**70, OverflowError)]:
        with pytest.raises(error):
            lab.set("run.repeats", value)
    with pytest.raises(TypeError):
        lab.set("dumbbell.queue", {1: 2})
