"""Controllers and queues as Python classes."""

import collections
import json
import traceback

import polars
import pytest

import weir
from conftest import command_line
from newreno import NewReno

LAB = """\
format = 1
name = "prototypes"
[run]
duration = "8 s"
warmup = "1 s"
[dumbbell]
rate = "10 Mbit/s"
rtt = "40 ms"
queue = { kind = "tail-drop", limit = "40 packets" }
[traffic.bulk]
cc = "newreno"
"""

EVENTS = collections.Counter()


@weir.controller("beside-newreno")
class Beside(NewReno):
    """NewReno in Python, compared with weir's own after each event."""

    def __init__(self, start):
        super().__init__(start)
        self.own = weir.BuiltIn("newreno", start)


def compared(hook):
    def both(self, event):
        getattr(NewReno, hook)(self, event)
        getattr(self.own, hook)(event)
        EVENTS[hook] += 1
        assert self.window() == self.own.window(), hook
        assert self.slow_start_threshold() == self.own.slow_start_threshold(), hook
        assert self.state() == self.own.state(), hook

    return both


HOOKS = ["on_ack", "on_enter_recovery", "on_exit_recovery", "on_undo", "on_timeout", "on_restart"]
for hook in HOOKS:
    setattr(Beside, hook, compared(hook))
weir.controller("beside-newreno")(Beside)


def bulk(cc):
    return weir.Lab.parse(LAB).set("traffic.bulk.cc", cc)


def numbers(table):
    return polars.DataFrame(table).drop("run")


def test_newreno_in_python_has_the_windows_of_newreno_after_each_event(tmp_path):
    EVENTS.clear()
    lab = bulk("beside-newreno").set("traffic.bulk.flows", 2).set("dumbbell.loss", "0.5 %").set("run.duration", "30 s")
    # Packets that others overtake are resent for nothing, which is undone.
    lab.set("dumbbell.reorder", [{"packet": number, "by": 40} for number in range(1000, 9000, 1000)])
    weir.run(lab, out=tmp_path / "losses", report=False, jobs=1)
    pages = bulk("beside-newreno").set("traffic.bulk.workload", "requests").set("dumbbell.loss", "8 %")
    weir.run(pages.set("run.duration", "60 s"), out=tmp_path / "pages", report=False, jobs=1)
    assert EVENTS["on_ack"] > 10_000
    assert set(HOOKS) - set(EVENTS) == set()


def test_its_records_are_those_of_newreno(tmp_path):
    results = [
        weir.run(bulk(cc), out=tmp_path / cc, report=False, progress=False) for cc in ("newreno", "python-newreno")
    ]
    for table in ("links", "flows", "transport", "rtts", "states"):
        own, python = [numbers(result.records(table)) for result in results]
        assert own.height > 0 and own.equals(python), table


def test_a_run_is_deterministic(tmp_path):
    @weir.controller("drawing")
    class Drawing(weir.Controller):
        def on_ack(self, ack):
            self.size = ack.random.randrange(10, 20)

        def window(self):
            return self.mss * getattr(self, "size", 10)

    lab = bulk("drawing").set("traffic.bulk.flows", 2)
    first, second = [weir.run(lab, out=tmp_path / name, report=False) for name in "ab"]
    assert numbers(first.records("flows")).equals(numbers(second.records("flows")))


def test_parameters_are_those_of_init(tmp_path):
    @weir.controller("fixed")
    class Fixed(weir.Controller):
        def __init__(self, start, segments=20):
            super().__init__(start)
            self.segments = segments

        def on_ack(self, ack):
            pass

        def window(self):
            return self.segments * self.mss

    lab = bulk("fixed").vary("traffic.bulk.cc", [{"kind": "fixed", "segments": 10}, "fixed"])
    goodput = weir.run(lab, out=tmp_path / "out", report=False).groups["goodput_mbps"]
    assert goodput[1] == pytest.approx(2 * goodput[0], rel=0.02)
    with pytest.raises(weir.LabError) as caught:
        bulk({"kind": "fixed", "segment": 5})
    assert caught.value.suggestion == "did you mean `segments`?"
    with pytest.raises(weir.LabError) as caught:
        bulk("fixd")
    assert caught.value.suggestion == 'did you mean "fixed"?'


