//! Networks as CSV with the header `from,to,rate,delay`: one line a direction, units in the cells. Cells are not quoted (RFC 4180
//! allows this for text without commas), and spaces around them do not count.

use crate::network::{Link, MOST_LINKS, Network, Node};
use std::collections::HashMap;
use std::fmt::Write;
use weir_base::{Rate, Span};

const HEADER: &str = "from,to,rate,delay";

/// Most characters of a node's name.
const LONGEST_NAME: usize = 64;

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct CsvError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Reads a network. Empty lines are skipped.
///
/// # Errors
/// The first line that cannot be read, with the reason.
pub fn read_csv(text: &str) -> Result<Network, CsvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (first, header) = lines.next().unwrap_or((1, ""));
    if !header.split(',').map(str::trim).eq(HEADER.split(',')) {
        return Err(wrong(first, "the first line is not the header", format!("write {HEADER}")));
    }
    let mut reading = Reading::default();
    for (line, text) in lines {
        reading.line(line, text)?;
    }
    let Reading { nodes, links, .. } = reading;
    // Every line names two different nodes, and the links were counted.
    Network::new(nodes, links).map_err(|error| wrong(first, error.to_string(), "write fewer links"))
}

fn wrong(line: usize, message: impl Into<String>, help: impl Into<String>) -> CsvError {
    CsvError { line, message: message.into(), help: help.into() }
}

#[derive(Default)]
struct Reading {
    nodes: Vec<Node>,
    indices: HashMap<String, usize>,
    links: Vec<Link>,
    /// The line of each link.
    seen: HashMap<(usize, usize), usize>,
}

impl Reading {
    fn line(&mut self, line: usize, text: &str) -> Result<(), CsvError> {
        let cells: Vec<&str> = text.split(',').map(str::trim).collect();
        let &[from, to, rate, delay] = cells.as_slice() else {
            let message = format!("it has {} cells, not 4", cells.len());
            return Err(wrong(line, message, format!("write {HEADER}, for example a,b,10 Mbit/s,5 ms")));
        };
        if self.links.len() == MOST_LINKS {
            let message = format!("there are more than {MOST_LINKS} links");
            return Err(wrong(line, message, "ask for a part of the network"));
        }
        if from == to {
            let message = format!("the link leads from `{from}` to itself");
            return Err(wrong(line, message, "name two different nodes"));
        }
        let (begin, end) = (self.node(line, from)?, self.node(line, to)?);
        if let Some(earlier) = self.seen.insert((begin, end), line) {
            let message = format!("line {earlier} already has a link from `{from}` to `{to}`");
            return Err(wrong(line, message, "write one line for each direction, with the sum of the rates"));
        }
        let rate: Rate = rate.parse().map_err(|error| quantity(line, "rate", error))?;
        let delay: Span = delay.parse().map_err(|error| quantity(line, "delay", error))?;
        self.links.push(Link { from: begin, to: end, rate: Some(rate), delay });
        Ok(())
    }

    /// The index of a node, which is new or was named before.
    fn node(&mut self, line: usize, name: &str) -> Result<usize, CsvError> {
        if let Some(&index) = self.indices.get(name) {
            return Ok(index);
        }
        if name.is_empty() || name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
            let help = format!("a name has 1 to {LONGEST_NAME} characters, none of them a control character");
            return Err(wrong(line, "a node has no proper name", help));
        }
        self.nodes.push(Node { name: name.into(), forwards: true });
        self.indices.insert(name.into(), self.nodes.len() - 1);
        Ok(self.nodes.len() - 1)
    }
}

fn quantity(line: usize, cell: &str, error: weir_base::UnitError) -> CsvError {
    wrong(line, format!("{cell}: {}", error.message), error.help)
}

/// Writes a network whose links all have a rate. [`read_csv`] reads the same links back, with the nodes in the order in which they
/// are named.
pub fn write_csv(network: &Network) -> String {
    let name = |node: usize| network.nodes()[node].name.as_str();
    let mut text = format!("{HEADER}\n");
    for link in network.links() {
        let rate = link.rate.unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{},{},{rate},{}", name(link.from), name(link.to), link.delay);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(lines: &str) -> CsvError {
        read_csv(&format!("{HEADER}\n{lines}")).unwrap_err()
    }

    #[test]
    fn a_network_reads_back_as_it_was_written() {
        let text = "from,to,rate,delay\na,b,10 Mbit/s,5 ms\nb,a,2.5 Gbit/s,120.5 us\nb,c,0 bit/s,0 s\n";
        assert_eq!(write_csv(&read_csv(text).unwrap()), text);
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_number_and_the_reason() {
        assert_eq!(fault("a,b,-1 Mbit/s,5 ms").to_string(), "line 2: rate: a rate cannot be negative");
        assert_eq!(fault("\na,b,1 Mbit/s,-5 ms").to_string(), "line 3: delay: a time cannot be negative");
        for infinite in ["inf Mbit/s", "NaN Mbit/s", "infinity"] {
            assert!(fault(&format!("a,b,{infinite},5 ms")).message.contains("no number"), "{infinite}");
        }
        assert!(fault("a,b,1e309 Mbit/s,5 ms").message.starts_with("rate:"));
        assert_eq!(fault("a,b,1 Mbit/s").message, "it has 3 cells, not 4");
        assert_eq!(fault("a,a,1 Mbit/s,5 ms").message, "the link leads from `a` to itself");
        let twice = fault("a,b,1 Mbit/s,5 ms\nb,a,1 Mbit/s,5 ms\na,b,2 Mbit/s,5 ms");
        assert_eq!(twice.to_string(), "line 4: line 2 already has a link from `a` to `b`");
        assert_eq!(fault(",b,1 Mbit/s,5 ms").message, "a node has no proper name");
        assert_eq!(read_csv("a,b,1 Mbit/s,5 ms\n").unwrap_err().message, "the first line is not the header");
        assert_eq!(read_csv("").unwrap_err().line, 1);
    }

    #[test]
    fn a_network_beyond_the_limit_is_refused() {
        let mut text = format!("{HEADER}\n");
        for number in 0..=MOST_LINKS {
            let _ = writeln!(text, "a,b{number},1 Mbit/s,1 ms");
        }
        assert_eq!(read_csv(&text).unwrap_err().line, MOST_LINKS + 2);
    }
}
