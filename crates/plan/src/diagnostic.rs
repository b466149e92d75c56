//! Diagnostics of a lab file: the place (file, line, column, the text underlined), the problem, and a suggestion.

mod excerpt;

use excerpt::{Excerpt, Source};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use serde::de::{Expected, Unexpected};
use std::fmt;
use std::sync::Arc;
use weir_base::terminal::printable_line;

/// A stretch of text in one of the files that made the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    pub(crate) file: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Origin {
    pub(crate) fn new(file: usize, span: std::ops::Range<usize>) -> Origin {
        Origin { file, start: span.start, end: span.end }
    }

    /// Whether `other` lies within it.
    pub(crate) fn contains(self, other: Origin) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }
}

/// A problem, before the texts are at hand. It has no origin until the value around it has given its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    pub(crate) origin: Option<Origin>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The missing key, if that is the problem.
    pub(crate) missing: Option<&'static str>,
}

impl Fault {
    /// A problem at this place, with a suggestion.
    pub fn new(origin: Origin, message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { origin: Some(origin), message: message.into(), help: Some(help.into()), missing: None }
    }

    /// Gives it a place, unless it has one that is more exact.
    pub(crate) fn at(mut self, origin: Origin) -> Fault {
        self.origin.get_or_insert(origin);
        self
    }

    /// Adds a suggestion, unless it has one.
    pub fn or_help(mut self, help: &str) -> Fault {
        self.help.get_or_insert(help.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    /// Errors of units read `what is wrong; write what would be right`, or `; did you mean ..`: the second half becomes the
    /// help. Errors of types and of names that come as text (the registries' parameters pass through JSON) are reworded.
    fn custom<T: fmt::Display>(text: T) -> Fault {
        let text = text.to_string();
        let halves = ["; write ", "; did you mean "]
            .iter()
            .find_map(|half| Some((text.rsplit_once(half)?, &half[2..])));
        let (message, help) = match halves {
            Some(((message, rest), begun)) => (message.to_string(), Some(format!("{begun}{rest}"))),
            None => match unknown(&text) {
                Some((message, help)) => (message, Some(help)),
                None => (text, None),
            },
        };
        let message = match message.strip_prefix("missing field ") {
            Some(key) => format!("{key} is missing"),
            None => message,
        };
        let typed = ["invalid type: ", "invalid value: "].iter().find_map(|start| message.split_once(start));
        let message = match typed.and_then(|(of, rest)| Some((of, rest.split_once(", expected ")?))) {
            Some((of, (found, expected))) => format!("{of}{}", unexpected(found, expected)),
            None => message,
        };
        Fault { origin: None, message, help, missing: None }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::custom(unexpected(&found.to_string(), &expected.to_string()))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::invalid_type(found, expected)
    }

    fn unknown_variant(name: &str, names: &'static [&'static str]) -> Fault {
        let help = suggest(name, names.iter().copied());
        Fault { help: Some(help), ..Fault::custom(format!("\"{name}\" is not one of its values")) }
    }

    fn unknown_field(key: &str, keys: &'static [&'static str]) -> Fault {
        let help = suggest(key, keys.iter().copied());
        Fault { help: Some(help), ..Fault::custom(format!("there is no key `{key}` here")) }
    }

    fn missing_field(key: &'static str) -> Fault {
        Fault { missing: Some(key), ..Fault::custom(format!("`{key}` is missing")) }
    }
}

/// An error of serde about an unknown name, in the words of a lab file, and a suggestion from the names that it lists.
fn unknown(text: &str) -> Option<(String, String)> {
    let (message, names) = text.split_once(", expected ")?;
    let (what, wrong) = message.strip_suffix('`')?.split_once('`')?;
    let of =
        what.strip_suffix("unknown variant ").map(|of| format!("{of}\"{wrong}\" is not one of its values"));
    let of = of
        .or_else(|| Some(format!("{}there is no key `{wrong}` here", what.strip_suffix("unknown field ")?)));
    let is_unknown = of.is_some() || what.contains("unknown ");
    let names = names.split('`').skip(1).step_by(2);
    is_unknown.then(|| (of.unwrap_or_else(|| message.to_owned()), suggest(wrong, names)))
}

/// A type error of serde, in the words of a lab file.
fn unexpected(found: &str, expected: &str) -> String {
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a string" => "a text in quotes",
        "a map" => "a table",
        "string or map" => "a text in quotes, or a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    let words = [
        ("string ", "the text "),
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", ""),
    ];
    let found = match found {
        "map" => "a table".to_string(),
        "sequence" => "a list".to_string(),
        other => words
            .iter()
            .find_map(|(serde, word)| Some(format!("{word}{}", other.strip_prefix(serde)?.replace('`', ""))))
            .unwrap_or_else(|| other.to_string()),
    };
    format!("expected {expected}; found {found}")
}

/// The texts that a lab was made from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources(Vec<Arc<Source>>);

impl Sources {
    /// Adds a text and returns its number.
    pub(crate) fn add(&mut self, name: &str, text: String) -> usize {
        self.0.push(Arc::new(Source { name: name.into(), text }));
        self.0.len() - 1
    }

    pub(crate) fn text(&self, file: usize) -> &str {
        &self.0[file].text
    }

