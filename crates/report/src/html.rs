//! The frame of every page, and the few HTML elements of pages. All text from a lab passes through [`escape`].

use std::fmt::Write;

/// Number of colours for groups; further groups repeat them.
pub const GROUP_COLOURS: usize = 8;

/// Text, escaped for HTML content and attributes.
pub fn escape(text: &str) -> String {
    // Nearly all texts need no escapes.
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A file's name, encoded for a link: everything but unreserved characters is percent-encoded (RFC 3986, section 2.3).
pub fn link(name: &str) -> String {
    let mut safe = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            safe.push(byte as char);
        } else {
            let _ = write!(safe, "%{byte:02X}");
        }
    }
    safe
}

/// A page: the parts that differ between pages.
#[derive(Default)]
pub struct Page {
    /// Title of the window.
    pub title: String,
    /// Relative path from the page to the result folder: empty, or `../` once or more.
    pub root: &'static str,
    /// Links to the pages above, outermost first: texts and addresses.
    pub crumbs: Vec<(String, String)>,
    /// Subject of the page, as HTML, in small letters above the sentence.
    pub eyebrow: String,
    /// The sentence at its top.
    pub sentence: String,
    /// Its body, as HTML.
    pub body: String,
    /// Paths of the scripts that it needs, from the result folder.
    pub scripts: Vec<String>,
}

/// The logo: water over a step.
const MARK: &str = "<svg class=\"mark\" viewBox=\"0 0 32 20\" width=\"32\" height=\"20\" aria-hidden=\"true\"><path d=\"M1 5h11c4 0 4 \
                    10 8 10h11M1 10h8c4 0 4 8 8 8M1 15h5\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\" \
                    stroke-linecap=\"round\"/></svg>";

/// Script that sets the chosen theme before the first paint, so that the page does not flash.
const THEME: &str =
    "try{var t=localStorage.getItem('weir-theme');if(t)document.documentElement.dataset.theme=t}catch(e){}";

impl Page {
    /// The whole page.
    pub fn render(&self) -> String {
        self.render_permitted("")
    }

    /// The whole page for a server whose policy permits only inline scripts with this nonce.
    pub fn render_with_nonce(&self, nonce: &str) -> String {
        self.render_permitted(&format!(" nonce=\"{}\"", escape(nonce)))
    }

    /// The whole page; `permit` is an attribute of its inline script.
    fn render_permitted(&self, permit: &str) -> String {
        let root = self.root;
        let mut crumbs = String::new();
        for (text, href) in &self.crumbs {
            let _ = write!(crumbs, "<a href=\"{}\">{}</a>", escape(href), escape(text));
        }
        let scripts: String = self
            .scripts
            .iter()
            .map(|file| format!("<script src=\"{root}{}\"></script>\n", link(file)))
            .collect();
        let (title, eyebrow, sentence) = (escape(&self.title), &self.eyebrow, escape(&self.sentence));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <meta name=\"description\" content=\"{sentence}\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <link rel=\"stylesheet\" href=\"{root}report/assets/uplot.css\">\n\
             <link rel=\"stylesheet\" href=\"{root}report/assets/weir.css\">\n<script{permit}>{THEME}</script>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">Skip to the page</a>\n\
             <header><a class=\"word\" href=\"{root}index.html\">{MARK}weir</a><nav aria-label=\"The way here\">{crumbs}</nav>\
             <button type=\"button\" id=\"theme\" hidden></button></header>\n\
             <main id=\"main\">\n<p class=\"eyebrow\">{eyebrow}</p>\n<h1>{sentence}</h1>\n{body}</main>\n\
             <footer>Every number here is computed from the records beside this page. Drawn by weir.</footer>\n\
             {scripts}</body>\n</html>\n",
            body = self.body,
        )
    }
}

/// A table with a caption, which scrolls by itself if it is wider than the page.
#[derive(Default)]
pub struct Table {
    caption: String,
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
    class: &'static str,
}

/// A cell of a table: HTML, and whether it holds a number.
#[derive(Clone, Default)]
pub struct Cell {
    html: String,
    number: bool,
}

