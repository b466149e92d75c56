//! `weir reproduce`: runs the labs of a study and holds what they claim against what was measured, one row a claim.
//!
//! A study is a folder below `labs/` with a `profile.toml`, which fixes every choice that its sources leave open; its labs
//! extend that profile, and one that does not is refused.

use crate::cli::{EngineName, ReproduceArgs};
use crate::failure::{Failure, terminal_width};
use crate::run::{Execution, engines, estimate, execute};
use crate::session::Session;
use crate::{commands, print, print_json, say};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use weir_engine::{Lock, judge};
use weir_plan::{Form, Lab};
use weir_report::{Reproduced, Score, claims_table, write_claims, write_document};

/// Where studies are.
const STUDIES: &str = "labs";
/// A study's profile.
pub(crate) const PROFILE: &str = "profile.toml";

/// What a study's folder says of the study, which its document begins with: in `about.md`, of real Linux in `about-live.md`.
const ABOUT: &str = "about";
/// What follows the names of documents and results where real Linux was asked too.
const LIVE: &str = "-live";
/// Where the documents of the studies go, below the results.
const DOCUMENTS: &str = "documents";

/// Runs the labs of one study or of all, judges and tells.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let labs = find(args.what.as_deref(), &args.labs.clone().unwrap_or_else(|| STUDIES.into()))?;
    let live = args.on.contains(&EngineName::Live);
    let suffix = if live { LIVE } else { "" };
    let form = Form { full: args.full, live };
    let alone = labs.len() == 1;
    let studies: BTreeMap<String, PathBuf> =
        labs.iter().map(|place| (place.study.clone(), place.folder.clone())).collect();
    let mut loaded = vec![];
    for place in labs {
        let lab = Lab::load_as(&place.file, &[], form)?;
        require_profile(&place, &lab)?;
        // What claims nothing is there to be looked at.
        if args.full || alone || !lab.claims().is_empty() {
            loaded.push((place.study, lab));
        }
    }
    if live && !alone {
        leave_out_what_is_simulated(&mut loaded);
    }
    let engines = engines(&args.on);
    let leave = commands::leave(loaded.iter().map(|(_, lab)| lab), &args.on, args.allow_commands)?;
    say(&estimate(loaded.iter().map(|(_, lab)| lab), &engines, args.live_jobs));
    if live {
        let _ = weir_live::enter();
    }
    let out = args.out.clone().unwrap_or_else(|| {
        let form = if args.full { "-full" } else { "" };
        PathBuf::from("results").join(format!("reproduce{form}{suffix}"))
    });
    fs::create_dir_all(&out).map_err(|error| Failure::failed(format!("{}: {error}", out.display())))?;
    let _lock = Lock::take(&out)?;
    let asked = format!("{:?} on {:?}, full: {}", args.what, args.on, args.full);
    let mut session = args.rerun.then(|| Session::open(&out, asked));
    let mut reproduced = vec![];
    for (study, lab) in loaded {
        let folder = format!("{study}/{}", lab.name());
        let execution = Execution {
            out: out.join(&folder),
            jobs: args.jobs,
            live_jobs: args.live_jobs,
            pcap: None,
            rerun: session.as_ref().is_some_and(|session| !session.has(&folder, &lab)),
            only: &[],
            retries: 1,
            report: true,
        };
        let done = execute(&lab, &engines, &execution, &leave)?;
        if let Some((id, reason)) = done.tally.failed.first() {
            return Err(Failure::failed(format!("{folder}: run {id} failed: {reason}")));
        }
        if let Some(session) = &mut session {
            session.completed(&folder, &lab)?;
        }
        let claims = judge(lab.claims(), &done.summary);
        let title = lab.title().map(String::from);
        reproduced.push(Reproduced { study, lab: lab.name().into(), title, folder, claims });
    }
    session.map_or(Ok(()), Session::end)?;
    write_claims(&out, &reproduced)?;
    if !alone {
        write_documents(&studies, &out, &reproduced, suffix)?;
    }
    let score = Score::of(&reproduced);
    let document = json!({ "full": args.full, "score": score, "labs": reproduced });
    let text = serde_json::to_string_pretty(&document).map_err(|error| Failure::failed(error.to_string()))?;
    weir_engine::write_below(&out, "reproduce.json", (text + "\n").as_bytes())
        .map_err(|error| Failure::failed(format!("{}: {error}", out.join("reproduce.json").display())))?;
    if args.json {
        print_json(&document)?;
    } else {
        print(&claims_table(&reproduced, terminal_width()))?;
        let full = if args.full { "" } else { "--full runs all that the labs have.  " };
        print(&format!("\n{full}{}\n", out.join("index.html").display()))?;
    }
    if score.fails > 0 { Err(Failure::quiet(1)) } else { Ok(()) }
}

