//! SLIQ over UDP sockets. The protocol is `weir_sliq`, which has no socket and no clock; this module adds both, for
//! one socket and the connections that it carries. One thread drives them in a loop: packets in, timers, application, packets
//! out, sleep.

use rustix::event::PollFlags;
use std::io;
use std::os::fd::BorrowedFd;
use weir_base::{Span, Time};
use weir_linux::clock::Clock;
use weir_linux::udp::{Arrival, Buffers, UdpPort};
use weir_sliq::host::Host;

/// Receive calls before connections are served.
const TURNS: usize = 8;
/// Precision of departures: packets due within this time leave together, so that few calls send many.
const GRAIN: Span = Span::from_micros(200);

/// The application of a socket's connections.
pub trait Application {
    /// Something may have happened to a connection: it has opened, something can be read, there is room to write, or somebody has
    /// asked for it.
    fn on_moved(&mut self, number: usize, host: &mut Host, now: Time);
    /// What a connection had to send has left, so that it may take more.
    fn on_sent(&mut self, number: usize, host: &mut Host, now: Time) {
        let _ = (number, host, now);
    }
    /// A connection is over; its number may be used again.
    fn on_over(&mut self, number: usize, host: &mut Host, now: Time);
    /// When [`Application::on_timer`] is due.
    fn next_timer(&self) -> Time {
        Time::NEVER
    }
    /// Called when [`Application::next_timer`] is due.
    fn on_timer(&mut self, host: &mut Host, now: Time) {
        let _ = (host, now);
    }
    /// A descriptor, and the events on it, that the application waits for besides its connections; `None` if there is none.
    fn waits_for(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        None
    }
    /// Called when the descriptor of [`Application::waits_for`] is ready.
    fn on_ready(&mut self, host: &mut Host, now: Time) {
        let _ = (host, now);
    }
    /// Whether there is no more to do.
    fn is_done(&self) -> bool;
}

/// The clock of connections. It shows the time since it was made.
#[derive(Debug, Clone, Copy)]
pub struct Now(Clock);

impl Default for Now {
    fn default() -> Now {
        Now(Clock::starting_in(Span::ZERO))
    }
}

impl Now {
    /// Time since the clock was made.
    pub fn now(&self) -> Time {
        self.0.now()
    }
}

/// Drives the connections of a socket until their application has no more to do.
///
/// # Errors
/// The kernel's.
pub fn drive(
    port: &mut UdpPort,
    host: &mut Host,
    application: &mut dyn Application,
    clock: Now,
) -> io::Result<()> {
    let mut buffers = Buffers::default();
    let mut blocked: Vec<usize> = Vec::new();
    let mut latest = Time::ZERO;
    loop {
        for _ in 0..TURNS {
            let mut take = |arrival: Arrival, packet: &mut [u8]| {
                host.receive(arrival.from, packet, arrival.ecn, arrival.at);
            };
            if !port.receive(&mut buffers, &clock.0, latest, &mut take)? {
                break;
            }
        }
        let now = clock.now();
        host.on_timer(now);
        if now >= application.next_timer() {
            application.on_timer(host, now);
        }
        blocked.drain(..).for_each(|number| host.look_at(number));
        look_at_all(port, host, application, &clock, &mut blocked)?;
        latest = clock.now();
        if application.is_done() && !port.is_blocked() {
            return Ok(());
        }
        sleep(port, host, application, &clock)?;
    }
}

/// Serves all connections that may have something to do, and sends their packets.
fn look_at_all(
    port: &mut UdpPort,
    host: &mut Host,
    application: &mut dyn Application,
    clock: &Now,
    blocked: &mut Vec<usize>,
) -> io::Result<()> {
    while let Some((to, reply)) = host.reply() {
        port.send_one(to, &reply)?;
    }
    while let Some(number) = host.moved() {
        let now = clock.now();
        application.on_moved(number, host, now);
        let Some(peer) = host.peer(number) else { continue };
        // What follows from this one's packets may be further ones, which then leave with them.
        if !port.gather(peer, &mut |into| host.transmit(number, into, now))? {
            blocked.push(number);
        }
        application.on_sent(number, host, now);
        if host.settle(number, now) {
            application.on_over(number, host, now);
        }
    }
    port.flush()?;
    Ok(())
}

/// Sleeps until a packet arrives, a timer is due, or the application's descriptor is ready.
fn sleep(port: &UdpPort, host: &mut Host, application: &mut dyn Application, clock: &Now) -> io::Result<()> {
    let now = clock.now();
    let due = host.next_timer().max(now + GRAIN).min(application.next_timer());
    let timeout = (due < Time::NEVER).then(|| due.since(now));
    let ready = port.wait(application.waits_for(), timeout)?;
    if ready {
        application.on_ready(host, clock.now());
    }
    Ok(())
}
