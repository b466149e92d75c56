"""The examples of docs/python.md work, one after the other."""

import pathlib
import re

import polars

import weir

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def test_the_examples_of_the_manual_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names = {}
    for example in examples:
        exec(example, names)
    told = capsys.readouterr().out
    assert "agree\n" in told and 'did you mean "cubic"?\n' in told
    assert (tmp_path / "delay.svg").read_text().startswith("<svg")
    assert polars.DataFrame(names["flows"]).height == 4
    assert names["result"].is_complete


def test_every_public_name_is_described():
    page = PAGE.read_text()
    for name in weir.__all__:
        thing = getattr(weir, name)
        assert name == "__version__" or thing.__doc__, name
    for owner in (weir.Lab, weir.Result):
        for name in vars(owner):
            if not name.startswith("_"):
                assert getattr(owner, name).__doc__, name
                assert name in page, name
