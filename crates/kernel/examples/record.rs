//! Records the calls of a control's hooks in the running kernel: loads `bpf/recorder.c`, runs a command, and writes a trace of each
//! connection that it opened under `weir_recorder`, named in their order. `tests/differential` replays the traces.
//!
//!     record FOLDER NAME[,NAME...] -- COMMAND
//!
//! A trace begins with the size of a segment. Then it has one event per line, as changes since the event before:
//!
//!   mss BYTES
//!   ack TIME SEGMENTS ACKED RTT SRTT CE ADVANCE OUT PEER AGE IN_FLIGHT LIMITED GROW STATE SACKED PREDICTED
//!   recovery TIME STATE | undo TIME | timeout TIME IN_FLIGHT REDUCE | transmit TIME
//!
//! Times are microseconds (RTT -1: no sample), PEER the ticks of the peer's clock, AGE the ticks of our clock since the echoed segment
//! left, OUT the bytes between acknowledged and next; the rest is as in `bpf/host/host.c`.

use libbpf_rs::{MapCore, MapType, ObjectBuilder, RingBufferBuilder};
use std::cell::RefCell;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

static RECORDER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recorder.o"));

/// How long to wait for calls before checking whether the command has ended.
const LOOK_UP: Duration = Duration::from_millis(100);

/// `enum hook` of the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hook {
    Init,
    PktsAcked,
    InAckEvent,
    CongAvoid,
    Ssthresh,
    SetState,
    Undo,
    CwndEvent,
}

const HOOKS: [Hook; 8] = [
    Hook::Init,
    Hook::PktsAcked,
    Hook::InAckEvent,
    Hook::CongAvoid,
    Hook::Ssthresh,
    Hook::SetState,
    Hook::Undo,
    Hook::CwndEvent,
];

/// Numbers of states and events, and the flag of `in_ack_event` (include/net/tcp.h, include/uapi/linux/tcp.h).
const OPEN: u32 = 0;
const REDUCTION: u32 = 2;
const RECOVERY: u32 = 3;
const LOSS: u32 = 4;
const TX_START: u32 = 0;
const CWND_RESTART: u32 = 1;
const SLOW_PATH: u32 = 1;

/// `struct call` of the recorder.
#[derive(Debug, Clone, Copy)]
struct Call {
    connection: u64,
    now: u64,
    hook: Hook,
    first: u32,
    second: u32,
    mss: u32,
    delivered: u32,
    delivered_ce: u32,
    una: u32,
    nxt: u32,
    peer_ticks: u32,
    echoed_ticks: u32,
    srtt: u32,
    in_flight: u32,
    sacked: u32,
    limited: u32,
}

impl Call {
    fn read(bytes: &[u8]) -> Option<Call> {
        let long = |place: usize| Some(u64::from_ne_bytes(bytes.get(place..place + 8)?.try_into().ok()?));
        let word = |index: usize| {
            let place = 16 + 4 * index;
            Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
        };
        Some(Call {
            connection: long(0)?,
            now: long(8)?,
            hook: *HOOKS.get(word(0)? as usize)?,
            first: word(1)?,
            second: word(2)?,
            mss: word(3)?,
            delivered: word(4)?,
            delivered_ce: word(5)?,
            una: word(6)?,
            nxt: word(7)?,
            peer_ticks: word(8)?,
            echoed_ticks: word(9)?,
            srtt: word(10)?,
            in_flight: word(11)?,
            sacked: word(12)?,
            limited: word(13)?,
        })
    }
}

/// An acknowledgement whose hook calls are not complete.
#[derive(Debug)]
struct Pending {
    acked: u32,
    rtt: i32,
    told: Option<Call>,
    grows: bool,
    undone: bool,
}

/// A connection's trace while it is being written.
#[derive(Debug)]
struct Trace {
    text: String,
    connection: u64,
    /// The call that the newest event was written from.
    before: Call,
    /// The newest acknowledgement that was written.
    acknowledged: Call,
    pending: Option<Pending>,
    state: u32,
    /// Whether a threshold was requested but no change of state has followed yet.
    lowered: bool,
}

impl Trace {
    fn new(call: Call) -> Trace {
        Trace {
            text: format!("mss {}\n", call.mss),
            connection: call.connection,
            before: call,
            acknowledged: call,
            pending: None,
            state: OPEN,
            lowered: false,
        }
    }

    /// Writes an event's name and the time since the event before.
    fn begin(&mut self, event: &str, call: &Call) {
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{event} {}", call.now.saturating_sub(self.before.now));
        self.before = *call;
    }

