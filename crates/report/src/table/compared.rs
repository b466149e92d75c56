//! The table of `weir compare`: a row and a verdict for each metric of each cell.

use crate::fit::{cut, wrapped};
use crate::verdict::{Said, by_cell};
use weir_record::compare::Compared;

/// Most runs that the lines about excluded runs name for one reason.
const RUNS_NAMED: usize = 3;

/// The table of a comparison, with a row and a verdict for each metric of each cell; `names` are those of the reference and
/// of the results compared with it.
pub fn compare_table(compared: &Compared, names: [&str; 2], width: usize) -> String {
    let rows: Vec<Said> = by_cell(compared).into_iter().map(Said::of).collect();
    let length = |text: &str| text.chars().count();
    let widest =
        |of: &dyn Fn(&Said) -> usize, least: usize| rows.iter().map(of).max().unwrap_or(0).max(least) + 2;
    let measure = widest(&|said| length(&said.measure), 0).min(36);
    let [reference, other] = [names[0], names[1]]
        .map(|name| widest(&|said| length(&said.reference).max(length(&said.other)), length(name)));
    let difference = widest(&|said| length(&said.difference), 10);
    let interval = widest(&|said| length(&said.interval), 13);
    let bound = widest(&|said| length(&said.bound), 5);
    // If there is no room, the interval is left out first, then the bound: the verdict follows from both.
    let fixed = 2 + measure + reference + other + difference + 2 + length("cannot tell");
    let bound = if fixed + bound <= width { bound } else { 0 };
    let interval = if fixed + bound + interval <= width { interval } else { 0 };
    let line = |cells: [&str; 7]| {
        let mut line = format!(
            "  {:<measure$}{:>reference$}{:>other$}{:>difference$}",
            cut(cells[0], measure - 1),
            cells[1],
            cells[2],
            cells[3]
        );
        for (cell, width) in
            [(cells[4], interval), (cells[5], bound)].into_iter().filter(|(_, width)| *width > 0)
        {
            line += &format!("{cell:>width$}");
        }
        format!("{line}  {}", cells[6]).trim_end().to_string() + "\n"
    };
    let mut text = String::new();
    let mut above: Option<&str> = None;
    if !rows.is_empty() {
        text += &line(["", names[0], names[1], "difference", "95 % interval", "bound", "verdict"]);
    }
    for said in &rows {
        if above != Some(&said.cell) && !said.cell.is_empty() {
            text += &format!("{}\n", cut(&said.cell, width));
        }
        above = Some(&said.cell);
        text += &line([
            &said.measure,
            &said.reference,
            &said.other,
            &said.difference,
            &said.interval,
            &said.bound,
            said.verdict,
        ]);
    }
    for line in left_out(compared) {
        text += &wrapped(&line, width);
    }
    text + &wrapped(&crate::sentence::agreement(&compared.rows, names), width)
}

/// The runs that are not compared: a line for each reason, which names the first of its runs.
fn left_out(compared: &Compared) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (id, why) in &compared.left_out {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, runs)) => runs.push(id),
            None => reasons.push((why, vec![id])),
        }
    }
    let line = |(why, runs): (&str, Vec<&str>)| {
        let (named, rest) = runs.split_at(runs.len().min(RUNS_NAMED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        format!("left out ({why}): {}{more}", named.join(", "))
    };
    reasons.into_iter().map(line).collect()
}