def test_an_exception_ends_the_runs_with_its_traceback(tmp_path):
    @weir.controller("failing")
    class Failing(NewReno):
        def on_ack(self, ack):
            if ack.delivered > 500:
                self.break_down(ack)

        def break_down(self, ack):
            raise ZeroDivisionError(f"after {ack.delivered} segments")

    lab = bulk("failing").set("run.repeats", 20)
    with pytest.raises(ZeroDivisionError, match="after 50[0-9] segments") as caught:
        weir.run(lab, out=tmp_path / "out", report=False)
    told = "".join(traceback.format_exception(caught.value))
    assert "in break_down" in told and "in on_ack" in told
    assert "failing" in "".join(getattr(caught.value, "__notes__", ["failing"]))
    assert not list((tmp_path / "out" / "runs").iterdir())


@pytest.mark.parametrize("window", [0, -1, None, 1.5, "ten", 2**64])
def test_a_window_that_is_none_ends_the_run(tmp_path, window):
    @weir.controller("odd")
    class Odd(weir.Controller):
        def on_ack(self, ack):
            pass

        def window(self):
            return window

    with pytest.raises(ValueError, match="window returned"):
        weir.run(bulk("odd"), out=tmp_path / "out", report=False)


def test_the_result_keeps_names_and_sources_and_says_so(tmp_path):
    out = tmp_path / "out"
    result = weir.run(bulk("python-newreno"), out=out)
    kept = json.loads((out / "prototypes.json").read_text())
    assert [(each["what"], each["name"]) for each in kept] == [("controller", "python-newreno")]
    assert "class NewReno" in kept[0]["source"] and "def remembered" in kept[0]["source"]
    assert "NO_THRESHOLD = 2147483647" in kept[0]["source"]
    pages = "".join(path.read_text() for path in out.rglob("*.html"))
    told = "controller python-newreno is a Python class (newreno.py:"
    assert told in pages
    assert told in " ".join(command_line("report", out).split())
    assert weir.open(out).flows["goodput_mbps"] == result.flows["goodput_mbps"]


