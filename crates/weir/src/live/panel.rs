//! The panel: a heading, and for each queue a line with its numbers and a curve of its delay.

use super::Moment;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Sparkline, Table, Widget};
use std::collections::VecDeque;
use weir_base::Span;
use weir_base::terminal::printable_line;
use weir_report::number::{count, number};

/// Periods that a curve has at most: more than a terminal has columns.
const CURVE: usize = 512;
/// Columns of a name at most, those of a number, and those between columns.
const NAME: u16 = 24;
const NUMBER: u16 = 11;
const GAP: u16 = 1;
/// The headings of the numbers.
const HEADINGS: [&str; 5] = ["Mbit/s", "delay, ms", "backlog, kB", "drops", "marks"];

/// A queue's line.
#[derive(Debug)]
struct Queue {
    name: String,
    /// The last period.
    now: Moment,
    /// Since the start.
    drops: u64,
    marks: u64,
    /// The mean delay of each period, in microseconds; the last one is now. None if no packet left.
    delays: VecDeque<Option<u64>>,
}

/// What is shown of all queues.
#[derive(Debug)]
pub(super) struct Panel {
    since_start: Span,
    queues: Vec<Queue>,
}

impl Panel {
    /// A panel of queues of these names, of which nothing is known yet.
    pub(super) fn new(names: &[String]) -> Panel {
        let queue = |name: &String| Queue {
            name: printable_line(name).into_owned(),
            now: Moment::default(),
            drops: 0,
            marks: 0,
            delays: VecDeque::new(),
        };
        Panel { since_start: Span::ZERO, queues: names.iter().map(queue).collect() }
    }

    /// Its lines.
    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.queues.len() + 1).unwrap_or(u16::MAX)
    }

    /// Adds a period, one moment for each queue.
    pub(super) fn add(&mut self, since_start: Span, moments: &[Moment]) {
        self.since_start = since_start;
        for (queue, moment) in self.queues.iter_mut().zip(moments) {
            queue.drops += moment.drops;
            queue.marks += moment.marks;
            queue.delays.push_back(moment.sojourn().map(|mean| mean.as_nanos() / 1000));
            if queue.delays.len() > CURVE {
                queue.delays.pop_front();
            }
            queue.now = moment.clone();
        }
    }

    /// Width of the names.
    fn names(&self) -> u16 {
        let widths = self.queues.iter().map(|queue| queue.name.chars().count());
        u16::try_from(widths.max().unwrap_or(0)).unwrap_or(NAME).clamp(8, NAME)
    }
}

impl Queue {
    fn row(&self) -> Row<'_> {
        let numbers = [
            self.now.rate(),
            self.now.sojourn_ms().unwrap_or_else(|| "-".into()),
            self.now.backlog(),
            count(self.drops),
            count(self.marks),
        ];
        let name = std::iter::once(Cell::from(self.name.as_str()));
        Row::new(name.chain(numbers.map(|text| Cell::from(Line::from(text).right_aligned()))))
    }

    /// The curve's last periods, as many as there are columns.
    fn curve(&self, columns: u16) -> Vec<Option<u64>> {
        let skipped = self.delays.len().saturating_sub(columns.into());
        self.delays.iter().skip(skipped).copied().collect()
    }
}

impl Widget for &Panel {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let widths: Vec<u16> = std::iter::once(self.names()).chain(HEADINGS.map(|_| NUMBER)).collect();
        let numbers = widths.iter().sum::<u16>() + GAP * HEADINGS.len() as u16;
        let columns = [Constraint::Length(numbers), Constraint::Length(2), Constraint::Min(0)];
        let [left, _, right] = Layout::horizontal(columns).areas(area);
        let heading = Style::default().add_modifier(Modifier::REVERSED);
        buffer.set_style(Rect { height: area.height.min(1), ..area }, heading);
        let mut headings = vec![Cell::from(format!("{:.0} s", self.since_start.as_secs_f64()))];
        headings.extend(HEADINGS.map(|text| Cell::from(Line::from(text).right_aligned())));
        let table =
            Table::new(self.queues.iter().map(Queue::row), widths.iter().copied().map(Constraint::Length));
        table.header(Row::new(headings)).column_spacing(GAP).render(left, buffer);
        let curves: Vec<_> = self.queues.iter().map(|queue| queue.curve(right.width)).collect();
        let most = curves.iter().flatten().flatten().copied().max().unwrap_or(0);
        let lines: Vec<Rect> = right.rows().collect();
        let Some((first, rest)) = lines.split_first() else { return };
        let title = format!("delay until now, at most {} ms", number(most as f64 / 1000.0));
        Line::from(title).render(*first, buffer);
        for (line, curve) in rest.iter().zip(curves) {
            Sparkline::default().data(curve).max(most.max(1)).render(*line, buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(panel: &Panel, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, panel.height())).unwrap();
        terminal.draw(|frame| frame.render_widget(panel, frame.area())).unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
        buffer.content().chunks(width.into()).map(line).map(|line| line.trim_end().to_owned()).collect()
    }

    /// Half a second in which 62,500 bytes leave: 1 Mbit/s.
    fn moment(packets: u64, delay_ms: u64) -> Moment {
        Moment {
            span: Span::from_millis(500),
            bytes: 62_500,
            packets,
            sojourn_ns: u128::from(packets * delay_ms * 1_000_000),
            backlog_bytes: 4500,
            drops: 3,
            marks: 1,
        }
    }

    #[test]
    fn each_queue_has_its_last_period_its_totals_and_its_delays() {
        let mut panel = Panel::new(&["down".into(), "up\u{1b}[2J".into()]);
        panel.add(Span::from_millis(500), &[moment(10, 5), Moment::default()]);
        panel.add(Span::from_secs(1), &[moment(10, 40), Moment::default()]);
        let lines = drawn(&panel, 110);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let heading = "1 s Mbit/s delay, ms backlog, kB drops marks delay until now, at most 40.0 ms";
        assert_eq!(words(&lines[0]), heading);
        // 40 ms fill the cell, and 5 ms an eighth of it.
        assert_eq!(words(&lines[1]), "down 1.00 40.0 4.50 6 2 ▁█");
        let up: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(up[1..], ["0", "-", "0", "0", "0"], "{}", lines[2]);
        assert!(!lines[2].contains('\u{1b}'), "{}", lines[2]);
    }

    #[test]
    fn a_narrow_terminal_cuts_and_a_long_run_shows_its_end() {
        let mut panel = Panel::new(&["down".into()]);
        for period in 0..2000u64 {
            panel.add(Span::from_millis(500 * period), &[moment(1, if period < 1990 { 80 } else { 10 })]);
        }
        // 10 columns of a curve, which have the last ten periods alone.
        let lines = drawn(&panel, 80);
        assert!(lines[1].ends_with("  ██████████"), "{}", lines[1]);
        assert!(drawn(&panel, 10).iter().all(|line| line.chars().count() <= 10));
    }
}