    /// Faults as diagnostics: in the order of the text, the innermost of those that overlap, each once.
    pub(crate) fn diagnose(&self, mut faults: Vec<Fault>) -> Diagnostics {
        faults.sort_by_key(|fault| fault.origin.map(|o| (o.file, o.start, std::cmp::Reverse(o.end))));
        let mut kept: Vec<Fault> = Vec::new();
        for fault in faults {
            while let (Some(last), Some(inner)) = (kept.last().and_then(|f| f.origin), fault.origin) {
                if last == inner || !last.contains(inner) {
                    break;
                }
                kept.pop();
            }
            // After sorting, faults of one place are neighbours.
            let repeated = kept.last().is_some_and(|last| match fault.origin {
                Some(_) => last.origin == fault.origin,
                None => *last == fault,
            });
            if !repeated {
                kept.push(fault);
            }
        }
        Diagnostics(kept.into_iter().map(|fault| self.problem(fault)).collect())
    }

    fn problem(&self, fault: Fault) -> Problem {
        let place = fault.origin.map(|origin| {
            let source = Arc::clone(&self.0[origin.file]);
            SourceRange { span: source.span(origin), source }
        });
        Problem { message: fault.message, help: fault.help, place }
    }
}

/// Most problems that are shown; the others are only counted.
const MOST_SHOWN: usize = 20;

/// Everything found wrong with a lab; never empty.
#[derive(Debug, Clone)]
pub struct Diagnostics(Vec<Problem>);

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Problem {
    message: String,
    help: Option<String>,
    place: Option<SourceRange>,
}

#[derive(Debug, Clone)]
struct SourceRange {
    source: Arc<Source>,
    span: std::ops::Range<usize>,
}

impl Diagnostics {
    /// A single problem that has no place in a text: a file that cannot be read.
    pub(crate) fn of_file(message: String, help: &str) -> Diagnostics {
        Diagnostics(vec![Problem { message, help: Some(help.into()), place: None }])
    }

    /// The problems, in the order of the text.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }

    /// The problems as text for a terminal of this width, with colours or without. The first 20 are shown. Whatever the lab
    /// holds, the text has no control characters but line feeds, tabs and the colours.
    pub fn render(&self, colour: bool, width: usize) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_context_lines(excerpt::CONTEXT)
            .with_links(false);
        let mut text = String::new();
        for problem in self.0.iter().take(MOST_SHOWN) {
            let shown = Shown::of(problem);
            // Writing into a string fails only if a problem's span lay outside its text; then only the message is shown.
            if handler.render_report(&mut text, &shown).is_err() {
                text.push_str(&shown.message);
            }
            text.push('\n');
        }
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => {}
            more => text.push_str(&format!(
                "  ... and {more} more such errors; after corrections the next are shown\n"
            )),
        }
        text
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false, 100))
    }
}

impl std::error::Error for Diagnostics {}

impl Problem {
    /// What is wrong, as a sentence without a full stop.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The suggestion; `None` if there is none.
    pub fn suggestion(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// File, line and column (both from 1) of the offending text.
    pub fn location(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let (line, column) = place.source.position(place.span.start);
        Some((&place.source.name, line + 1, column + 1))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// A problem as a terminal shows it.
#[derive(Debug)]
struct Shown {
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
}

impl Shown {
    fn of(problem: &Problem) -> Shown {
        Shown {
            message: shortened(&printable_line(&problem.message)),
            help: problem.help.as_ref().map(|help| shortened(&printable_line(help))),
            excerpt: problem.place.as_ref().map(|place| place.source.excerpt(&place.span)),
        }
    }
}

/// Longest message or help that is shown, in characters: both may quote the lab.
const LONGEST_SENTENCE: usize = 2000;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SENTENCE) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.into(),
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl miette::Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, excerpt.span.clone()))))
    }
}

/// Longest name, in characters, for which a similar one is looked for. The time grows with the square of its length.
const LONGEST_NAME: usize = 100;
/// Most names that one is compared with.
const MOST_COMPARED: usize = 1000;
/// Most names in a row that a message lists.
const MOST_LISTED: usize = 40;

/// The name most similar to `wrong`, if one is similar enough: at most a third of it differs, or only its end is missing.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    let length = lower.chars().count();
    if length > LONGEST_NAME {
        return None;
    }
    let distance = |name: &str| {
        let most = name.len().max(wrong.len()) / 3;
        let name = name.to_lowercase();
        if lower.len() >= 3 && name.starts_with(&lower) {
            return (1 <= most).then_some(1);
        }
        // The distance is at least the difference in length.
        if name.chars().count().abs_diff(length) > most {
            return None;
        }
        Some(strsim::damerau_levenshtein(&lower, &name)).filter(|distance| *distance <= most)
    };
    let near = names.into_iter().take(MOST_COMPARED).filter_map(|name| Some((distance(name)?, name)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// "did you mean `x`?" if a similar name exists, otherwise a list of all names.
pub fn suggest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(wrong, names.clone()) {
        return format!("did you mean `{name}`?");
    }
    match listed(names).as_str() {
        "" => "remove it".into(),
        all => format!("known names: {all}"),
    }
}

/// Names in a row, for messages; of more than 40, the first ones and the number of the others.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let row: Vec<String> = names.by_ref().take(MOST_LISTED).map(|name| format!("`{name}`")).collect();
    match names.count() {
        0 => row.join(", "),
        more => format!("{} and {more} more", row.join(", ")),
    }
}