    /// Writes the pending acknowledgement, once its calls are complete.
    fn settle(&mut self) -> Result<(), String> {
        let Some(Pending { acked, rtt, told, grows, undone }) = self.pending.take() else { return Ok(()) };
        let call = told.ok_or("an acknowledgement without in_ack_event")?;
        if undone {
            self.begin("undo", &call);
            self.text.push('\n');
        }
        self.begin("ack", &call);
        let last = self.acknowledged;
        let own_ticks = (call.now / 1_000) as u32;
        let age =
            if call.echoed_ticks == 0 { -1 } else { i64::from(own_ticks.wrapping_sub(call.echoed_ticks)) };
        let _ = writeln!(
            self.text,
            " {} {acked} {rtt} {} {} {} {} {} {age} {} {} {} {} {} {}",
            call.delivered.wrapping_sub(last.delivered),
            call.srtt,
            call.delivered_ce.wrapping_sub(last.delivered_ce),
            call.una.wrapping_sub(last.una),
            call.nxt.wrapping_sub(call.una),
            call.peer_ticks.wrapping_sub(last.peer_ticks).cast_signed(),
            call.in_flight,
            call.limited,
            u32::from(grows),
            self.state,
            call.sacked,
            u32::from(call.first & SLOW_PATH == 0),
        );
        self.acknowledged = call;
        Ok(())
    }

    fn take(&mut self, call: &Call) -> Result<(), String> {
        match call.hook {
            Hook::Init => return Err("a connection begins twice".into()),
            Hook::PktsAcked => {
                self.settle()?;
                let (acked, rtt) = (call.first, call.second.cast_signed());
                self.pending = Some(Pending { acked, rtt, told: None, grows: false, undone: false });
            }
            Hook::InAckEvent => {
                if self.pending.as_ref().is_none_or(|pending| pending.told.is_some()) {
                    self.settle()?;
                    self.pending =
                        Some(Pending { acked: 0, rtt: -1, told: None, grows: false, undone: false });
                }
                self.pending_now()?.told = Some(*call);
            }
            Hook::CongAvoid => self.pending_now()?.grows = true,
            Hook::Undo => self.pending_now()?.undone = true,
            Hook::Ssthresh => self.lowered = true,
            Hook::SetState => self.enter(call)?,
            Hook::CwndEvent if call.first == TX_START => {
                self.settle()?;
                self.begin("transmit", call);
                self.text.push('\n');
            }
            Hook::CwndEvent if call.first == CWND_RESTART => return Err("the connection was idle".into()),
            Hook::CwndEvent => {}
        }
        Ok(())
    }

    fn enter(&mut self, call: &Call) -> Result<(), String> {
        let (state, lowered) = (call.first, std::mem::take(&mut self.lowered));
        match state {
            LOSS => {
                self.settle()?;
                self.begin("timeout", call);
                let _ = writeln!(self.text, " {} {}", call.in_flight, u32::from(lowered));
            }
            REDUCTION | RECOVERY if lowered => {
                self.settle()?;
                self.begin("recovery", call);
                let _ = writeln!(self.text, " {state}");
            }
            _ => {}
        }
        self.state = state;
        Ok(())
    }

    fn pending_now(&mut self) -> Result<&mut Pending, String> {
        self.pending.as_mut().ok_or_else(|| "a call that belongs to no acknowledgement".into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, names, dashes, program, rest @ ..] = &arguments[..] else {
        return Err("record FOLDER NAME[,NAME...] -- COMMAND".into());
    };
    if dashes != "--" {
        return Err("the command comes after --".into());
    }
    let mut object = ObjectBuilder::default().name("recorder")?.open_memory(RECORDER)?.load()?;
    let control = object.maps_mut().find(|map| map.map_type() == MapType::StructOps);
    let _link = control.ok_or("the recorder holds no control")?.attach_struct_ops()?;
    let told = object.maps().find(|map| map.map_type() == MapType::RingBuf).ok_or("it tells nothing")?;
    let traces: RefCell<Vec<Trace>> = RefCell::default();
    let problem: RefCell<Option<String>> = RefCell::default();
    let hear = |bytes: &[u8]| {
        let mut traces = traces.borrow_mut();
        let Some(call) = Call::read(bytes) else { return 1 };
        let known = traces.iter_mut().rev().find(|trace| trace.connection == call.connection);
        let heard = match known {
            _ if call.hook == Hook::Init => {
                traces.push(Trace::new(call));
                Ok(())
            }
            Some(trace) => trace.take(&call),
            None => Ok(()),
        };
        if let Err(what) = heard {
            problem.replace(Some(what));
        }
        0
    };
    let mut ring = RingBufferBuilder::new();
    ring.add(&told, hear)?;
    let ring = ring.build()?;
    let mut command = Command::new(program).args(rest).spawn()?;
    let status = loop {
        ring.poll(LOOK_UP)?;
        if let Some(status) = command.try_wait()? {
            break status;
        }
    };
    ring.consume()?;
    if let Some(problem) = problem.take() {
        return Err(problem.into());
    }
    if !status.success() {
        return Err(format!("the command ended with {status}").into());
    }
    let names: Vec<&str> = names.split(',').collect();
    if names.len() != traces.borrow().len() {
        return Err(format!("{} connections, {} names", traces.borrow().len(), names.len()).into());
    }
    for (name, trace) in names.iter().zip(&mut *traces.borrow_mut()) {
        trace.settle()?;
        std::fs::write(Path::new(folder).join(format!("{name}.trace")), &trace.text)?;
    }
    Ok(())
}
