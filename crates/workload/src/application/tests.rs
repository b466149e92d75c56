use super::*;
use crate::socket::{Received, Sockets};
use crate::{Action, Bytes, Config, Event, Role, Workload, Writes};
use weir_base::{Random, Rate};

/// A socket in memory: the calls that it received, and the results that it returns.
#[derive(Default)]
struct Fake {
    open: bool,
    room: u64,
    arrived: u64,
    written: u64,
    closed: bool,
    datagrams: Vec<u64>,
    unsent: u64,
    rate: Option<Rate>,
}

impl Socket for Fake {
    fn open(&mut self, _: Time) -> Result<(), Trouble> {
        Ok(())
    }
    fn is_open(&mut self) -> Result<bool, Trouble> {
        Ok(self.open)
    }
    fn write(&mut self, bytes: u64, _: &[u8], _: Time) -> Result<u64, Trouble> {
        let taken = bytes.min(self.room);
        self.room -= taken;
        self.written += taken;
        Ok(taken)
    }
    fn keep_full(&mut self, _: Writes) -> Result<bool, Trouble> {
        Err(Trouble::unsupported("write a stream"))
    }
    fn send(&mut self, length: Bytes, _: &[u8], _: Time) -> Result<(), Trouble> {
        self.datagrams.push(length.get());
        Ok(())
    }
    fn read(&mut self, at: Time, _: &mut dyn FnMut(&[u8], u64, Time)) -> Result<Received, Trouble> {
        Ok(Received { bytes: std::mem::take(&mut self.arrived), ended: false, at })
    }
    fn close(&mut self, _: Time) {
        self.closed = true;
    }
    fn unsent(&mut self) -> Result<Bytes, Trouble> {
        Ok(Bytes::new(self.unsent))
    }
    fn sending_rate(&mut self, _: Time) -> Option<Rate> {
        self.rate
    }
}

/// The sockets of an application: the sending and the receiving end of each flow.
#[derive(Default)]
struct Fakes(Vec<[Fake; 2]>);

