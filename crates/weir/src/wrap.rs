//! `weir wrap`: a program behind a network.

mod shown;

use crate::cli::{EngineName, WrapArgs};
use crate::commands;
use crate::failure::Failure;
use crate::live::{self, Show};
use crate::run::{execute, refuse_failed};
use crate::{print, say};
use serde_json::Value;
use shown::Shown;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use weir_engine::{Engine, Outcome};
use weir_live::{
    Beyond, Keeper, Live, Program, Replay, Tally, Wrapped, check_internet, check_prefixes, far_end,
    resolver_note,
};
use weir_plan::{Behind, Lab, Run, Wrapping};
use weir_record::{Recorder, Records};
use weir_session::Execution;

/// Runs the command, and exits with its status.
pub(crate) fn wrap(args: &WrapArgs) -> Result<(), Failure> {
    let words = match &args.command[..] {
        [] => vec![shell()],
        words => words.to_vec(),
    };
    let title = typed(&words);
    let Wrapping { lab, prefixes } = lab(args, &title, &[])?;
    if args.print {
        return print(lab.source());
    }
    let run = lab.runs().remove(0);
    if args.internet {
        check_internet()?;
    }
    // An ordinary user's process moves into a user namespace; it must still have a single thread. The check tells whether this worked.
    let _ = weir_linux::enter();
    Live.check(&run)?;
    let forward: Vec<u16> = args.forward.iter().map(|port| port.get()).collect();
    let beyond = Beyond { forward: &forward, internet: args.internet, prefixes: &prefixes };
    check_prefixes(&run, beyond)?;
    let show = args.live.then(|| Show::on_terminal(&shown::names(&run))).transpose()?;
    let program = Program {
        words,
        serve: args.serve.clone(),
        forward: forward.clone(),
        far_end: far_end(&run),
        restoring: show.as_ref().map(|show| live::restoring(show.height())),
    };
    let (keeper, signals) = Keeper::start(program).map_err(|error| cannot("be started", &error))?;
    let keeper = std::sync::Arc::new(keeper);
    let passing = keeper.clone();
    std::thread::Builder::new()
        .name("weir-signals".into())
        .spawn(move || passing.pass_on(&signals))
        .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    greet(args, &run);
    let (mut tally, mut records) = (Tally::new(&run), Records::default());
    let recorder: &mut dyn Recorder = if args.report.is_some() { &mut records } else { &mut tally };
    let wrapped = match show {
        Some(show) => weir_live::wrap(&run, &keeper, &title, beyond, &mut Shown::new(&run, show, recorder)),
        None => weir_live::wrap(&run, &keeper, &title, beyond, recorder),
    };
    let Wrapped { status, outcome } = wrapped?;
    let status = status.map_err(|error| not_run(&args.command, &error))?;
    if !args.quiet {
        say(&format!("weir: {}", lateness(&outcome)));
    }
    if let Some(folder) = &args.report {
        report(args, &title, folder, Replay { records, outcome })?;
    }
    // As in shells: 128 plus the signal that ended the command.
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    if code == 0 { Ok(()) } else { Err(Failure::quiet(u8::try_from(code).unwrap_or(1))) }
}

/// The user's shell.
fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

/// A command in one line.
fn typed(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The lab of the command's network, with further settings.
fn lab(args: &WrapArgs, title: &str, settings: &[String]) -> Result<Wrapping, Failure> {
    let behind = match &args.lab {
        Some(path) => Behind::Lab(path),
        None => Behind::Links(&args.link),
    };
    let settings = [&args.set[..], settings].concat();
    // A brace in a lab's command begins a placeholder, which the command as it was typed does not have.
    let program = title.replace(['{', '}', '\0'], " ");
    Ok(Lab::wrapped(behind, &program, &settings)?)
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::failed(format!("the command cannot {what}: {error}"))
}

/// The failure of a command that cannot be run, with the status that shells give it.
fn not_run(command: &[OsString], error: &std::io::Error) -> Failure {
    let name = command
        .first()
        .map_or_else(|| shell().to_string_lossy().into_owned(), |word| word.to_string_lossy().into_owned());
    say(&format!("weir: cannot run {name}: {error}"));
    Failure::quiet(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

/// Tells who has asked for a shell where the far end is, and who has asked for the Internet if names are not resolved.
fn greet(args: &WrapArgs, run: &Run) {
    if args.quiet {
        return;
    }
    if let Some(note) = args.internet.then(resolver_note).flatten() {
        say(&format!("weir: {note}"));
    }
    if !args.command.is_empty() {
        return;
    }
    let addresses: Vec<String> = far_end(run).iter().map(ToString::to_string).collect();
    say(&format!(
        "weir: a shell behind the network; the far end is {}; `exit` ends it",
        addresses.join(" and ")
    ));
}

/// How late packets left the network, in a sentence.
fn lateness(outcome: &Outcome) -> String {
    let late = &outcome.environment["lateness_us"];
    let us = |key: &str| late[key].as_f64().unwrap_or(0.0);
    match late["count"].as_u64() {
        None | Some(0) => "no packet passed the network".into(),
        Some(count) => {
            let (p50, p99, max) = (us("p50"), us("p99"), us("max"));
            let packets = if count == 1 { "1 packet".into() } else { format!("{count} packets") };
            let trouble: String = outcome.invalid.iter().map(|why| format!("; {why}")).collect();
            format!(
                "{packets} left {p50:.0} us late at the median, 99 % within {p99:.0} us, all within {max:.0} us{trouble}"
            )
        }
    }
}

/// The shortest run that has a report.
const SHORTEST: f64 = 0.2;

/// Writes a result folder.
fn report(args: &WrapArgs, title: &str, folder: &Path, replay: Replay) -> Result<(), Failure> {
    let lasted = replay.outcome.environment.get("lasted_s").and_then(Value::as_f64).unwrap_or(0.0);
    let duration = format!("run.duration=\"{:.3} s\"", lasted.max(SHORTEST));
    let Wrapping { lab, .. } = lab(args, title, &[duration])?;
    let execution = Execution {
        out: folder.to_owned(),
        jobs: None,
        live_jobs: NonZeroUsize::MIN,
        pcap: &[],
        rerun: folder.join("lab.toml").exists(),
        only: &[],
        retries: 0,
        report: true,
    };
    // The command has run already, and is not run again.
    let leave = commands::leave(std::iter::once(&lab), &[EngineName::Live], true)?;
    let engines: Vec<Box<dyn Engine>> = vec![Box::new(replay)];
    let done = execute(&lab, &engines, &execution, &leave)?;
    if !args.quiet {
        say(&format!("weir: {}", done.path().join("index.html").display()));
    }
    refuse_failed(&done)
}
