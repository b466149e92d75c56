//! The files of a report's folder, and that the report needs no network.

use crate::sample;
use std::collections::BTreeSet;
use std::path::Path;

fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_str().unwrap().into());
            }
        }
    }
    found
}

#[test]
fn every_link_and_script_of_every_page_is_a_file_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim", "live"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let mut links = 0;
    for page in files(folder.path()).iter().filter(|name| name.ends_with(".html")) {
        let html = std::fs::read_to_string(folder.path().join(page)).unwrap();
        let place = folder.path().join(page);
        for part in html.split("href=\"").skip(1).chain(html.split("src=\"").skip(1)) {
            let target = &part[..part.find('"').unwrap()];
            if target.starts_with('#') || target.starts_with("data:") {
                continue;
            }
            assert!(!target.contains("://"), "{page} leads out: {target}");
            let file = place.parent().unwrap().join(target);
            assert!(file.is_file(), "{page}: {target} is not there");
            links += 1;
        }
    }
    assert!(links > 500, "{links} links");
}

#[test]
fn a_second_report_replaces_the_first_and_removes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = sample::lab(&["sim", "live"], 2);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let gone = lab.runs.pop().unwrap();
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let again = files(folder.path());
    assert!(!again.contains(&format!("report/{}/{}.html", gone.engine(), gone.id)));
    assert!(!again.contains(&format!("report/both/{}.html", gone.id)));
    assert!(again.iter().all(|name| !name.rsplit('/').next().unwrap().starts_with('.')), "{again:?}");
}

#[test]
fn a_report_that_fails_leaves_the_old_index_whole() {
    let folder = tempfile::tempdir().unwrap();
    let lab = sample::lab(&["sim"], 1);
    weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    let before = std::fs::read(folder.path().join("index.html")).unwrap();
    let mut other = lab.clone();
    other.name = "other".into();
    let failed = weir_report::write_pages(folder.path(), &other, |_| {
        Err(weir_report::ReportError::Records(weir_engine::ResultsError::NoResults("torn".into())))
    });
    assert!(failed.unwrap_err().to_string().contains("torn"));
    assert_eq!(std::fs::read(folder.path().join("index.html")).unwrap(), before);
}

#[test]
fn the_same_numbers_make_the_same_bytes_and_stay_small() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let lab = sample::lab(&["sim", "live"], 2);
    for folder in [&one, &two] {
        weir_report::write_pages(folder.path(), &lab, |run| Ok(sample::series(run))).unwrap();
    }
    let names = files(one.path());
    assert_eq!(names, files(two.path()));
    let mut size = 0;
    for name in names {
        let bytes = std::fs::read(one.path().join(&name)).unwrap();
        assert_eq!(bytes, std::fs::read(two.path().join(&name)).unwrap(), "{name}");
        size += bytes.len();
    }
    // 48 runs of 10 lines of 300 points: about 30 kB each, pages and shared scripts included.
    assert!(size < 48 * 30_000 + 200_000, "{size} bytes");
}
