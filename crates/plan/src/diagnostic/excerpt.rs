//! The lines around a fault, as a terminal shows them: long ones cut to what is near the fault, control characters escaped.

use super::Origin;
use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use std::ops::Range;
use weir_base::terminal::{printable, printable_line};

/// Lines shown before and after the fault.
pub(super) const CONTEXT: usize = 1;
/// Most lines of the fault itself that are shown.
const MOST_LINES: usize = 10;
/// Characters shown of a line before the fault, and from the start of the fault on.
const BEFORE: usize = 80;
const AFTER: usize = 120;

/// A text that a lab was made from, and the name of its file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
}

/// The part of a source that is shown.
#[derive(Debug)]
pub(super) struct Excerpt {
    name: String,
    text: String,
    /// The fault within `text`.
    pub(super) span: Range<usize>,
    /// Number of the first line in the file, from 0.
    first: usize,
    /// Column of the fault in the file, in characters from 0.
    column: usize,
}

impl Source {
    /// The range of the text at an origin, with all of the characters in which it begins and ends, since the parser of TOML may name a byte of
    /// one. Empty, and at the end, if the origin lies beyond the text.
    pub(super) fn span(&self, origin: Origin) -> Range<usize> {
        let length = self.text.len();
        let end =
            (origin.end.min(length)..length).find(|at| self.text.is_char_boundary(*at)).unwrap_or(length);
        boundary_before(&self.text, origin.start.min(end))..end
    }

    /// Line and column of a place, from 0, the column in characters.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count();
        (line, before.rsplit('\n').next().unwrap_or(before).chars().count())
    }

    /// The excerpt around a fault.
    pub(super) fn excerpt(&self, fault: &Range<usize>) -> Excerpt {
        let (line, column) = self.position(fault.start);
        let first = line.saturating_sub(CONTEXT);
        let mut start = self.text[..fault.start].rfind('\n').map_or(0, |end| end + 1);
        for _ in first..line {
            start = self.text[..start - 1].rfind('\n').map_or(0, |end| end + 1);
        }
        let (mut text, mut span) = (String::new(), 0..0);
        let mut after = 0;
        for (shown, line) in self.text[start..].split_inclusive('\n').enumerate() {
            let end = start + line.len();
            if start > fault.end || shown >= MOST_LINES + CONTEXT {
                after += 1;
            }
            if after > CONTEXT {
                break;
            }
            let here = Range { start: fault.start.clamp(start, end), end: fault.end.clamp(start, end) };
            let whole = line.trim_end_matches(['\n', '\r']).len();
            let cut = cut(&line[..whole], here.start - start);
            let place = |at: usize| {
                let at = (at - start).clamp(cut.start, cut.end);
                let mark = if cut.start > 0 { "…".len() } else { 0 };
                mark + printable(&line[cut.start..at]).len()
            };
            if (start..end).contains(&fault.start) || (fault.start == end && end == self.text.len()) {
                span.start = text.len() + place(here.start);
            }
            if fault.end >= start {
                span.end = text.len() + place(here.end);
            }
            if cut.start > 0 {
                text.push('…');
            }
            text.push_str(&printable(&line[cut.clone()]));
            if cut.end < whole {
                text.push('…');
            }
            if line.ends_with('\n') {
                text.push('\n');
            }
            start = end;
        }
        span.end = span.end.max(span.start);
        Excerpt { name: printable_line(&self.name).into_owned(), text, span, first, column }
    }
}

/// The begin of the character that has the byte at this place.
fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The part of a line that is shown for a fault at this place.
fn cut(line: &str, at: usize) -> Range<usize> {
    let at = boundary_before(line, at);
    let start = line[..at].char_indices().rev().nth(BEFORE).map_or(0, |(at, _)| at);
    let end = line[at..].char_indices().nth(AFTER).map_or(line.len(), |(after, _)| at + after);
    start..end
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let read = self.text.as_str().read_span(span, before, after)?;
        let column = if before == 0 { self.column } else { read.column() };
        let line = self.first + read.line();
        let (name, count) = (self.name.clone(), read.line_count());
        Ok(Box::new(MietteSpanContents::new_named(name, read.data(), *read.span(), line, column, count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, fault: &str) -> Excerpt {
        let source = Source { name: "lab.toml".into(), text: text.into() };
        let at = text.find(fault).unwrap();
        source.excerpt(&(at..at + fault.len()))
    }

    #[test]
    fn an_excerpt_is_the_line_of_the_fault_with_one_on_either_side() {
        let shown = excerpt("a = 1\nb = 2\nc = wrong\nd = 4\ne = 5\n", "wrong");
        assert_eq!(shown.text, "b = 2\nc = wrong\nd = 4\n");
        assert_eq!((&shown.text[shown.span.clone()], shown.first, shown.column), ("wrong", 1, 4));
    }

    #[test]
    fn control_characters_around_a_fault_are_escaped_and_the_fault_is_still_underlined() {
        let shown = excerpt("x = \"\u{1b}[2J\" # \u{1b}]0;t\u{7}\ny = wrong \u{1b}[8m\n", "wrong");
        assert_eq!(shown.text, "x = \"\\u{1b}[2J\" # \\u{1b}]0;t\\u{7}\ny = wrong \\u{1b}[8m\n");
        assert_eq!(&shown.text[shown.span.clone()], "wrong");
    }

    #[test]
    fn a_fault_at_a_byte_within_a_character_is_all_of_the_character() {
        let source = Source { name: "lab.toml".into(), text: "aé\u{d2585}b".into() };
        let of = |start, end| source.span(Origin::new(0, start..end));
        assert_eq!(
            [of(1, 2), of(2, 3), of(4, 5), of(3, 4), of(4, 8), of(9, 9)],
            [1..3, 1..3, 3..7, 3..7, 3..8, 8..8]
        );
        assert_eq!(source.excerpt(&of(4, 5)).text, "aé\u{d2585}b");
    }

    #[test]
    fn a_long_line_is_cut_around_the_fault() {
        let text = format!("{}wrong{}", "é".repeat(100_000), "x".repeat(100_000));
        let shown = excerpt(&text, "wrong");
        assert_eq!(shown.text, format!("…{}wrong{}…", "é".repeat(BEFORE + 1), "x".repeat(AFTER - 5)));
        assert_eq!((&shown.text[shown.span.clone()], shown.column), ("wrong", 100_000));
    }

    #[test]
    fn the_first_lines_of_a_long_fault_are_shown() {
        let text = format!("a\n{}z\n", "long\n".repeat(1000));
        let source = Source { name: "lab.toml".into(), text: text.clone() };
        let shown = source.excerpt(&(2..text.len() - 2));
        assert!(shown.text.lines().count() <= MOST_LINES + 2 * CONTEXT, "{}", shown.text);
        assert!(shown.text[shown.span.clone()].starts_with("long\nlong"));
    }

    #[test]
    fn a_fault_may_be_at_the_end_of_the_text() {
        for text in ["", "x", "x\n", "x\ny"] {
            let source = Source { name: "lab.toml".into(), text: text.into() };
            let shown = source.excerpt(&(text.len()..text.len()));
            assert!(shown.span.start <= shown.span.end && shown.span.end <= shown.text.len(), "{shown:?}");
        }
    }
}
