//! What is wrong with a lab file: where (file, line, column, the text underlined), what, and what would be right.

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use serde::de::{Expected, Unexpected};
use std::fmt;
use std::sync::Arc;

/// A stretch of text in one of the files that made the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Origin {
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

/// Something wrong, before the texts are at hand. Without an origin until the value around it has given its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) origin: Option<Origin>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The key that is missing, if that is what is wrong.
    pub(crate) missing: Option<&'static str>,
}

impl Fault {
    pub(crate) fn new(origin: Origin, message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { origin: Some(origin), message: message.into(), help: Some(help.into()), missing: None }
    }

    /// Gives it a place, unless it has one that is more exact.
    pub(crate) fn at(mut self, origin: Origin) -> Fault {
        self.origin.get_or_insert(origin);
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
    /// Errors of units read `what is wrong; write what would be right`: the second half becomes the help. Errors of
    /// types that come as text (the registries' parameters pass through JSON) are put in this file's words.
    fn custom<T: fmt::Display>(text: T) -> Fault {
        let text = text.to_string();
        let (message, help) = match text.rsplit_once("; write ") {
            Some((message, help)) => (message.to_string(), Some(format!("write {help}"))),
            None => (text, None),
        };
        let typed =
            ["invalid type: ", "invalid value: "].iter().find_map(|start| message.strip_prefix(start));
        let message = match typed.and_then(|rest| rest.split_once(", expected ")) {
            Some((found, expected)) => unexpected(found, expected),
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
        Fault { help: Some(help), ..Fault::custom(format!("\"{name}\" is none of its values")) }
    }

    fn missing_field(key: &'static str) -> Fault {
        Fault { missing: Some(key), ..Fault::custom(format!("`{key}` is missing")) }
    }
}

/// What serde says of a type that does not fit, in the words of a lab file.
fn unexpected(found: &str, expected: &str) -> String {
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a string" => "a text in quotes",
        "a map" => "a table",
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
pub(crate) struct Sources(Vec<Arc<NamedSource<String>>>);

impl Sources {
    /// Takes a text in and gives it a number.
    pub(crate) fn add(&mut self, name: &str, text: String) -> usize {
        self.0.push(Arc::new(NamedSource::new(name, text)));
        self.0.len() - 1
    }

    pub(crate) fn text(&self, file: usize) -> &str {
        self.0[file].inner()
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
            let repeated = fault.origin.is_some() && kept.iter().any(|other| other.origin == fault.origin);
            if !repeated && !kept.contains(&fault) {
                kept.push(fault);
            }
        }
        Diagnostics(kept.into_iter().map(|fault| self.problem(fault)).collect())
    }

    fn problem(&self, fault: Fault) -> Problem {
        let place = fault.origin.map(|origin| {
            let source = Arc::clone(&self.0[origin.file]);
            let text = source.inner();
            let end = origin.end.min(text.len());
            Place { span: origin.start.min(end)..end, source }
        });
        Problem { message: fault.message, help: fault.help, place }
    }
}

/// Everything found wrong with a lab; never empty.
#[derive(Debug, Clone)]
pub struct Diagnostics(Vec<Problem>);

/// One thing that is wrong. A `miette` diagnostic with its source text.
#[derive(Debug, Clone)]
pub struct Problem {
    message: String,
    help: Option<String>,
    place: Option<Place>,
}

#[derive(Debug, Clone)]
struct Place {
    source: Arc<NamedSource<String>>,
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

    /// The problems as text for a terminal of this width, with colours or without.
    pub fn render(&self, colour: bool, width: usize) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_context_lines(1)
            .with_links(false);
        let mut text = String::new();
        for problem in &self.0 {
            // Writing into a string fails only if a problem's span lay outside its text; then the sentence alone is told.
            if handler.render_report(&mut text, problem).is_err() {
                text.push_str(&problem.message);
            }
            text.push('\n');
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

    /// What would be right.
    pub fn suggestion(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// File, line and column (both from 1) of the offending text.
    pub fn location(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let before = place.source.inner().get(..place.span.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        Some((place.source.name(), line, column))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl miette::Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.place.as_ref().map(|place| &*place.source as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.place.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, place.span.clone()))))
    }
}

/// The name nearest to `wrong`, if one is near enough to be meant: a third of it may be wrong, or its end be missing.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    let distance = |name: &str| {
        let begun = lower.len() >= 3 && name.to_lowercase().starts_with(&lower);
        if begun { 1 } else { strsim::damerau_levenshtein(&lower, &name.to_lowercase()) }
    };
    names
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= name.len().max(wrong.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// "did you mean `x`?" if something is near, otherwise all there is.
pub(crate) fn suggest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    if let Some(name) = nearest(wrong, names.clone()) {
        return format!("did you mean `{name}`?");
    }
    let all: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if all.is_empty() { "remove it".into() } else { format!("there is {}", all.join(", ")) }
}
