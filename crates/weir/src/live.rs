//! What `--live` shows of queues while they work: a panel in the last lines of a terminal, or a line of text about each queue where there is
//! no terminal.

mod panel;
mod screen;

pub(crate) use screen::restoring;

use crate::failure::Failure;
use crate::say;
use panel::Panel;
use screen::Screen;
use weir_base::Span;
use weir_report::number::{count, number};

/// A queue in one period.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Length of the period.
    pub span: Span,
    /// Bytes that left.
    pub bytes: u64,
    /// Packets whose sojourn is known, and the sum of their sojourns in ns.
    pub packets: u64,
    pub sojourn_ns: u128,
    /// Bytes that wait at its end.
    pub backlog_bytes: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// Packets that were marked.
    pub marks: u64,
}

impl Moment {
    /// The rate at which packets left, in Mbit/s.
    fn rate(&self) -> String {
        let rate = self.bytes as f64 * 8.0 / self.span.as_secs_f64() / 1e6;
        number(if self.span.is_zero() { 0.0 } else { rate })
    }

    /// The mean sojourn; `None` if no packet left.
    fn sojourn(&self) -> Option<Span> {
        let mean = self.sojourn_ns.checked_div(self.packets.into())?;
        Some(Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    fn sojourn_ms(&self) -> Option<String> {
        self.sojourn().map(|mean| number(mean.as_millis_f64()))
    }

    /// What waits, in kB.
    fn backlog(&self) -> String {
        number(self.backlog_bytes as f64 / 1000.0)
    }

    /// The period in a line.
    fn line(&self, since_start: Span) -> String {
        let sojourn =
            self.sojourn_ms().map_or_else(|| "no packet left".to_owned(), |ms| format!("sojourn {ms} ms"));
        format!(
            "{:.0} s: {} Mbit/s, {sojourn}, backlog {} kB, {} drops, {} marks",
            since_start.as_secs_f64(),
            self.rate(),
            self.backlog(),
            count(self.drops),
            count(self.marks),
        )
    }
}

/// Where periods of queues are shown.
#[derive(Debug)]
pub(crate) struct Show {
    /// Dropped before anything else is said, so that the terminal is as it was.
    screen: Option<Screen>,
    panel: Panel,
}

impl Show {
    /// Shows queues of these names in the terminal's last lines, or as lines if standard error is no terminal.
    pub(crate) fn open(names: &[String]) -> Show {
        let panel = Panel::new(names);
        Show { screen: Screen::open(panel.height()).ok(), panel }
    }

    /// Shows queues of these names in the terminal's last lines.
    ///
    /// # Errors
    /// Standard error is no terminal, or one that is too small or cannot move its cursor.
    pub(crate) fn on_terminal(names: &[String]) -> Result<Show, Failure> {
        let panel = Panel::new(names);
        let screen = Screen::open(panel.height()).map_err(|why| {
            let help = "leave --live out; `--report DIR` writes the same as curves";
            Failure::bad_input(format!("--live cannot draw: {why}"), help)
        })?;
        Ok(Show { screen: Some(screen), panel })
    }

    /// Lines of the terminal that it takes.
    pub(crate) fn height(&self) -> u16 {
        self.panel.height()
    }

    /// Shows the period that ends now, one moment for each queue.
    pub(crate) fn show(&mut self, since_start: Span, moments: &[Moment]) {
        self.panel.add(since_start, moments);
        match &mut self.screen {
            Some(screen) => screen.draw(&self.panel),
            None => moments.iter().for_each(|moment| say(&moment.line(since_start))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_in_a_line() {
        // 125,000 bytes in a second are 1 Mbit/s; 40 ms over 4 packets are 10 ms each.
        let moment = Moment {
            span: Span::from_secs(1),
            bytes: 125_000,
            packets: 4,
            sojourn_ns: 40_000_000,
            backlog_bytes: 3000,
            drops: 2,
            marks: 1,
        };
        let line = "7 s: 1.00 Mbit/s, sojourn 10.0 ms, backlog 3.00 kB, 2 drops, 1 marks";
        assert_eq!(moment.line(Span::from_secs(7)), line);
        let idle = "0 s: 0 Mbit/s, no packet left, backlog 0 kB, 0 drops, 0 marks";
        assert_eq!(Moment::default().line(Span::ZERO), idle);
    }
}