/// Of a study that has labs for real Linux, takes the others out, and says so.
fn leave_out_what_is_simulated(loaded: &mut Vec<(String, Lab)>) {
    let chosen: BTreeSet<String> =
        loaded.iter().filter(|(_, lab)| lab.is_for_live()).map(|(study, _)| study.clone()).collect();
    let stays = |study: &str, lab: &Lab| lab.is_for_live() || !chosen.contains(study);
    let out: Vec<&str> =
        loaded.iter().filter(|(study, lab)| !stays(study, lab)).map(|(_, lab)| lab.name()).collect();
    if !out.is_empty() {
        say(&format!("for the simulator only, without [live]: {}", out.join(", ")));
    }
    loaded.retain(|(study, lab)| stays(study, lab));
}

/// A document for each study, with what its folder says of it; `suffix` follows the names of both.
fn write_documents(
    studies: &BTreeMap<String, PathBuf>,
    out: &Path,
    reproduced: &[Reproduced],
    suffix: &str,
) -> Result<(), Failure> {
    for (study, folder) in studies {
        let about = folder.join(format!("{ABOUT}{suffix}.md"));
        // A pipe of that name would be waited for.
        let about = about.is_file().then(|| fs::read_to_string(about).ok()).flatten();
        let labs: Vec<Reproduced> = reproduced.iter().filter(|lab| lab.study == *study).cloned().collect();
        write_document(&out.join(DOCUMENTS), &format!("{study}{suffix}"), about.as_deref(), &labs)?;
    }
    Ok(())
}

/// A lab of a study.
struct Place {
    study: String,
    folder: PathBuf,
    file: PathBuf,
}

/// The labs of `STUDY`, of `STUDY/LAB`, or of all studies.
fn find(what: Option<&str>, root: &Path) -> Result<Vec<Place>, Failure> {
    let (study, lab) = match what.map(|what| what.trim_end_matches('/').split_once('/').unwrap_or((what, "")))
    {
        None => (None, ""),
        Some((study, lab)) => (Some(study.trim_end_matches('/')), lab.trim_end_matches(".toml")),
    };
    let studies: Vec<PathBuf> = below(root).into_iter().filter(|path| path.join(PROFILE).is_file()).collect();
    let names = || studies.iter().map(|path| name(path)).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&PathBuf> =
        studies.iter().filter(|path| study.is_none_or(|study| name(path) == study)).collect();
    if chosen.is_empty() {
        let there = if studies.is_empty() {
            format!("a study is a folder in {} with a {PROFILE}; --labs names another place", root.display())
        } else {
            format!("the studies in {} are {}", root.display(), names())
        };
        let message = match study {
            Some(study) => format!("there is no study `{study}`"),
            None => format!("there are no studies in {}", root.display()),
        };
        return Err(Failure::bad_input(message, there));
    }
    let mut found = vec![];
    for folder in chosen {
        let labs = below(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "toml"));
        for file in labs.filter(|path| !path.ends_with(PROFILE)) {
            found.push(Place { study: name(folder), folder: folder.clone(), file });
        }
    }
    let labs: Vec<String> = found.iter().map(|place| stem(&place.file)).collect();
    found.retain(|place| lab.is_empty() || stem(&place.file) == lab);
    if found.is_empty() {
        let message = format!("the study has no lab {}", if lab.is_empty() { "at all" } else { lab });
        return Err(Failure::bad_input(message, format!("its labs are {}", labs.join(", "))));
    }
    Ok(found)
}

/// What is in a folder, by name.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A lab is judged only under its study's profile.
fn require_profile(place: &Place, lab: &Lab) -> Result<(), Failure> {
    let profile = place.folder.join(PROFILE);
    let canonical = profile.canonicalize().unwrap_or_else(|_| profile.clone());
    if lab.files().contains(&canonical) {
        return Ok(());
    }
    Err(Failure::bad_input(
        format!("{} does not extend its study's profile", place.file.display()),
        format!(
            "write extends = \"{PROFILE}\": what a study leaves open is fixed there, once for all its labs"
        ),
    ))
}
