//! Every kind of page at three widths, in light and dark: nothing is wider than the page, no text is cut or lies on another, text
//! stands out from its ground (WCAG 2.1, 1.4.3), and everything that can be used has a name.
//!
//! Pages are read in headless Chromium; without one the test says that it skips (`WEIR_REQUIRE_CHROMIUM=1` makes that a
//! failure).

use crate::browser;
use crate::place::{Place, status, text};
use std::path::Path;

/// Two queues behind each other, two classes, a station, pages, a call and many flows: something of everything that pages show.
const LAB: &str = "format = 1\nname = 'busy'\ntitle = 'Something of everything'\n[run]\nduration = '8 s'\nwarmup = '2 s'\n\
    repeats = 2\n[dumbbell]\nrate = { down = '20 Mbit/s', up = '5 Mbit/s' }\nrtt = '30 ms'\n\
    [stations.box]\nat = 'left'\nlinks = ['down']\nkind = 'policer'\nrate = '18 Mbit/s'\nburst = '50 kB'\n\
    [traffic.scalable-bulk]\ncc = 'prague'\nflows = 3\n[traffic.classic-bulk]\ncc = 'cubic'\nflows = 14\n\
    [traffic.pages]\ncc = 'cubic'\nworkload = { kind = 'web', load = '1 Mbit/s' }\n\
    [vary]\n'dumbbell.queue' = ['dualpi2', 'fq-codel', { kind = 'tail-drop', limit = '200 packets' }]\n\
    'dumbbell.rtt' = ['10 ms', '40 ms']\n";

/// A script that collects the faults of a page, as a list of texts in `found`.
const CHECKS: &str = r#"
const found = [];
const say = (what, node) => found.push(`${what}: ${node.tagName} ${(node.getAttribute('class') || '')} "${(node.textContent || '').trim().slice(0, 50)}"`);
const root = document.documentElement;
if (root.scrollWidth > innerWidth) found.push(`the page is ${root.scrollWidth} wide in ${innerWidth}`);
if (!root.lang) found.push('the page has no language');
const shown = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility !== 'hidden';
const all = [...document.body.querySelectorAll('*')].filter(shown);
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const known = new Map();
const parts = (colour) => {
  if (!known.has(colour)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
  }
  return known.get(colour);
};
const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
  const part = rgb[i] / 255;
  return sum + weight * (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
}, 0);
function ground(node) {
  for (let at = node; at; at = at.parentElement) {
    const back = parts(getComputedStyle(at).backgroundColor);
    if (back[3] === 255) return back;
  }
  return [255, 255, 255, 255];
}
for (const node of all) {
  const style = getComputedStyle(node);
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const svg = node instanceof SVGElement;
  if (own && node.tagName !== 'title' && node.tagName !== 'OPTION' && !node.closest('noscript, canvas, [disabled]')) {
    const ink = parts(svg ? style.fill : style.color);
    // Numbers in a heat map stand on their own squares.
    if (!/^(deep|faint)$/.test(node.getAttribute('class') || '')) {
      const [a, b] = [light(ink), light(ground(node))].sort((x, y) => y - x);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < (large ? 3 : 4.5) - 0.01) say(`a contrast of ${ratio.toFixed(2)}`, node);
    }
  }
  if (svg && node.tagName === 'text') {
    const [box, frame] = [node.getBoundingClientRect(), node.closest('svg').getBoundingClientRect()];
    if (box.left < frame.left - 2 || box.right > frame.right + 2 || box.bottom > frame.bottom + 3) say('text is cut at the edge of its drawing', node);
  } else if (!svg && own && style.overflowX === 'hidden' && node.scrollWidth > node.clientWidth + 1) say('text is cut', node);
  if (/auto|scroll/.test(style.overflowX + style.overflowY) && (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1) && node.tabIndex < 0
    && !node.querySelector('a, button, input, select, [tabindex]')) say('what scrolls cannot be reached by keys', node);
  if (node.matches('button, a[href]') && !(node.textContent.trim() || node.getAttribute('aria-label'))) say('without a name', node);
  if (node.matches('input, select') && !(node.getAttribute('aria-label') || node.labels.length)) say('without a label', node);
  if (node.matches('[role=img], [role=region], [role=group]') && !node.getAttribute('aria-label')) say('without a name', node);
}
for (const drawing of document.querySelectorAll('svg')) {
  const boxes = [...drawing.querySelectorAll('text')].filter(shown).slice(0, 150).map((node) => [node, node.getBoundingClientRect()]);
  boxes.forEach(([node, a], i) => boxes.slice(i + 1).forEach(([other, b]) => {
    const [across, down] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
    if (across > 3 && down > 4) say(`text lies on "${other.textContent.slice(0, 20)}"`, node);
  }));
}
const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => found.push(`the id ${id} stands twice`));
parent.postMessage({ name: window.name, found: found.slice(0, 12) }, '*');
"#;

