//! A study's reproduction as a page of Markdown with pictures, to be kept beside the project's other documents: the published
//! values, the measured ones, and the differences with their reasons.

use crate::figure::figure;
use crate::judge::{ClaimVerdict, Judged};
use crate::score::{Reproduced, Score};
use crate::words::{Said, asked, named, what};
use std::fmt::Write;
use std::path::Path;
use weir_report::html::link;
use weir_report::{Folder, ReportError};

/// Writes `STUDY.md` and the pictures of its claims, in a folder `STUDY` beside it. `about` is the text of the study's
/// `about.md`: the part before its first heading of the second level begins the page, the rest follows the verdicts.
///
/// # Errors
/// A file that cannot be written.
pub fn write_document(
    folder: &Path,
    study: &str,
    about: Option<&str>,
    labs: &[Reproduced],
) -> Result<(), ReportError> {
    let out = Folder::new(folder);
    let title = format!("# {}", cell(study));
    let (opening, remarks) = parts(about.unwrap_or(&title));
    let mut page = format!("{opening}\n");
    let mut claims: Vec<(&Reproduced, usize, &Judged)> = labs
        .iter()
        .flat_map(|lab| lab.claims.iter().enumerate().map(move |(n, judged)| (lab, n, judged)))
        .collect();
    claims.sort_by_key(|(_, _, claim)| rank(claim));
    let engines = engines(labs);
    page += "\n## What holds\n\n";
    if let [_, _, ..] = engines[..] {
        for engine in &engines {
            let _ = writeln!(page, "- `{engine}`: {}", Score::of(&measured_by(engine, labs)).sentence());
        }
        page.push('\n');
    } else {
        let _ = writeln!(page, "{}", Score::of(labs).sentence());
    }
    page += "A row holds when all its claims hold. For a claim about several cells, the table shows the cell that is farthest off.\n\n";
    if claims.iter().any(|(_, _, judged)| judged.verdict == ClaimVerdict::NotMeasured) {
        page += "A claim that no valid run measured neither holds nor fails.\n\n";
    }
    let several = engines.len() > 1;
    let (on, rule) = if several { (" on |", "---|") } else { ("", "") };
    let _ = writeln!(
        page,
        "| row | claim | cell | study |{on} measured | verdict | where the study says it |\n|---|---|---|---|{rule}---|---|---|"
    );
    for (_, _, judged) in &claims {
        page += &row(judged, several);
    }
    page += &differences(&claims);
    if !remarks.is_empty() {
        let _ = writeln!(page, "\n{remarks}");
    }
    page += "\n## The claims as pictures\n\nGrey shows the published value with its tolerance; a dashed line is a bound that the measured line crosses.\n";
    for (lab, n, judged) in &claims {
        let said = Said::of(judged);
        let on = if several { format!(" ({})", judged.engine) } else { String::new() };
        let title = named(judged, &said.what) + &on;
        if let Some(svg) = figure(judged, &title) {
            let file = format!("{study}/{}-{}.svg", lab.lab, n + 1);
            out.write(&file, svg.as_bytes())?;
            let _ = writeln!(
                page,
                "\n![{}]({})\n\n`{}`: {}",
                cell(&title),
                link(&file),
                code(&lab.lab),
                cell(&asked(&judged.claim))
            );
        }
    }
    page += "\n## The labs\n\n| lab | what it shows | claims |\n|---|---|---|\n";
    for lab in labs {
        let title = lab.title.as_deref().unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{}/{}` | {} | {} |",
            code(&lab.study),
            code(&lab.lab),
            cell(title),
            lab.claims.len()
        );
    }
    out.write(&format!("{study}.md"), page.as_bytes())
}

/// The engines that measured, in the order of their first claims.
fn engines(labs: &[Reproduced]) -> Vec<&str> {
    let mut engines = vec![];
    for judged in labs.iter().flat_map(|lab| &lab.claims) {
        if !engines.contains(&judged.engine.as_str()) {
            engines.push(&judged.engine);
        }
    }
    engines
}

/// The labs with only the claims that one engine measured.
fn measured_by(engine: &str, labs: &[Reproduced]) -> Vec<Reproduced> {
    let mut labs = labs.to_vec();
    labs.iter_mut().for_each(|lab| lab.claims.retain(|judged| judged.engine == engine));
    labs
}

/// The text before the first heading of the second level, and the rest.
fn parts(about: &str) -> (&str, &str) {
    let (opening, remarks) = about.split_at(about.find("\n## ").unwrap_or(about.len()));
    (opening.trim_end(), remarks.trim())
}

/// Sort key of a claim: by the row's name, numbers in it as numbers; claims without a row come last.
fn rank(judged: &Judged) -> (bool, String, u32, String) {
    let row = judged.claim.row.as_deref().unwrap_or_default();
    let letters: String = row.chars().take_while(|c| !c.is_ascii_digit()).collect();
    let digits: String = row[letters.len()..].chars().take_while(char::is_ascii_digit).collect();
    let rest = row[letters.len() + digits.len()..].to_owned();
    (row.is_empty(), letters, digits.parse().unwrap_or(0), rest)
}

/// A claim as a row of the table, with the engine if several measured.
fn row(judged: &Judged, several: bool) -> String {
    let said = Said::of(judged);
    let name = judged.claim.row.as_deref().unwrap_or_default();
    let verdict = match judged.verdict {
        quiet @ (ClaimVerdict::Holds | ClaimVerdict::NotMeasured) => quiet.name().to_owned(),
        other => format!("**{}**", other.name()),
    };
    let what = what(&judged.claim);
    let cells: [&[&str]; 3] = [
        &[name, &what, &said.cell, &said.published],
        if several { &[&judged.engine] } else { &[] },
        &[&said.measured],
    ];
    let told: Vec<String> = cells.concat().into_iter().map(cell).collect();
    // The verdict is not escaped: its stars are markup.
    format!("| {} | {verdict} | {} |\n", told.join(" | "), cell(&judged.claim.source))
}

/// The list of rows that differ, with the reasons that the claims give.
fn differences(claims: &[(&Reproduced, usize, &Judged)]) -> String {
    let mut reasons: Vec<(&str, &str)> = claims
        .iter()
        .filter(|(_, _, judged)| judged.verdict == ClaimVerdict::Differs)
        .filter_map(|(_, _, judged)| {
            Some((judged.claim.row.as_deref().unwrap_or("-"), judged.claim.differs.as_deref()?))
        })
        .collect();
    reasons.dedup();
    let list: String =
        reasons.iter().map(|(row, reason)| format!("- **{}**: {}\n", cell(row), cell(reason))).collect();
    if list.is_empty() { list } else { format!("\n## What differs\n\n{list}") }
}

/// Makes a name fit between backticks, where only a backtick is markup.
fn code(name: &str) -> String {
    name.replace(['`', '|', '\n'], " ")
}

/// Escapes text of a lab for a line or a table cell in Markdown, so that nothing in it is markup, neither Markdown's (GitHub
/// Flavored Markdown, section 6) nor HTML's.
fn cell(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_word = |place: Option<usize>| {
        place.and_then(|place| letters.get(place)).is_some_and(|letter| letter.is_alphanumeric())
    };
    let mut safe = String::with_capacity(text.len());
    for (place, &letter) in letters.iter().enumerate() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            // Within a word, an underscore is no markup.
            '_' if is_word(place.checked_sub(1)) && is_word(Some(place + 1)) => safe.push('_'),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' => {
                safe.push('\\');
                safe.push(letter);
            }
            '\u{a0}' => safe.push(' '),
            control if control.is_control() => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn text_from_a_lab_is_escaped() {
        for (said, written) in [
            ("RFC 8257, section 4.1: K > C RTT / 7", "RFC 8257, section 4.1: K &gt; C RTT / 7"),
            ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
            ("![x](http://example.org/x.png)", "!\\[x\\](http://example.org/x.png)"),
            ("a|b\nc\u{1b}[31m", "a\\|b c \\[31m"),
            ("queue_delay_ms of _all_ *flows* `now`", "queue_delay_ms of \\_all\\_ \\*flows\\* \\`now\\`"),
            ("a\\|b &lt;b>", "a\\\\\\|b &amp;lt;b&gt;"),
        ] {
            assert_eq!(cell(said), written);
        }
    }
}
