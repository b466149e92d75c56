//! The terminal's last lines, for a panel. What others write scrolls above them (DECSTBM of the VT100, console_codes(4)); the terminal's
//! mode stays as it is, so that a program keeps its keys and its lines. A drawing saves and restores the cursor, and is one write, which
//! the kernel does not mix with those of others.

use super::panel::Panel;
use ratatui::backend::{Backend, TermionBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use std::io::{IsTerminal, Write, stderr};
use terminal_size::terminal_size_of;

/// Lines that are left to others at least.
const LEFT: u16 = 4;

/// The last lines of the terminal at standard error, until it is dropped.
#[derive(Debug)]
pub(super) struct Screen {
    height: u16,
    /// Columns and lines of the terminal as the region was last set.
    size: (u16, u16),
}

impl Screen {
    /// Takes this many lines.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn open(height: u16) -> Result<Screen, String> {
        if !stderr().is_terminal() {
            return Err("standard error is no terminal".into());
        }
        if std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb") {
            return Err("this terminal cannot move its cursor (TERM)".into());
        }
        let size = size();
        if size.1 < height.saturating_add(LEFT) {
            return Err(format!(
                "the terminal has {} lines, and it takes {height} and leaves {LEFT}",
                size.1
            ));
        }
        // What stands in the last lines goes up, and the cursor with it.
        let room = "\n".repeat(height.into());
        write(format!("{room}\x1b[{height}A{}", region(height, size.1)).as_bytes());
        Ok(Screen { height, size })
    }

    /// Draws a panel. A terminal that became too small has none until it is larger again.
    pub(super) fn draw(&mut self, panel: &Panel) {
        let (columns, lines) = size();
        let mut bytes = vec![];
        if (columns, lines) != self.size {
            self.size = (columns, lines);
            bytes.extend(restoring(self.height));
            if self.fits() {
                bytes.extend(region(self.height, lines).into_bytes());
            }
        }
        if self.fits() {
            let area = Rect { x: 0, y: lines - self.height, width: columns, height: self.height };
            let mut buffer = Buffer::empty(area);
            panel.render(area, &mut buffer);
            bytes.extend(b"\x1b7");
            let cells = buffer.content.iter().enumerate().map(|(index, cell)| {
                let (x, y) = buffer.pos_of(index);
                (x, y, cell)
            });
            // Writing to memory cannot fail.
            let _ = TermionBackend::new(&mut bytes).draw(cells);
            bytes.extend(b"\x1b8");
        }
        write(&bytes);
    }

    fn fits(&self) -> bool {
        self.size.1 >= self.height.saturating_add(LEFT)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(&restoring(self.height));
    }
}

/// What gives a terminal back the last lines, and empties them, whatever its size.
pub(crate) fn restoring(height: u16) -> Vec<u8> {
    let up = height.saturating_sub(1);
    let up = if up == 0 { String::new() } else { format!("\x1b[{up}A") };
    // A line number beyond the last one is the last one.
    format!("\x1b7\x1b[r\x1b[999;1H{up}\x1b[J\x1b8").into_bytes()
}

/// What lets only the lines above the last ones scroll. Setting the region moves the cursor.
fn region(height: u16, lines: u16) -> String {
    format!("\x1b7\x1b[1;{}r\x1b8", lines - height)
}

/// Columns and lines of the terminal.
fn size() -> (u16, u16) {
    terminal_size_of(stderr()).map_or((0, 0), |(columns, lines)| (columns.0, lines.0))
}

/// A terminal that has gone away is no reason to fail.
fn write(bytes: &[u8]) {
    let _ = stderr().write_all(bytes);
}