/// Opens a page in six frames: three widths, light and dark. Returns the faults in each.
pub(crate) fn checked(browser: &Path, page: &Path, part: &str) -> Vec<String> {
    let html = std::fs::read_to_string(page).unwrap();
    let theme = "<script>document.documentElement.dataset.theme = window.name.split(' ')[1];</script>";
    let checks = format!(
        "<script>addEventListener('load', () => setTimeout(() => {{ {CHECKS} }}, 700));</script></body>"
    );
    let inner = html.replacen("</head>", &format!("{theme}</head>"), 1).replacen("</body>", &checks, 1);
    std::fs::write(page.with_file_name("checked.html"), inner).unwrap();
    let frames: String = [390, 800, 1400]
        .into_iter()
        .flat_map(|width| ["light", "dark"].map(|theme| (width, theme)))
        .map(|(width, theme)| {
            format!("<iframe name=\"{width} {theme}\" src=\"checked.html{part}\" style=\"width:{width}px;height:900px;border:0\"></iframe>")
        })
        .collect();
    let outer = page.with_file_name("frames.html");
    let listen = "<pre id=\"found\"></pre><script>const told = []; addEventListener('message', ({ data }) => { told.push(data.name, ...data.found.map((text) => \
                  `${data.name}: ${text}`)); document.getElementById('found').textContent = told.join('\\n') + '\\n'; });</script>";
    std::fs::write(&outer, format!("<!doctype html><html><body>{listen}{frames}</body></html>")).unwrap();
    let text = browser::found(browser, &outer, "", "1500,1000", 6000);
    let told: Vec<&str> = text.lines().collect();
    let (frames, wrong): (Vec<&str>, Vec<&str>) = told.into_iter().partition(|line| !line.contains(": "));
    assert_eq!(frames.len(), 6, "frames of {} that were checked: {frames:?}", page.display());
    wrong.into_iter().map(|line| format!("{}{part} at {line}", page.file_name().unwrap().display())).collect()
}

#[test]
fn every_kind_of_fault_on_a_page_is_found() {
    let Some(browser) = browser::browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let body = "<p style='color:#aaa'>pale</p><div style='overflow:hidden;width:40px;white-space:nowrap'>far too long</div><button></button>\
                <input><svg width='80' height='20'><text x='70' y='12'>outside</text></svg><svg width='300' height='40'><text x='5' y='20'>one</text>\
                <text x='8' y='20'>two</text></svg><div style='width:3000px'>wide</div><i id='a'></i><i id='a'></i>";
    std::fs::write(
        &page,
        format!("<!doctype html><html lang=\"en\"><head></head><body>{body}</body></html>"),
    )
    .unwrap();
    let wrong = checked(&browser, &page, "").join("\n");
    for fault in [
        "a contrast of",
        "text is cut:",
        "without a name",
        "without a label",
        "edge of its drawing",
        "lies on",
        "wide in 390",
        "stands twice",
    ] {
        assert!(wrong.contains(fault), "{fault}: {wrong}");
    }
}

#[test]
fn every_page_fits_its_window_and_has_contrast_and_accessible_names() {
    let Some(browser) = browser::browser() else { return };
    let place = Place::new();
    std::fs::write(place.path("busy.toml"), LAB).unwrap();
    let output = place.weir(&["run", "busy.toml", "--out", "out"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let output = place.weir(&["compare", "out", "out", "--out", "page"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let overlay = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/questions/overlay.toml");
    let output = place.weir(&["run", overlay, "--out", "overlay"]);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let out = place.path("out");
    let run = std::fs::read_dir(out.join("report/sim")).unwrap().flatten().map(|entry| entry.path());
    let run = run.filter(|path| path.extension().is_some_and(|ending| ending == "html")).min().unwrap();
    let compare = out.join("report/compare.html");
    let pages = [
        (out.join("index.html"), ""),
        (run, ""),
        (place.path("overlay/report/sim/r1.html"), ""),
        (compare.clone(), ""),
        (compare.clone(), "#delay&view=overlay"),
        (compare.clone(), "#goodput&view=bars"),
        (compare.clone(), "#rtt&view=lines&along=dumbbell.rtt&by=dumbbell.queue"),
        (compare, "#goodput&view=heat&along=dumbbell.rtt&by=dumbbell.queue"),
        (place.path("page/index.html"), ""),
    ];
    let wrong: Vec<String> = pages.iter().flat_map(|(page, part)| checked(&browser, page, part)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
