//! The trajectories on the page of a comparison: where each pair parts as text, and a script with the values of each pair, which
//! the page loads when a reader chooses it.

use super::words::{parted, quantity, said, tolerance};
use super::{FlowPair, Found, Trajectories};
use crate::ReportError;
use crate::compact::push_line;
use crate::folder::Folder;
use crate::html::escape;
use crate::naming::engine_name;
use crate::script::push_json;
use serde_json::json;
use std::fmt::Write;
use weir_record::trajectory::packets::Packets;
use weir_record::trajectory::{HeldLine, SAMPLES_TO_PART};

/// Largest number of points of a line: about what a screen can show.
const POINTS: usize = 600;

impl Trajectories {
    /// The section of the page; empty without pairs.
    pub(crate) fn section(&self, base: &str) -> String {
        if self.pairs.is_empty() {
            return String::new();
        }
        let names = self.names();
        let [reference, other] = names.map(|name| escape(engine_name(name)));
        let mut html = format!(
            "<section id=\"trajectories\" data-base=\"{base}\"><h2>Single flows: {reference} beside {other}</h2>\n\
             <p class=\"quiet\">Each flow that is alone in its group, in the first repeat with two valid runs. Both are read at equal \
             times since the flow’s start, a sample period apart. A quantity parts at the first of \
             {SAMPLES_TO_PART} samples that differ by more than its bound. Differences are {reference} minus {other}.</p>\n<dl class=\"parts\">"
        );
        for (number, pair) in self.pairs.iter().enumerate() {
            let sentences: String =
                said(pair, names).iter().map(|sentence| format!("<dd>{}</dd>", escape(sentence))).collect();
            let name = escape(&pair.name());
            let _ = writeln!(html, "<dt data-pair=\"{number}\">{name}</dt>{sentences}");
        }
        html += "</dl>\n";
        if self.further > 0 {
            let _ = writeln!(html, "<p class=\"quiet\">{} further flows are not shown.</p>", self.further);
        }
        html + "</section>\n"
    }

    /// Writes `report/trajectories/<number>.js` for each pair.
    pub(crate) fn write_scripts(&self, out: &Folder) -> Result<(), ReportError> {
        for (number, pair) in self.pairs.iter().enumerate() {
            let script = self.script(number, pair);
            out.write(&format!("report/trajectories/{number}.js"), &script)?;
        }
        Ok(())
    }

    /// The values of a pair: for each quantity the lines of both and their difference, on one grid.
    fn script(&self, number: usize, pair: &FlowPair) -> Vec<u8> {
        let held = pair.held.thinned(POINTS);
        let count = held.lines.iter().map(|line| line.values[0].len()).max().unwrap_or(0);
        let names = self.names().map(engine_name);
        let head = json!({ "t0": held.first_s, "p": held.period.as_secs_f64(), "n": count, "names": names,
            "ev": pair.events() });
        let mut script = format!("weir.trajectory({number},").into_bytes();
        push_json(&head, &mut script);
        script.extend(b",[");
        for line in &held.lines {
            script.push(b'\n');
            let name = quantity(&line.name);
            let head = json!({ "k": &*line.name, "t": sentence_case(&name.0), "u": name.1, "note": self.note(pair, line) });
            push_json(&head, &mut script);
            for values in [&line.values[0], &line.values[1], &line.difference()] {
                script.extend(b",[");
                push_line(values, &mut script);
                script.push(b']');
            }
            script.push(b',');
        }
        script.extend(b"]);\n");
        script
    }

    /// Where a quantity parts, in a sentence.
    fn note(&self, pair: &FlowPair, line: &HeldLine) -> String {
        match pair.parts.iter().find(|part| *part.quantity == *line.name) {
            Some(part) => format!("Parts {}", parted(part, self.names())),
            None => {
                let (_, unit) = quantity(&line.name);
                format!(
                    "Never differs by more than {} in {SAMPLES_TO_PART} samples.",
                    tolerance(line.tolerance, unit)
                )
            }
        }
    }
}

impl FlowPair {
    /// The times that the pictures mark: the first packet that differs, and the first sample.
    fn events(&self) -> Vec<(f64, String)> {
        let first = self.parts.iter().min_by(|a, b| a.at.after_s.total_cmp(&b.at.after_s));
        let sample = first.map(|part| (part.at.after_s, format!("{} parts", quantity(&part.quantity).0)));
        let packet = self.links.iter().find_map(|link| match &link.found {
            Found::Packets(Packets::Differ(parting)) => {
                let at = parting.sides.iter().map(|side| side.after_s).fold(f64::INFINITY, f64::min);
                Some((at, format!("first packet at {} that differs", link.link)))
            }
            _ => None,
        });
        packet.into_iter().chain(sample).filter(|(at, _)| at.is_finite()).collect()
    }
}

/// The text with a capital first letter.
fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
