//! Whether two builds of weir compute the same values: each lab is run on the simulator by both, one repeat a cell, and every value of
//! `summary.json` is compared. New keys are listed, changed values are counted by key, with the first of them in full.
//!
//!     cargo run --release --example same_values -- OLD/weir target/release/weir [LAB...]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

type Failure = Box<dyn std::error::Error>;

/// Keys that depend on the build and are no values.
const OWN: [&str; 1] = ["weir_version"];

fn main() -> Result<ExitCode, Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(before), Some(after)) = (arguments.next(), arguments.next()) else {
        return Err("usage: same_values OLD/weir NEW/weir [LAB...]".into());
    };
    let mut labs: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    if labs.is_empty() {
        find_labs(Path::new("labs"), &mut labs)?;
    }
    let folder = tempfile::tempdir()?;
    let (mut differ, mut new) = (0, BTreeSet::new());
    for (number, lab) in labs.iter().enumerate() {
        let results = [(&before, "before"), (&after, "after")].map(|(weir, name)| {
            let out = folder.path().join(format!("{number}-{name}"));
            run(weir, lab, &out)
        });
        let [Some(before), Some(after)] = results else {
            println!("{}: not run, since the simulator cannot", lab.display());
            continue;
        };
        let mut found = Found { equal: 0, changed: BTreeMap::new(), new: &mut new };
        found.compare("", &before, &after);
        differ += found.changed.len();
        let runs = before["runs"].as_array().map_or(0, Vec::len);
        println!(
            "{}: {} values of {runs} runs compared, {} keys differ",
            lab.display(),
            found.equal,
            found.changed.len()
        );
        for (key, (count, first)) in &found.changed {
            println!("    {key}: {count} values, first {first}");
        }
    }
    for key in &new {
        println!("new: {key}");
    }
    Ok(if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The labs below a folder, without profiles.
fn find_labs(folder: &Path, labs: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            find_labs(&path, labs)?;
        } else if path.extension().is_some_and(|it| it == "toml") && !path.ends_with("profile.toml") {
            labs.push(path);
        }
    }
    Ok(())
}

/// Runs a lab; `None` where this build refuses it.
fn run(weir: &str, lab: &Path, out: &Path) -> Option<Value> {
    let status = Command::new(weir)
        .arg("run")
        .arg(lab)
        .args(["--on", "sim", "--no-report", "--set", "run.repeats=1", "--out"])
        .arg(out)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let summary = std::fs::read(out.join("summary.json")).ok().filter(|_| status.code() != Some(2))?;
    serde_json::from_slice(&summary).ok()
}

/// The result of a comparison.
struct Found<'a> {
    equal: u64,
    /// By key: how many values differ, and the first of them.
    changed: BTreeMap<String, (u64, String)>,
    new: &'a mut BTreeSet<String>,
}

impl Found<'_> {
    fn compare(&mut self, key: &str, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(old), Value::Object(now)) => {
                let below = |name: &str| format!("{key}.{name}");
                for (name, value) in old.iter().filter(|(name, _)| !OWN.contains(&name.as_str())) {
                    self.compare(&below(name), value, now.get(name).unwrap_or(&Value::Null));
                }
                self.new.extend(now.keys().filter(|name| !old.contains_key(*name)).map(|name| below(name)));
            }
            (Value::Array(old), Value::Array(now)) if old.len() == now.len() => {
                old.iter().zip(now).for_each(|(old, now)| self.compare(key, old, now));
            }
            _ if before == after => self.equal += 1,
            _ => {
                let (count, _) =
                    self.changed.entry(key.to_owned()).or_insert_with(|| (0, format!("{before} -> {after}")));
                *count += 1;
            }
        }
    }
}