def test_a_changed_class_is_not_mistaken_for_the_one_before(tmp_path):
    class Ten(weir.Controller):
        def on_ack(self, ack):
            pass

        def window(self):
            return 10 * self.mss

    class Twenty(weir.Controller):
        def on_ack(self, ack):
            pass

        def window(self):
            return 20 * self.mss

    out = tmp_path / "out"
    weir.controller("changing")(Ten)
    lab = bulk("changing")
    first = weir.run(lab, out=out, report=False)
    stamps = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    weir.run(lab, out=out, report=False)
    assert stamps == {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    weir.controller("changing")(Twenty)
    with pytest.raises(weir.Error, match="another build") as caught:
        weir.run(lab, out=out, report=False)
    assert "rerun=True" in caught.value.suggestion
    again = weir.run(lab, out=out, report=False, rerun=True)
    assert again.groups["goodput_mbps"][0] == pytest.approx(2 * first.groups["goodput_mbps"][0], rel=0.02)
    assert "20 * self.mss" in (out / "prototypes.json").read_text()


def test_a_lab_without_classes_is_read_once(tmp_path, monkeypatch):
    """Classes are registered here: the trace of a lab that names none of them may be gone by the time that it runs."""
    monkeypatch.chdir(tmp_path)
    steps = tmp_path / "steps"
    steps.write_text("seconds,rate\n0,5000000\n1,2000000\n")
    lab = bulk("newreno").set("dumbbell.rate", {"trace": "steps"})
    steps.unlink()
    assert len(weir.run(lab, out="out", report=False, progress=False).runs) == 1


def test_what_cannot_be_a_controller_is_refused():
    with pytest.raises(TypeError, match="derives from weir.Controller"):
        weir.controller("plain")(object)
    with pytest.raises(TypeError, match="no method window"):
        weir.controller("half")(type("Half", (weir.Controller,), {"on_ack": lambda self, ack: None}))
    for name in ("reno", "No Name", ""):
        with pytest.raises(weir.Error):
            weir.controller(name)(NewReno)
    with pytest.raises(TypeError, match="default of x"):

        @weir.controller("strange")
        class Strange(NewReno):
            def __init__(self, start, x=object()):
                pass

    with pytest.raises(ValueError, match="codepoint"):

        @weir.controller("ect2")
        class Ect2(NewReno):
            codepoint = "ect2"


@weir.queue("python-tail-drop")
class TailDrop(weir.Queue):
    """First in, first out; packets that do not fit are dropped."""

    def __init__(self, link, limit=40):
        self.packets, self.limit = collections.deque(), limit

    def enqueue(self, packet, now):
        if len(self.packets) < self.limit:
            self.packets.append(packet)
        else:
            packet.drop("full")

    def dequeue(self, now):
        return self.packets.popleft() if self.packets else None


def test_tail_drop_in_python_gives_the_records_of_tail_drop(tmp_path):
    results = []
    for queue in ({"kind": "tail-drop", "limit": "40 packets"}, "python-tail-drop"):
        lab = bulk("cubic").set("dumbbell.queue", queue).set("traffic.bulk.flows", 2)
        results.append(weir.run(lab, out=tmp_path / str(len(results))))
    for table in ("links", "delays", "flows", "transport"):
        own, python = [numbers(result.records(table)) for result in results]
        assert own.height > 0 and own.equals(python), table
    assert "queue python-tail-drop is a Python class" in command_line("report", results[1].path)


def test_a_queue_marks_and_reports_its_state(tmp_path):
    @weir.queue("python-step")
    class Step(TailDrop):
        def enqueue(self, packet, now):
            super().enqueue(packet, now)
            if len(self.packets) > 10 and packet.ecn != "not-ect":
                packet.mark()
                assert packet.ecn == "ce"

        def state(self):
            return {"packets_held": len(self.packets)}

    lab = bulk("dctcp").set("dumbbell.queue", {"kind": "python-step", "limit": 200})
    result = weir.run(lab, out=tmp_path / "out", report=False)
    delay = result.links["queue_delay_ms"][0]
    # Ten packets of 1500 bytes at 10 Mbit/s take 12 ms.
    assert 2 < delay < 30
    assert "packets_held" in set(result.records("states")["name"])


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        ({"dequeue": lambda self, now: None}, "none is to be sent"),
        ({"dequeue": lambda self, now: 7}, "expected a packet or None"),
        ({"enqueue": lambda self, packet, now: packet.drop("mood")}, "mood"),
        ({"enqueue": lambda self, packet, now: [packet.drop("full"), packet.drop("full")]}, "left the queue"),
        ({"enqueue": lambda self, packet, now: packet.mark()}, "not ECN-capable"),
    ],
)
def test_decisions_that_cannot_be_end_the_run(tmp_path, hook, said):
    weir.queue("odd-queue")(type("OddQueue", (TailDrop,), hook))
    with pytest.raises((ValueError, TypeError, weir.Error), match=said):
        weir.run(bulk("cubic").set("dumbbell.queue", "odd-queue"), out=tmp_path / "out", report=False)


@pytest.mark.parametrize("text", ["", "{}", "[7]", '[{"what": "controller"}]'])
def test_a_damaged_list_of_prototypes_is_an_exception(tmp_path, text):
    out = tmp_path / "out"
    weir.run(bulk("python-newreno"), out=out, report=False)
    (out / "prototypes.json").write_text(text)
    with pytest.raises(weir.Error, match="damaged"):
        weir.open(out)


def test_a_name_that_is_known_from_results_only_cannot_run(tmp_path):
    out = tmp_path / "out"
    weir.run(bulk("python-newreno"), out=out, report=False)
    kept = (out / "prototypes.json").read_text().replace("python-newreno", "from-elsewhere")
    (out / "prototypes.json").write_text(kept)
    weir.open(out)
    with pytest.raises(weir.Error, match="known from results only"):
        weir.run(bulk("from-elsewhere"), out=tmp_path / "other")
    assert not (tmp_path / "other").exists()
