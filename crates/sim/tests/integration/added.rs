//! Members that a program adds to the registries of controllers and queues take part in labs, and end their run if they fail.

use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_base::{Bytes, Prototype, Raised, Random, Time};
use weir_control::{Ack, Controller};
use weir_engine::{Cell, Engine, Jobs, Outcome, ResultFolder, Results, run_all};
use weir_plan::Lab;
use weir_queue::{Arrival, Decider, Decision, DropReason};
use weir_sim::Simulator;

/// A window of as many segments as a parameter says.
struct Fixed {
    segments: u64,
    mss: Bytes,
}

impl Controller for Fixed {
    fn on_ack(&mut self, ack: &Ack, _: &mut Random) {
        if self.segments == 13 && ack.delivered > 100 {
            Raised::raise("thirteen brings bad luck");
        }
    }
    fn window(&self) -> Bytes {
        Bytes::new(self.segments * self.mss.get())
    }
    fn set_mss(&mut self, mss: Bytes) {
        self.mss = mss;
    }
}

/// The newest packet first, as long as there is room.
#[derive(Debug)]
struct Newest {
    numbers: VecDeque<u64>,
    room: usize,
}

impl Decider for Newest {
    fn enqueue(&mut self, packet: &Arrival, _: Time, decide: &mut dyn FnMut(Decision)) {
        if self.numbers.len() < self.room {
            self.numbers.push_back(packet.number);
        } else {
            decide(Decision::Drop(packet.number, DropReason::Full));
        }
    }
    fn dequeue(&mut self, _: Time, _: &mut dyn FnMut(Decision)) -> Option<u64> {
        self.numbers.pop_back()
    }
}

fn prototype(what: &str, name: &str, parameter: &str) -> Prototype {
    serde_json::from_value(json!({
        "what": what, "name": name, "origin": "a test (added.rs)", "source": "1", "parameters": { parameter: { "default": 10 } },
    }))
    .unwrap()
}

fn add() {
    let fixed: Box<weir_control::Maker> = Box::new(|parameters, start| {
        Box::new(Fixed { segments: parameters["segments"].as_u64().unwrap(), mss: start.mss })
    });
    weir_control::Config::add(prototype("controller", "fixed", "segments"), Some(Arc::from(fixed))).unwrap();
    let newest: Box<weir_queue::Maker> = Box::new(|parameters, _, _| {
        Box::new(Newest { numbers: VecDeque::new(), room: parameters["room"].as_u64().unwrap() as usize })
    });
    weir_queue::Config::add(prototype("queue", "newest", "room"), Some(Arc::from(newest))).unwrap();
}

fn lab(cc: &str, queue: &str) -> Result<Lab, weir_plan::Diagnostics> {
    let text = format!(
        "format = 1\n[run]\nduration = '5 s'\nwarmup = '1 s'\nstart_jitter = '0 s'\nhost_jitter = '0 s'\n\
         [dumbbell]\nrate = '10 Mbit/s'\nrtt = '100 ms'\nqueue = {queue}\n[traffic.bulk]\ncc = {cc}\n"
    );
    Lab::from_str(&text, "added.toml", ".".as_ref(), &[])
}

struct Quiet;

impl weir_engine::Progress for Quiet {
    fn share(&self, _: usize, _: f64) {}
    fn ended(&self, _: usize, _: Result<&Outcome, &str>) {}
}

#[test]
fn an_added_controller_and_an_added_queue_run_in_a_lab() {
    add();
    let lab =
        lab("{ kind = 'fixed', segments = 20 }", "{ kind = 'tbf', queue = 'newest', rate = '9 Mbit/s' }");
    let lab = lab.unwrap_or_else(|error| panic!("{}", error.render(false, 100)));
    let run = Arc::new(lab.runs().remove(0));
    let mut names: Vec<_> = run.prototypes().iter().map(|named| named.prototype.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["fixed", "newest"]);
    let folder = tempfile::tempdir().unwrap();
    let out = ResultFolder::open(&folder.path().join("out"), lab.source(), "test").unwrap();
    let prototypes: Vec<_> = run.prototypes().into_iter().map(|named| named.prototype).collect();
    out.keep_prototypes(&prototypes).unwrap();
    let cells = [Cell { engine: &Simulator as &dyn Engine, run: &run, number: 0, wanted: true }];
    let tally = run_all(&cells, &out, &Jobs::default(), &AtomicBool::new(false), &Quiet).unwrap();
    assert!(tally.raised.is_none() && tally.failed.is_empty());
    let results = Results::open(out.path()).unwrap();
    let summary = results.summary(None).unwrap().runs.remove(0);
    assert_eq!(
        summary.prototypes,
        ["controller fixed is a test (added.rs)", "queue newest is a test (added.rs)"]
    );
    // Twenty segments of 1448 bytes each 100 ms, and the time in which some segments are sent, 1.3 ms each.
    let goodput = summary.groups[0].metrics.get("goodput_mbps").scalar().unwrap();
    assert!((2.1..2.32).contains(&goodput), "{goodput}");
}

#[test]
fn the_error_of_an_added_member_ends_the_session_and_is_not_tried_again() {
    add();
    let lab = lab("{ kind = 'fixed', segments = 13 }", "'tail-drop'").unwrap();
    let run = Arc::new(lab.runs().remove(0));
    let folder = tempfile::tempdir().unwrap();
    let out = ResultFolder::open(&folder.path().join("out"), lab.source(), "test").unwrap();
    let cells = [Cell { engine: &Simulator as &dyn Engine, run: &run, number: 0, wanted: true }];
    let tally = run_all(&cells, &out, &Jobs::default(), &AtomicBool::new(false), &Quiet).unwrap();
    assert_eq!(tally.raised.unwrap().to_string(), "thirteen brings bad luck");
    assert_eq!((tally.retried, tally.finished.len(), tally.cancelled), (0, 0, true));
}

#[test]
fn wrong_names_and_parameters_of_added_members_are_refused_with_advice() {
    add();
    let refusal = |cc: &str| lab(cc, "'tail-drop'").unwrap_err().to_string();
    let unknown = lab("'fixd'", "'tail-drop'").unwrap_err();
    assert_eq!(unknown.problems()[0].suggestion(), Some("did you mean \"fixed\"?"));
    let parameter = lab("{ kind = 'fixed', segment = 20 }", "'tail-drop'").unwrap_err();
    assert_eq!(parameter.problems()[0].suggestion(), Some("did you mean `segments`?"));
    assert!(refusal("{ kind = 'fixed', segment = 20 }").contains("has no parameter `segment`"));
    let taken = weir_control::Config::add(prototype("controller", "reno", "x"), None).unwrap_err();
    assert!(taken.contains("of its own"));
    assert!(weir_control::Config::add(prototype("controller", "No name", "x"), None).is_err());
}

#[test]
fn what_is_known_from_results_is_read_but_cannot_run() {
    weir_plan::know(prototype("controller", "elsewhere", "x")).unwrap();
    let lab = lab("'elsewhere'", "'tail-drop'").unwrap();
    assert!(!lab.runs()[0].prototypes()[0].can_be_made);
    assert!(weir_plan::know(prototype("station", "elsewhere", "x")).is_err());
}
