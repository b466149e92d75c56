//! Fits text into a width: cuts it, cuts several texts so that they stay distinct, and breaks it into lines.

use weir_base::terminal::printable_line;

/// The text in at most `width` characters.
pub fn cut(text: &str, width: usize) -> String {
    let text = printable_line(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The text in lines of at most `width` characters, broken at spaces.
pub fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in printable_line(text).split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line + "\n"
}

/// Words in lines of at most `width` characters, all but the first indented.
pub fn folded(words: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent).max(30);
    let (mut text, mut column) = (String::new(), 0);
    for word in words.split_whitespace() {
        if column > 0 && column + 1 + word.chars().count() > room {
            text += &format!("\n{:indent$}", "");
            column = 0;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += word.chars().count();
    }
    text
}

/// Cuts texts to at most `width` characters each, so that different texts stay different: texts with the same beginning keep
/// their ends.
pub fn cut_apart(texts: &[&str], width: usize) -> Vec<String> {
    let beginnings: Vec<String> = texts.iter().map(|text| cut(text, width)).collect();
    let clash = |cuts: &[String], at: usize| {
        (0..texts.len()).any(|other| texts[other] != texts[at] && cuts[other] == cuts[at])
    };
    let end = |text: &str| {
        let text = printable_line(text);
        let length = text.chars().count();
        std::iter::once('…').chain(text.chars().skip((length + 1).saturating_sub(width))).collect::<String>()
    };
    let ends: Vec<String> = (0..texts.len())
        .map(|at| if clash(&beginnings, at) { end(texts[at]) } else { beginnings[at].clone() })
        .collect();
    // Texts that differ only in the middle are numbered.
    let number = |at: usize| {
        let mut different: Vec<&str> = Vec::new();
        texts.iter().for_each(|text| {
            if !different.contains(text) {
                different.push(text)
            }
        });
        let place = different.iter().position(|text| *text == texts[at]).unwrap_or(0) + 1;
        let mark = format!("…{place}");
        cut(texts[at], width.saturating_sub(mark.chars().count())).trim_end_matches('…').to_owned() + &mark
    };
    (0..texts.len()).map(|at| if clash(&ends, at) { number(at) } else { ends[at].clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_texts_stay_distinct() {
        assert_eq!(cut_apart(&["pie", "tail-drop"], 9), ["pie", "tail-drop"]);
        assert_eq!(cut_apart(&["tail-drop", "codel"], 6), ["tail-…", "codel"]);
        let long = ["tail-drop limit=1 bdp", "tail-drop limit=2 bdp"];
        assert_eq!(cut_apart(&long, 12), ["…limit=1 bdp", "…limit=2 bdp"]);
        assert_eq!(cut_apart(&["a same 1 same z", "a same 2 same z"], 6), ["a s…1", "a s…2"]);
        for width in 2..20 {
            assert!(cut_apart(&long, width).iter().all(|text| text.chars().count() <= width), "{width}");
        }
    }
}
