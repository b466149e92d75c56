//! For how long what limited a sender (`enum tcp_chrono` of include/linux/tcp.h).

use weir_base::{Span, Time};

/// What limits a sender at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// There is no data to send, and none in flight.
    Nothing,
    /// The congestion window, the pacer, or the data in flight alone.
    Busy,
    ReceiveWindow,
    SendBuffer,
}

/// The limit at the moment, and the times of those before.
#[derive(Debug, Clone)]
pub(crate) struct Chrono {
    limit: Limit,
    since: Time,
    pub(crate) busy: Span,
    pub(crate) receive_window: Span,
    pub(crate) send_buffer: Span,
}

impl Chrono {
    pub(crate) fn new(now: Time) -> Chrono {
        let (busy, receive_window, send_buffer) = (Span::ZERO, Span::ZERO, Span::ZERO);
        Chrono { limit: Limit::Nothing, since: now, busy, receive_window, send_buffer }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, limit: Limit, now: Time) {
        if limit != self.limit {
            self.change(limit, now);
        }
    }

    #[inline(never)]
    fn change(&mut self, limit: Limit, now: Time) {
        *self = Chrono { limit, since: now, ..self.until(now) };
    }

    /// The times up to now.
    pub(crate) fn until(&self, now: Time) -> Chrono {
        let mut all = self.clone();
        let time = now.since(self.since);
        match self.limit {
            Limit::Nothing => return all,
            Limit::Busy => {}
            Limit::ReceiveWindow => all.receive_window += time,
            Limit::SendBuffer => all.send_buffer += time,
        }
        all.busy += time;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_for_what_limits_the_sender_in_it() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut chrono = Chrono::new(at(0));
        for (limit, millis) in [
            (Limit::Busy, 10),
            (Limit::ReceiveWindow, 30),
            (Limit::ReceiveWindow, 35),
            (Limit::Busy, 60),
            (Limit::SendBuffer, 70),
            (Limit::Nothing, 75),
        ] {
            chrono.set(limit, at(millis));
        }
        let all = chrono.until(at(100));
        let of = |span: Span| span.as_millis_f64();
        // From 10 to 75 ms it was busy: from 30 to 60 for the receiver's window, from 70 to 75 for the buffer.
        assert_eq!([of(all.busy), of(all.receive_window), of(all.send_buffer)], [65.0, 30.0, 5.0]);
        chrono.set(Limit::SendBuffer, at(100));
        assert_eq!(of(chrono.until(at(110)).send_buffer), 15.0);
    }
}
