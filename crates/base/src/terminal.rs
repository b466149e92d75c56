//! Text from outside (labs, results, file names, the output of commands) made safe to print on a terminal.
//!
//! A terminal interprets control characters: an escape sequence may move the cursor, recolour or hide weir's own output, or set the
//! window's title. Here they become visible escapes (`\u{1b}`). The characters that change the direction of text (Unicode Standard
//! Annex #9, section 2) can make a text read as another one, and are escaped too.

use std::borrow::Cow;
use std::fmt::Write;

/// A text of several lines: line feeds and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// A text within a line or a cell of a table: line feeds and tabs are escaped too.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Whether a terminal may interpret this character instead of showing it.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let harmful = |c: char| is_obeyed(c) && !stays(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' if harmful(c) => safe.extend(c.escape_default()),
            c if harmful(c) => {
                // Writing to a String cannot fail.
                let _ = write!(safe, "{}", c.escape_unicode());
            }
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_printed_escaped() {
        assert_eq!(printable("\u{1b}]0;owned\u{7}x"), "\\u{1b}]0;owned\\u{7}x");
        assert_eq!(printable("c1 \u{9b}31m, delete \u{7f}"), "c1 \\u{9b}31m, delete \\u{7f}");
        assert_eq!(printable("overwritten\rtext"), "overwritten\\rtext");
    }

    #[test]
    fn direction_marks_are_printed_escaped() {
        assert_eq!(printable("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
    }

    #[test]
    fn only_a_text_of_several_lines_keeps_line_feeds_and_tabs() {
        assert_eq!(printable("a\n\tb"), "a\n\tb");
        assert_eq!(printable_line("a\n\tb"), "a\\n\\tb");
    }

    #[test]
    fn text_of_any_language_is_unchanged() {
        for text in ["", "10 Mbit/s", "Größe", "延迟", "µs ± 5 %", "┌─┐"] {
            assert!(matches!(printable_line(text), Cow::Borrowed(same) if same == text));
        }
    }
}
