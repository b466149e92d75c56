//! Judged claims as they are shown: in the terminal, on the page and in the document.

use crate::claim::{Claim, Expected, Order, Over, Repeats, Tolerance};
use crate::judge::{ClaimVerdict, Judged, Point, Standing};
use crate::{Reproduced, Score, claims_table, write_claims, write_document};
use weir_record::{Param, Statistic};

fn lab() -> Reproduced {
    let claim = |verdict, measured, differs: Option<&str>| Judged {
        claim: Claim {
            row: None,
            metric: "queue_delay_ms".into(),
            of: vec!["down".into()],
            class: None,
            window: None,
            statistic: Statistic::P99,
            cells: Default::default(),
            repeats: Repeats::Mean,
            against: None,
            along: None,
            over: Over::Each,
            expected: Expected::Near { value: 15.0, tolerance: Tolerance::Share(0.2) },
            source: "RFC 8033, section 4.2".into(),
            differs: differs.map(String::from),
        },
        engine: "sim".into(),
        measured,
        interval: None,
        points: vec![],
        standing: None,
        cell: vec![Param { level: "queue".into(), value: "<PIE>".into() }],
        cells: 2,
        unmeasured: 0,
        repeats: 3,
        verdict,
    };
    let claims = vec![
        claim(ClaimVerdict::Holds, Some(14.04), None),
        claim(ClaimVerdict::Fails, None, None),
        claim(ClaimVerdict::Differs, Some(30.0), Some("another clock, see docs/clock.md")),
    ];
    let (study, lab, folder) = ("textbook".into(), "pie".into(), "textbook/pie".into());
    Reproduced { study, lab, title: Some("PIE".into()), folder, claims }
}

#[test]
fn the_terminal_says_what_was_published_and_what_was_measured() {
    let text = claims_table(&[lab()], 100).replace('\u{a0}', " ");
    let expected = "textbook/pie: PIE\n  \
        claim                       published  measured        verdict\n  \
        Queue delay, p99 of down, ms  15 ± 20 %      14.0  sim   holds\n";
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&text).starts_with(&squeezed(expected)), "{text}");
    assert!(
        text.contains("farthest of 2 cells: queue <PIE>") && text.contains("see docs/clock.md"),
        "{text}"
    );
    assert!(text.ends_with("1 of 3 claims hold, 1 fails; 1 differs for a known reason.\n"), "{text}");
}

#[test]
fn claims_of_a_row_hold_together_or_not_at_all() {
    let rows = |rows: [Option<&str>; 3]| {
        let mut lab = lab();
        for (judged, row) in lab.claims.iter_mut().zip(rows) {
            judged.claim.row = row.map(String::from);
        }
        // A row may have claims of several labs.
        let other = Reproduced { claims: lab.claims.split_off(2), ..lab.clone() };
        let score = Score::of(&[lab, other]);
        assert_eq!((score.numbers_hold, score.numbers), (1, 3));
        let grouped = score.holds + score.fails + score.differs < 3;
        let told = score.sentence().ends_with(". Judged one by one, 1 of their 3 numbers and orders hold.");
        assert_eq!(told, grouped);
        [score.holds, score.fails, score.differs]
    };
    assert_eq!(rows([None, None, None]), [1, 1, 1]);
    assert_eq!(rows([Some("H1"), Some("H1"), None]), [0, 1, 1]);
    assert_eq!(rows([Some("H1"), Some("H2"), Some("H1")]), [0, 1, 1]);
    assert_eq!(rows([Some("H1"), Some("H1"), Some("H1")]), [0, 1, 0]);
}

#[test]
fn unmeasured_claims_are_counted_separately() {
    let score = |verdicts: [ClaimVerdict; 3], row: Option<&str>| {
        let mut lab = lab();
        for (judged, verdict) in lab.claims.iter_mut().zip(verdicts) {
            (judged.verdict, judged.claim.row) = (verdict, row.map(String::from));
        }
        Score::of(&[lab])
    };
    use ClaimVerdict::{Differs, Fails, Holds, NotMeasured};
    let told = score([Holds, NotMeasured, Fails], None);
    assert_eq!((told.holds, told.fails, told.not_measured, told.numbers), (1, 1, 1, 2));
    assert_eq!(told.sentence(), "1 of 2 claims hold, 1 fails; 1 was not measured.");
    assert_eq!(score([NotMeasured; 3], None).sentence(), "No claim was judged; 3 were not measured.");
    // A row holds only if all its claims hold, and a claim that fails outweighs one that was not
    // measured.
    let row = |verdicts| {
        let Score { holds, differs, fails, not_measured, .. } = score(verdicts, Some("H1"));
        [holds, differs, fails, not_measured]
    };
    assert_eq!(row([Holds, NotMeasured, Holds]), [0, 0, 0, 1]);
    assert_eq!(row([Holds, NotMeasured, Differs]), [0, 1, 0, 0]);
    assert_eq!(row([Fails, NotMeasured, Differs]), [0, 0, 1, 0]);
}

#[test]
fn the_document_lists_unmeasured_claims() {
    let mut lab = lab();
    lab.claims.truncate(1);
    let (measured, verdict) = (None, ClaimVerdict::NotMeasured);
    lab.claims[0] = Judged { measured, verdict, cells: 0, unmeasured: 2, ..lab.claims[0].clone() };
    let partly =
        Judged { measured: Some(14.0), verdict: ClaimVerdict::Holds, cells: 1, ..lab.claims[0].clone() };
    lab.claims.push(partly);
    let folder = tempfile::tempdir().unwrap();
    write_document(folder.path(), "textbook-live", None, &[lab]).unwrap();
    let page = std::fs::read_to_string(folder.path().join("textbook-live.md")).unwrap();
    assert!(page.contains("All 1 claims hold; 1 was not measured.\n"), "{page}");
    assert!(page.contains("A claim that no valid run measured neither holds nor fails."), "{page}");
    assert!(page.contains("| – | not measured | RFC 8033"), "{page}");
    assert!(page.contains("farthest of 1 measured cells of 3: queue &lt;PIE&gt;"), "{page}");
}

