//! `weir reproduce`: runs the labs of a study and judges their claims by what was measured, one row a claim.

use crate::cli::{EngineName, ReproduceArgs};
use crate::failure::{Failure, terminal_width};
use crate::run::{engines, estimate, execute};
use crate::session::Session;
use crate::{commands, print, print_json, say};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use weir_engine::Lock;
use weir_plan::{Form, Lab};
use weir_session::Execution;
use weir_study::{
    Claim, Reproduced, Score, claims, claims_table, find, judge, require_profile, write_claims,
    write_document,
};

/// The folder of studies.
const STUDIES: &str = "labs";

/// Name of the text about a study in its folder, with which the study's document begins: `about.md`, on real Linux
/// `about-live.md`.
const ABOUT: &str = "about";
/// Suffix of the names of documents and results if the live engine was asked for too.
const LIVE: &str = "-live";
/// Folder of the studies' documents, below the results.
const DOCUMENTS: &str = "documents";

/// Runs the labs of one study or of all, judges and tells.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let labs = find(args.what.as_deref(), &args.labs.clone().unwrap_or_else(|| STUDIES.into()))?;
    let live = args.on.contains(&EngineName::Live);
    let suffix = if live { LIVE } else { "" };
    let form = Form { full: args.full, live };
    // A study's document covers all its labs, so that one lab alone writes none.
    let alone = args.what.as_deref().is_some_and(|what| what.trim_end_matches('/').contains('/'));
    let studies: BTreeMap<String, PathBuf> =
        labs.iter().map(|place| (place.study.clone(), place.folder.clone())).collect();
    let engines = engines(&args.on);
    let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
    let mut loaded = vec![];
    for place in labs {
        let lab = Lab::load_as(&place.file, &[], form)?;
        require_profile(&place, &lab)?;
        let mut claims = claims(&lab)?;
        claims.retain(|claim| claim.can_be_judged(&names));
        // A lab without claims is run with --full, or if it is named.
        if args.full || alone || !claims.is_empty() {
            loaded.push(Loaded { study: place.study, lab, claims });
        }
    }
    if live && !alone {
        leave_out_what_is_simulated(&mut loaded);
    }
    let leave = commands::leave(loaded.iter().map(|one| &one.lab), &args.on, args.allow_commands)?;
    say(&estimate(loaded.iter().map(|one| &one.lab), &engines, args.live_jobs));
    if live {
        let _ = weir_linux::enter();
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
    let count = loaded.len();
    for (place, Loaded { study, lab, claims }) in loaded.into_iter().enumerate() {
        if count > 1 {
            say(&format!("weir: lab {} of {count}, {study}/{}", place + 1, lab.name()));
        }
        let folder = format!("{study}/{}", lab.name());
        let execution = Execution {
            out: out.join(&folder),
            jobs: args.jobs,
            live_jobs: args.live_jobs,
            pcap: &[],
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
        let claims = judge(&claims, &done.summary);
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
    weir_engine::atomic_write(&out, "reproduce.json", (text + "\n").as_bytes())
        .map_err(|error| Failure::failed(format!("{}: {error}", out.join("reproduce.json").display())))?;
    if args.json {
        print_json(&document)?;
    } else {
        print(&claims_table(&reproduced, terminal_width()))?;
        let full = if args.full { "" } else { "--full runs all cells and repeats of the labs.  " };
        print(&format!("\n{full}{}\n", out.join("index.html").display()))?;
    }
    if score.fails + score.not_measured > 0 { Err(Failure::quiet(1)) } else { Ok(()) }
}

/// A lab of a study, with what it claims.
struct Loaded {
    study: String,
    lab: Lab,
    claims: Vec<Claim>,
}

/// Leaves out the labs without [live] of each study that has labs with it, and says so.
fn leave_out_what_is_simulated(loaded: &mut Vec<Loaded>) {
    let chosen: BTreeSet<String> =
        loaded.iter().filter(|one| one.lab.is_for_live()).map(|one| one.study.clone()).collect();
    let stays = |one: &Loaded| one.lab.is_for_live() || !chosen.contains(&one.study);
    let out: Vec<&str> = loaded.iter().filter(|one| !stays(one)).map(|one| one.lab.name()).collect();
    if !out.is_empty() {
        say(&format!("left out, since they have no [live]: {}", out.join(", ")));
    }
    loaded.retain(stays);
}

/// Writes a document for each study, with the text of its folder; `suffix` ends the names of both.
fn write_documents(
    studies: &BTreeMap<String, PathBuf>,
    out: &Path,
    reproduced: &[Reproduced],
    suffix: &str,
) -> Result<(), Failure> {
    for (study, folder) in studies {
        let about = folder.join(format!("{ABOUT}{suffix}.md"));
        // Reading a pipe of that name would block.
        let about = about.is_file().then(|| fs::read_to_string(about).ok()).flatten();
        let labs: Vec<Reproduced> = reproduced.iter().filter(|lab| lab.study == *study).cloned().collect();
        write_document(&out.join(DOCUMENTS), &format!("{study}{suffix}"), about.as_deref(), &labs)?;
    }
    Ok(())
}