impl Cell {
    /// Text.
    pub fn text(text: &str) -> Cell {
        Cell { html: escape(text), number: false }
    }
    /// Text that may be long, in several lines.
    pub fn long(text: &str) -> Cell {
        Cell { html: format!("<span class=\"wrap\">{}</span>", escape(text)), number: false }
    }
    /// HTML that is safe already.
    pub fn html(html: String) -> Cell {
        Cell { html, number: false }
    }
    /// HTML that is safe already, in a column of numbers.
    pub fn figure(html: String) -> Cell {
        Cell { html, number: true }
    }
    /// A number, or a blank if nothing was measured.
    pub fn number(value: Option<f64>) -> Cell {
        Cell { html: value.map(crate::number::number).unwrap_or_default(), number: true }
    }
    /// A number that was configured, with as few digits as the lab wrote.
    pub fn given(value: Option<f64>) -> Cell {
        Cell {
            html: value.map(|value| crate::compact::compact(Some(value))).unwrap_or_default(),
            number: true,
        }
    }
    /// A count, or a blank.
    pub fn count(value: Option<u64>) -> Cell {
        Cell { html: value.map(crate::number::count).unwrap_or_default(), number: true }
    }
}

impl Table {
    /// An empty table.
    pub fn new(caption: &str, head: &[&str]) -> Table {
        Table {
            caption: caption.into(),
            head: head.iter().map(|text| text.to_string()).collect(),
            ..Table::default()
        }
    }

    /// The table with a button in each heading that sorts its rows.
    pub fn sorted_by_click(mut self) -> Table {
        self.class = " class=\"sorts\"";
        self
    }

    /// Adds a row; its first cell names it.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table without the columns in which every cell is blank; empty if it has no rows.
    pub fn render(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let kept: Vec<usize> = (0..self.head.len())
            .filter(|&column| {
                self.rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.html.is_empty()))
            })
            .collect();
        // Computed once for each column: for each cell, it would cost the square of the rows.
        let numeric = |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|c| c.number));
        let classes: Vec<&str> =
            (0..self.head.len()).map(|column| if numeric(column) { " class=\"n\"" } else { "" }).collect();
        let (caption, class) = (escape(&self.caption), self.class);
        let mut html = format!(
            "<div class=\"scroll\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\"><table{class}><caption>{caption}</caption><thead><tr>"
        );
        for &column in &kept {
            let _ = write!(html, "<th scope=\"col\"{}>{}</th>", classes[column], escape(&self.head[column]));
        }
        html += "</tr></thead><tbody>\n";
        for row in &self.rows {
            html += "<tr>";
            for &column in &kept {
                let text = row.get(column).map_or("", |cell| cell.html.as_str());
                if column == 0 {
                    html.extend(["<th scope=\"row\">", text, "</th>"]);
                } else {
                    html.extend(["<td", classes[column], ">", text, "</td>"]);
                }
            }
            html += "</tr>\n";
        }
        html + "</tbody></table></div>\n"
    }
}

/// A group's name with its colour before it.
pub fn swatch(colour: usize, name: &str) -> String {
    format!("<span class=\"swatch g{}\">{}</span>", colour % GROUP_COLOURS, escape(name))
}

/// A row of large figures: name, value, and text below it; figures without a value are left out.
pub fn figures(figures: &[(&str, Option<String>, String)]) -> String {
    let mut html = String::from("<dl class=\"figures\">");
    for (name, value, below) in figures {
        if let Some(value) = value {
            let (name, value, below) = (escape(name), escape(value), escape(below));
            let _ =
                write!(html, "<div><dt>{name}</dt><dd>{value}</dd><dd class=\"below\">{below}</dd></div>");
        }
    }
    html + "</dl>\n"
}

/// The reasons why a run is invalid, and its warnings.
pub fn notices(invalid: &[String], warnings: &[String]) -> String {
    let one = |class: &str, title: &str, texts: &[String]| {
        if texts.is_empty() {
            return String::new();
        }
        let items: String = texts.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
        format!("<section class=\"notice {class}\"><h2>{title}</h2><ul>{items}</ul></section>\n")
    };
    one("invalid", "This run is invalid", invalid) + &one("warning", "To know", warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_lab_reaches_the_page_as_markup() {
        let page = Page { title: "<b>".into(), sentence: "a < b & \"c\"".into(), ..Page::default() }.render();
        assert!(page.contains("<title>&lt;b&gt;</title>"));
        assert!(page.contains("<h1>a &lt; b &amp; &quot;c&quot;</h1>"));
    }

    #[test]
    fn links_encode_what_a_browser_would_read_otherwise() {
        assert_eq!(link("a b#1?x%.html"), "a%20b%231%3Fx%25.html");
    }

    #[test]
    fn a_column_without_values_is_not_drawn() {
        let mut table = Table::new("t", &["a", "b", "c"]);
        table.row(vec![Cell::text("x"), Cell::number(None), Cell::number(Some(1.5))]);
        let html = table.render();
        assert!(!html.contains(">b<") && html.contains("<td class=\"n\">1.50</td>"), "{html}");
    }
}
