//! The questions.

use super::Answer::{
    self, Chosen, Compare, Headline, Index, More, NotOnRun, Number, Read, Run, Says, Terminal,
};
use super::Of;

const DOWN: Of = Of::Link("down");
const UP: Of = Of::Link("up");

/// Chooses a flow, a node or a time in the picture of an overlay.
pub(super) const CHOOSE: &str = "const choose = (label, text) => { const list = document.querySelector(`select[aria-label=\"${label}\"]`); \
    list.value = [...list.options].find((option) => option.text === text).value; list.dispatchEvent(new Event('change')); }; \
    const at = (seconds) => { const slider = document.querySelector('input[type=range]'); \
    slider.value = Math.round(seconds * 10) - 1; slider.dispatchEvent(new Event('input')); }; \
    const row = (caption, name, column) => { const tables = [...document.querySelectorAll('table')]; \
    const table = tables.find((table) => table.caption && table.caption.textContent.startsWith(caption)); \
    const line = [...table.rows].find((line) => line.cells[0].textContent === name); \
    return +line.cells[column].textContent.replace(/[^0-9.]/g, ''); };";

/// The questions: a lab, what is asked, and the answer.
pub(super) const QUESTIONS: &[(&str, &str, Answer)] = &[
    // Two BDP of 40 ms are 80 ms at most, rounded up to a packet: 1.5 ms at 8 Mbit/s, 12 ms at 1 Mbit/s.
    ("thin-line", "is my downlink bloated?", Number("tail-drop", DOWN, "delay", [20.0, 81.5])),
    ("thin-line", "is my uplink bloated?", Number("tail-drop", UP, "delay", [1.0, 92.0])),
    // PIE aims at 15 ms; a packet alone takes 12 ms of the uplink.
    ("thin-line", "does PIE help my uplink?", Number("pie", UP, "delay", [4.0, 60.0])),
    ("thin-line", "what is the headline about?", Headline(&["link down", "link up"])),
    (
        "thin-line",
        "what does my upload get?",
        Number("tail-drop", Of::Group("upload"), "goodput", [0.0, 1.0]),
    ),
    ("thin-line", "which link does a column of the terminal name?", Terminal("up")),
    ("thin-line", "why is my upload so slow?", Index("acknowledgements")),
    ("thin-line", "which queue is best for the uplink?", Compare("delay&link=up", "at link up", UP, "delay")),
    // In half a BDP CUBIC backs off at each loss, BBR does not.
    ("bbr-beside-cubic", "who wins in a shallow queue?", More("shallow", "goodput", ["bbr", "cubic"])),
    // In eight BDP BBR is bounded by two BDP in flight, CUBIC by the queue.
    ("bbr-beside-cubic", "who wins in a deep queue?", More("deep", "goodput", ["cubic", "bbr"])),
    ("bbr-beside-cubic", "how sure is that?", Index("±")),
    ("bbr-beside-cubic", "how long is the deep queue?", Number("deep", DOWN, "delay", [60.0, 321.0])),
    ("bbr-beside-cubic", "and the shallow one?", Number("shallow", DOWN, "delay", [1.0, 21.0])),
    // Ten seconds of 50 Mbit/s and ten of 10: 30 Mbit/s on average.
    ("handover", "what could the link carry?", Index("30.0 Mbit/s")),
    ("handover", "what happened, and when?", Run("at 10 s link down: 10 Mbit/s, delay 30 ms")),
    ("handover", "what was it like on LTE?", Run("phase-2")),
    ("handover", "is it said that the line was one of 50 Mbit/s?", NotOnRun("of 50 Mbit/s")),
    // DualPI2's step marks L4S packets above 1 ms; its target for classic ones is 15 ms.
    ("l4s", "what do L4S packets wait?", Number("", Of::Class("down", "ect1"), "delay", [0.0, 2.0])),
    ("l4s", "what do classic packets wait?", Number("", Of::Class("down", "not-ect"), "delay", [5.0, 25.0])),
    // Five flows that always send share 5 Mbit/s, and the call wants 2.
    ("cameras", "do my cameras take more than their share beside a bulk flow?", Run("normalised flowshare")),
    ("call", "is that told where no flows are coordinated?", NotOnRun("normalised flowshare")),
    ("call", "why is my call bad?", Index("FQ-CoDel at link down gives each of")),
    // Eight BDP of 40 ms are 320 ms, above the deadline of 150; FQ-CoDel serves the call before the upload.
    ("call-queues", "which queue saves my call?", Headline(&["Frames of call on time: ", "with FQ-CoDel"])),
    (
        "call-queues",
        "how much does FQ-CoDel save?",
        Number("fq-codel", Of::Group("call"), "on-time", [99.0, 100.0]),
    ),
    ("call-queues", "and without it?", Number("tail-drop", Of::Group("call"), "on-time", [0.0, 80.0])),
    (
        "call-queues",
        "how many frames are lost?",
        Number("fq-codel", Of::Group("call"), "frames-lost", [0.0, 1.0]),
    ),
    ("call-queues", "is that in the terminal?", Says(&["on time", "goodput"])),
    // In half a BDP CUBIC backs off at each loss, BBR does not.
    (
        "bbr-flows",
        "what is left to CUBIC?",
        Headline(&["Shares of link down: BBR ", "with flows 1", "(16 flows)"]),
    ),
    ("bbr-flows", "who wins, one against one?", More("1", "goodput", ["bbr", "cubic"])),
    ("bbr-flows", "who wins, sixteen against sixteen?", More("16", "goodput", ["bbr", "cubic"])),
    ("bbr-flows", "what does CUBIC lose by BBR?", Number("1", Of::Group("cubic"), "harm", [30.0, 99.0])),
    ("bbr-flows", "is that in the terminal?", Says(&["bbr", "cubic", "goodput"])),
    (
        "cellular-controllers",
        "which keeps the queue short?",
        Headline(&["Queue delay at link down: ", "with CUBIC", "with BBR", "with Copa", "used"]),
    ),
    ("cellular-controllers", "how bloated is CUBIC?", Number("cubic", DOWN, "delay", [200.0, 3000.0])),
    ("cellular-controllers", "and Copa?", Number("copa", DOWN, "delay", [1.0, 200.0])),
    ("cellular-controllers", "is that in the terminal?", Says(&["goodput", "delay"])),
    // Copa ignores losses: 98 % of 100 Mbit/s arrive. CUBIC's window is about 1.2 / sqrt(0.02) segments a round trip.
    ("lossy", "what does SLIQ carry?", Number("SLIQ", Of::Group("data"), "goodput", [80.0, 98.0])),
    ("lossy", "what does CUBIC carry?", Number("CUBIC", Of::Group("data"), "goodput", [0.3, 4.0])),
    ("lossy", "is it on the front page?", Headline(&["with Copa over SLIQ", "with CUBIC over TCP", "used"])),
    (
        "lossy",
        "why has CUBIC so little?",
        Index("CUBIC takes every loss for congestion, and link down loses 2 % of all packets"),
    ),
    ("lossy", "is that in the terminal?", Says(&["goodput", "Copa over SLIQ"])),
    // 400 MB at 1 Gbit/s are 3.3 s with headers. A window of some 0.7 MB in 50 ms carries 110 Mbit/s.
    (
        "circuit",
        "how long does the file take?",
        Headline(&[
            "Completion time of file: did not complete within 10 s with a receive buffer of 1 MB",
            "with buffers as planned",
        ]),
    ),
    (
        "circuit",
        "and with buffers as planned?",
        Number("planned", Of::Group("file"), "completion", [3.3, 5.0]),
    ),
    ("circuit", "what limited it?", Run("limited by the receive window")),
    ("circuit", "is that in the terminal?", Says(&["done", "file did not complete within 10 s"])),
    // FQ-CoDel gives each of 25 flows 2.4 Mbit/s, a little less than a stream needs.
    ("streams", "do the streams come through?", Headline(&["Frames of video on time: ", "with FQ-CoDel"])),
    ("streams", "why do some frames fail?", Index("FQ-CoDel at link down gives each of")),
    ("streams", "is that in the terminal?", Says(&["on time"])),
    // Over b 10 ms, over c 80 ms: a packet that must arrive within 40 ms goes over b alone. One link of 4 Mbit/s cannot carry the rest.
    (
        "overlay",
        "which path does a flow take?",
        Chosen(
            "choose('Packets of', 'urgent');",
            &["After the warm-up, on average: a > b > d (", "Links at ", "packets of urgent", "a > b"],
        ),
    ),
    (
        "overlay",
        "does a flow without a deadline take both?",
        Chosen("choose('Packets of', 'bulk');", &["a > c > d (", "a > b > d ("]),
    ),
    // It offers 0.5 Mbit/s of payload; headers are 4 %.
    (
        "overlay",
        "what does a link carry of it?",
        Read("choose('Packets of', 'urgent'); found = row('Links at ', 'a > b', 1)", None, [0.4, 0.65]),
    ),
    // 42 bytes of headers and 1,024 of payload are 3.9 %; a context now and then is more.
    (
        "overlay",
        "what is the overhead?",
        Read(
            "found = row('Overhead of the overlay', 'headers', 1)",
            Some("overlay_overhead_percent"),
            [3.5, 4.5],
        ),
    ),
    (
        "overlay",
        "and of what nodes tell each other?",
        Read(
            "found = row('Overhead of the overlay', 'messages', 1)",
            Some("overlay_signalling_percent"),
            [0.1, 4.0],
        ),
    ),
    ("overlay", "is that in the terminal?", Says(&["headers", "messages"])),
    // Nothing is sent in the first second. Then the flow of priority 1 gets some 7 Mbit/s at K / depth: 1e12 / 7e6 bits are 18 kB.
    (
        "overlay",
        "how deep is a bin before there is traffic?",
        Read("at(0.9); choose('Bins of', 'a'); found = row('Bins of a at 0.9 s', 'd', 1)", None, [0.0, 0.0]),
    ),
    (
        "overlay",
        "how deep are the bins of a node at 8 s?",
        Read("at(8); choose('Bins of', 'a'); found = row('Bins of a at 8 s', 'd', 3)", None, [15e3, 21e3]),
    ),
    // From 12 s on the link has 5 Mbit/s, 4.8 of them payload: the flow of 6 Mbit/s cannot be carried, that of 3 can.
    (
        "refused",
        "by whom and why was a flow stopped?",
        Chosen("", &["Why flows were stopped", "large", "the planner", "did not fit into the"]),
    ),
    (
        "refused",
        "which share of its time was it admitted?",
        Read("found = row('Why flows were stopped', 'large', 2)", None, [42.0, 60.0]),
    ),
    (
        "refused",
        "and the other one?",
        Read("found = document.querySelectorAll('svg.admission rect.on.g0').length", None, [1.0, 1.0]),
    ),
    ("refused", "what would be best?", Run("Admitted and optimal rate")),
];