impl Sockets for Fakes {
    type Socket<'a> = &'a mut Fake;
    fn at(&mut self, flow: usize, end: End) -> Option<&mut Fake> {
        Some(&mut self.0.get_mut(flow)?[end as usize])
    }
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn plan(role: Role) -> Plan {
    Plan { role, headers: Bytes::new(28), start: at(10), stop: at(1000) }
}

/// An application with the workload of this name, with its sockets.
fn application(workload: &str) -> (Application, Fakes) {
    let config: Config = workload.parse().unwrap();
    let workload = config.build(None, Bytes::new(28), Random::stream(1, "test"));
    (Application::new(workload, plan(config.role()), None), Fakes(vec![Default::default()]))
}

#[test]
fn a_transfer_opens_at_its_start_writes_when_the_socket_has_room_and_closes() {
    let (mut transfer, mut sockets) = application("transfer");
    let mut told = vec![];
    let mut tell = |_, notice| told.push(notice);
    assert_eq!(transfer.wake(0), at(10));
    transfer.on_timer(0, at(10), &mut sockets, &mut tell);
    assert!(transfer.wants_room(0, End::Sender));
    transfer.on_socket(0, End::Sender, at(20), &mut sockets, &mut tell);
    sockets.0[0][0] = Fake { open: true, room: 600_000, ..Fake::default() };
    transfer.on_socket(0, End::Sender, at(30), &mut sockets, &mut tell);
    assert_eq!(sockets.0[0][0].written, 600_000);
    sockets.0[0][0].room = 600_000;
    transfer.on_socket(0, End::Sender, at(40), &mut sockets, &mut tell);
    assert_eq!((sockets.0[0][0].written, sockets.0[0][0].closed), (1_000_000, true));
    assert_eq!(transfer.wake(0), Time::NEVER);
    sockets.0[0][1].arrived = 1_000_000;
    transfer.on_socket(0, End::Receiver, at(50), &mut sockets, &mut tell);
    assert!(transfer.on_end(0, End::Receiver, true, at(50), &mut sockets, &mut tell));
    assert!(!transfer.on_end(0, End::Receiver, true, at(60), &mut sockets, &mut tell));
    assert_eq!(transfer.read(0), 1_000_000);
    assert_eq!(told, [Notice::Started, Notice::Opened, Notice::Completed]);
}

#[test]
fn a_connection_that_opens_after_the_stop_of_its_flow_is_closed_without_data() {
    let (mut transfer, mut sockets) = application("transfer");
    let mut tell = |_, _| {};
    transfer.on_timer(0, at(10), &mut sockets, &mut tell);
    transfer.on_timer(0, at(1000), &mut sockets, &mut tell);
    assert_eq!(transfer.wake(0), Time::NEVER);
    sockets.0[0][0] = Fake { open: true, room: 1, ..Fake::default() };
    transfer.on_socket(0, End::Sender, at(1100), &mut sockets, &mut tell);
    assert_eq!((sockets.0[0][0].written, sockets.0[0][0].closed), (0, true));
    assert_eq!(transfer.wake(0), Time::NEVER);
}

#[test]
fn a_response_in_flight_at_the_stop_counts_and_is_the_last() {
    let (mut requests, mut sockets) = application("requests");
    let mut told = vec![];
    let mut tell = |_, notice| told.push(notice);
    requests.on_timer(0, at(10), &mut sockets, &mut tell);
    sockets.0[0][1] = Fake { open: true, room: 1000, ..Fake::default() };
    sockets.0[0][0].room = 100_000;
    requests.on_socket(0, End::Receiver, at(900), &mut sockets, &mut tell);
    assert_eq!(sockets.0[0][1].written, 400);
    sockets.0[0][0].arrived = 400;
    requests.on_socket(0, End::Sender, at(950), &mut sockets, &mut tell);
    assert_eq!(sockets.0[0][0].written, 30_000);
    requests.on_timer(0, at(1000), &mut sockets, &mut tell);
    sockets.0[0][1].arrived = 30_000;
    requests.on_socket(0, End::Receiver, at(1050), &mut sockets, &mut tell);
    assert_eq!(requests.wake(0), Time::NEVER);
    assert_eq!(told, [Notice::Started, Notice::Opened, Notice::Answered(0, Span::from_millis(150))]);
}

#[test]
fn an_operation_that_the_socket_does_not_support_is_reported_and_ends_the_flow() {
    let (mut bulk, mut sockets) = application("bulk");
    let mut told = vec![];
    let mut tell = |_, notice| told.push(notice);
    bulk.on_timer(0, at(10), &mut sockets, &mut tell);
    sockets.0[0][0].open = true;
    bulk.on_socket(0, End::Sender, at(20), &mut sockets, &mut tell);
    let why = Trouble::unsupported("write a stream");
    assert_eq!(why.to_string(), "cannot write a stream: its transport does not support this");
    assert_eq!(told, [Notice::Started, Notice::Opened, Notice::Failed(why)]);
    assert_eq!(bulk.wake(0), Time::NEVER);
}

/// Both flows send one packet, pause, and send the second packet once both have woken from their pauses.
struct Barrier {
    arrived: usize,
    waiting: Vec<usize>,
}

impl Workload for Barrier {
    fn next(&mut self, event: Event, now: Time) -> Action {
        self.next_for(0, event, now)
    }
    fn next_for(&mut self, flow: usize, event: Event, now: Time) -> Action {
        match event {
            Event::Start => Action::Send(Bytes::new(100), None),
            Event::Sent => Action::WaitUntil(now + Span::from_millis(10 + 20 * flow as u64)),
            Event::Woken => {
                self.arrived += 1;
                self.waiting.push(flow);
                Action::Await
            }
            _ => Action::Send(Bytes::new(200), None),
        }
    }
    fn released(&mut self) -> Option<usize> {
        if self.arrived < 2 { None } else { self.waiting.pop() }
    }
}

#[test]
fn one_application_holds_its_flows_at_a_barrier() {
    let role = Role::Datagrams(crate::Datagrams { ecn: weir_base::Ecn::NotEct, exact: false });
    let mut barrier = Application::new(Box::new(Barrier { arrived: 0, waiting: vec![] }), plan(role), None);
    barrier.add(plan(role), None);
    let mut sockets = Fakes(vec![Default::default(), Default::default()]);
    let sent = |sockets: &Fakes| [sockets.0[0][0].datagrams.clone(), sockets.0[1][0].datagrams.clone()];
    let mut tell = |_, _| {};
    for flow in 0..2 {
        barrier.on_timer(flow, at(10), &mut sockets, &mut tell);
    }
    assert_eq!((barrier.wake(0), barrier.wake(1)), (at(20), at(40)));
    barrier.on_timer(0, at(20), &mut sockets, &mut tell);
    assert_eq!(sent(&sockets), [vec![100], vec![100]], "the first flow waits");
    barrier.on_timer(1, at(40), &mut sockets, &mut tell);
    assert_eq!(sent(&sockets), [vec![100, 200], vec![100, 200]]);
}

/// An application with this workload, and its sockets, one pair for each of `flows`.
fn of_config(text: &str, flows: usize) -> (Application, Fakes) {
    let config: Config = serde_json::from_str(text).unwrap();
    let log = || config.log(at(10), at(1000), at(1000));
    let workload = config.build(None, Bytes::new(28), Random::stream(1, "test"));
    let mut application =
        Application::new(workload, plan(config.role()), log()).with_ensembles(config.ensemble_log());
    (1..flows).for_each(|_| application.add(plan(config.role()), log()));
    (application, Fakes((0..flows).map(|_| Default::default()).collect()))
}

#[test]
fn a_source_that_shrinks_frames_follows_the_rate_and_what_its_socket_holds() {
    let (mut frames, mut sockets) = of_config(
        r#"{ "kind": "frames", "fps": 25, "size": "2880 B", "source": "socket", "adapt": "shrink" }"#,
        1,
    );
    let mut tell = |_, _| {};
    let mut sent = |sockets: &mut Fakes, ms, unsent, rate| {
        let socket = &mut sockets.0[0][0];
        (socket.unsent, socket.rate) = (unsent, rate);
        frames.on_timer(0, at(ms), sockets, &mut tell);
        std::mem::take(&mut sockets.0[0][0].datagrams)
    };
    // Two packets of 1,460 and 1,420 bytes, each behind 40.
    assert_eq!(sent(&mut sockets, 10, 0, None), [1500, 1460]);
    // 400 kbit/s are 2,000 bytes in 40 ms, of which 500 wait: a part of 1,500 / 2,960 of the frame is left.
    let rate = Some(Rate::from_bits_per_sec(400_000));
    assert_eq!(sent(&mut sockets, 50, 500, rate), [1459 + 40]);
    assert_eq!(sent(&mut sockets, 90, 2000, rate), [0; 0], "nothing fits");
    assert_eq!(sent(&mut sockets, 130, 0, rate).len(), 2, "the packets of a frame whose part is 2,000 bytes");
    assert_eq!(sent(&mut sockets, 170, 0, Some(Rate::from_mbit_per_sec(1))), [1500, 1460]);
}

#[test]
fn a_source_that_drops_frames_drops_whole_ones() {
    let (mut frames, mut sockets) = of_config(
        r#"{ "kind": "frames", "fps": 25, "size": "2880 B", "source": "socket", "adapt": "drop" }"#,
        1,
    );
    let mut tell = |_, _| {};
    let rate = Some(Rate::from_bits_per_sec(400_000));
    let counts: Vec<usize> = (0..7)
        .map(|frame| {
            sockets.0[0][0].rate = rate;
            frames.on_timer(0, at(10 + 40 * frame), &mut sockets, &mut tell);
            std::mem::take(&mut sockets.0[0][0].datagrams).len()
        })
        .collect();
    // 2,000 of 2,960 bytes leave in an interval: two of three frames.
    assert_eq!(counts.iter().sum::<usize>(), 2 * 5, "{counts:?}");
    assert!(counts.iter().all(|count| [0, 2].contains(count)), "{counts:?}");
}

#[test]
fn frames_of_a_stream_are_written_at_their_times_and_whole_when_their_bytes_are_read() {
    let (mut frames, mut sockets) = of_config(
        r#"{ "kind": "frames", "fps": 25, "size": "1000 B", "source": "stream", "deadline": "50 ms" }"#,
        1,
    );
    let mut told = vec![];
    let mut tell = |_, notice| told.push(notice);
    frames.on_timer(0, at(10), &mut sockets, &mut tell);
    sockets.0[0][0] = Fake { open: true, room: 5000, ..Fake::default() };
    frames.on_socket(0, End::Sender, at(30), &mut sockets, &mut tell);
    frames.on_timer(0, at(30), &mut sockets, &mut tell);
    assert_eq!((sockets.0[0][0].written, frames.wake(0)), (1000, at(50)));
    frames.on_timer(0, at(50), &mut sockets, &mut tell);
    assert!(frames.cares(0, End::Receiver));
    sockets.0[0][1].arrived = 1999;
    frames.on_socket(0, End::Receiver, at(60), &mut sockets, &mut tell);
    sockets.0[0][1].arrived = 1;
    frames.on_socket(0, End::Receiver, at(110), &mut sockets, &mut tell);
    let frame = |number, fate| Notice::Frame(FrameRecord { number, fate });
    let (soon, late) = (Span::from_millis(50), Span::from_millis(60));
    assert_eq!(told[2..], [frame(0, crate::FrameFate::OnTime(soon)), frame(1, crate::FrameFate::Late(late))]);
}

#[test]
fn ensembles_at_a_frame_rate_skip_one_whole_while_a_flow_is_behind() {
    let (mut ensembles, mut sockets) =
        of_config(r#"{ "kind": "ensembles", "fps": 25, "size": "1000 B", "adapt": "drop" }"#, 2);
    let mut tell = |_, _| {};
    for flow in 0..2 {
        ensembles.on_timer(flow, at(10), &mut sockets, &mut tell);
        sockets.0[flow][0] = Fake { open: true, room: 100_000, ..Fake::default() };
    }
    for flow in 0..2 {
        ensembles.on_socket(flow, End::Sender, at(20), &mut sockets, &mut tell);
    }
    let mut written = |sockets: &mut Fakes, ms| {
        (0..2).for_each(|flow| {
            if ensembles.wake(flow) <= at(ms) {
                ensembles.on_timer(flow, at(ms), sockets, &mut tell);
            }
        });
        [0, 1].map(|flow| sockets.0[flow][0].written)
    };
    assert_eq!(written(&mut sockets, 20), [1000, 1000], "the first when both are open");
    assert_eq!(written(&mut sockets, 59), [1000, 1000]);
    sockets.0[0][0].unsent = 1001;
    assert_eq!(written(&mut sockets, 60), [1000, 1000], "the first flow's socket holds more than a frame");
    sockets.0[0][0].unsent = 0;
    assert_eq!(written(&mut sockets, 100), [2000, 2000]);
}