#[test]
fn a_study_has_a_document_with_a_row_for_each_claim_and_a_picture_where_cells_vary() {
    let mut lab = lab();
    lab.claims[2].claim.row = Some("H10".into());
    lab.claims[0].claim.row = Some("H9".into());
    lab.claims[0].points = [("5 Mbit/s", 14.0), ("10 Mbit/s", 15.0), ("20 Mbit/s", 30.0)]
        .map(|(rate, value)| Point {
            cell: vec![Param { level: "rate".into(), value: rate.into() }],
            value: Some(value),
        })
        .to_vec();
    let folder = tempfile::tempdir().unwrap();
    let about = "# The textbook\n\nSome pages.\n\n## What was learnt\n\nA lot.\n";
    write_document(folder.path(), "textbook", Some(about), &[lab]).unwrap();
    let page = std::fs::read_to_string(folder.path().join("textbook.md")).unwrap();
    assert!(
        page.starts_with("# The textbook\n\nSome pages.\n\n## What holds\n\n1 of 3 claims hold"),
        "{page}"
    );
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text} in {page}"));
    assert!(at("| H9 | ") < at("| H10 | ") && at("| H10 | ") < at("|  | Queue delay"), "{page}");
    assert!(
        at("## What differs") < at("\n\n## What was learnt\n\nA lot.\n\n## The claims as pictures"),
        "{page}"
    );
    assert!(page.contains("- **H10**: another clock, see docs/clock.md"));
    assert_eq!(page.matches(".svg)").count(), 1, "one claim has cells that vary");
    let picture = std::fs::read_to_string(folder.path().join("textbook/pie-1.svg")).unwrap();
    assert_eq!(picture.matches("<circle").count(), 3);
    // 15 ± 20 % in a plot from 0 to 30 that is 218 points high: 43.6 points.
    assert!(picture.contains("height=\"43.6\" fill=\"#e8e8e8\""), "{picture}");
}

#[test]
fn the_document_of_two_engines_distinguishes_them() {
    let mut lab = lab();
    lab.claims.truncate(1);
    let live = Judged { engine: "live".into(), verdict: ClaimVerdict::Fails, ..lab.claims[0].clone() };
    lab.claims.push(live);
    let folder = tempfile::tempdir().unwrap();
    write_document(folder.path(), "textbook-live", None, &[lab]).unwrap();
    let page = std::fs::read_to_string(folder.path().join("textbook-live.md")).unwrap();
    let sim = "- `sim`: All 1 claims hold.\n- `live`: 0 of 1 claims hold, 1 fails.\n";
    assert!(page.contains(sim), "{page}");
    assert!(page.contains("| study | on | measured |"), "{page}");
    assert_eq!((page.matches("| sim |").count(), page.matches("| live |").count()), (1, 1), "{page}");
}

#[test]
fn a_failed_order_is_shown_with_the_measured_values_and_the_wrong_pairs() {
    let mut lab = lab();
    let judged = &mut lab.claims[1];
    let places = [["a", "b"].map(String::from).to_vec(), vec!["c".into()]].to_vec();
    let order = Order { places, falling: false };
    judged.claim.expected = Expected::Order { by: "queue".into(), order };
    let values = [("a", 1.5), ("b", 4.0), ("c", 3.0)];
    judged.standing = Some(Standing {
        values: values.map(|(label, value)| (label.into(), Some(value))).to_vec(),
        pairs: 2,
        wrong: vec![("b".into(), "c".into())],
        unmeasured: 0,
    });
    let text = claims_table(&[lab], 120);
    assert!(text.contains("a ~ b < c"), "{text}");
    assert!(text.contains("a 1.50, b 4.00, c 3.00; but b ≥ c"), "{text}");
}

#[test]
fn the_page_has_a_row_for_each_claim_and_escapes_text_from_labs() {
    let folder = tempfile::tempdir().unwrap();
    write_claims(folder.path(), &[lab()]).unwrap();
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert_eq!(page.matches("class=\"verdict").count(), 3);
    assert!(page.contains("&lt;PIE&gt;") && !page.contains("<PIE>"));
    assert!(page.contains("href=\"textbook/pie/index.html\""));
    assert!(folder.path().join("report/assets/weir.css").is_file());
}

#[test]
fn the_page_draws_a_claim_whose_cells_vary() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = lab();
    lab.claims[0].points = [("5 Mbit/s", 14.0), ("10 Mbit/s", 15.0), ("20 Mbit/s", 30.0)]
        .map(|(rate, value)| Point {
            cell: vec![Param { level: "dumbbell.rate".into(), value: rate.into() }],
            value: Some(value),
        })
        .to_vec();
    write_claims(folder.path(), &[lab]).unwrap();
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert_eq!(page.matches("<img src=\"report/claims/textbook-pie-1.svg\"").count(), 1, "{page}");
    let picture = folder.path().join("report/claims/textbook-pie-1.svg");
    assert_eq!(std::fs::read_to_string(picture).unwrap().matches("<circle").count(), 3);
}
