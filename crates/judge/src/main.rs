//! `weir-judge WEIR --seed N --cells K`: judges K cells of a seed and writes the document.
#![forbid(unsafe_code)]

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use weir_judge::causes::Causes;
use weir_judge::document::{document, unexplained};
use weir_judge::draw::draw;
use weir_judge::id::Id;
use weir_judge::session::{self, Asked, Session};
use weir_judge::weir::{Trouble, Weir};

/// Draws labs at random, runs each on both engines, and judges whether the simulator comes out where Linux does.
#[derive(Debug, Parser)]
#[command(
    name = "weir-judge",
    max_term_width = 100,
    after_help = "\
After an interruption the same command goes on. Live runs are kept for every build of weir and every machine; another build simulates anew.
Exit status: 0 no cell differs without a cause; 1 some do; 2 bad input, or a file or weir cannot be used."
)]
struct Arguments {
    /// The program weir
    weir: PathBuf,
    /// Seed of the session: it decides its cells
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many cells
    #[arg(long, default_value_t = 40)]
    cells: u64,
    /// Only these cells, by number
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    only: Vec<u64>,
    /// Keep verdicts that another build of weir gave
    #[arg(long)]
    keep: bool,
    /// Judge all cells again: simulate them with this build and use the live runs that are there, without new ones
    #[arg(long, conflicts_with = "keep")]
    resimulate: bool,
    /// Try cells again whose live runs were invalid or failed
    #[arg(long)]
    retry_invalid: bool,
    /// Do not shrink cells that differ
    #[arg(long)]
    no_shrink: bool,
    /// Wait up to this many seconds before a live run while others use the processors; 0 waits for nothing, not even for other live runs
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// Print this cell's lab, and run nothing
    #[arg(long, value_name = "NUMBER")]
    show: Option<u64>,
    /// Where sessions are kept
    #[arg(long, value_name = "DIR", default_value = "results/judge")]
    results: PathBuf,
    /// Where the valid live runs are kept
    #[arg(long, value_name = "DIR", default_value = "docs/judge")]
    live: PathBuf,
    /// The document to write, of all sessions
    #[arg(long, value_name = "FILE", default_value = "docs/judge.md")]
    document: PathBuf,
    /// Causes of differences, which a person found
    #[arg(long, value_name = "FILE", default_value = "docs/judge-causes.toml")]
    causes: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match judge(&arguments) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("weir-judge: {message}");
            ExitCode::from(2)
        }
    }
}

fn judge(arguments: &Arguments) -> Result<ExitCode, String> {
    let seed = arguments.seed;
    if let Some(number) = arguments.show {
        print!("{}", draw(Id { seed, number }).toml());
        return Ok(ExitCode::SUCCESS);
    }
    let Arguments { keep, resimulate, retry_invalid, no_shrink, .. } = *arguments;
    let chosen = |number: &u64| arguments.only.is_empty() || arguments.only.contains(number);
    let cells = (1..=arguments.cells).filter(chosen).collect();
    let asked = Asked { cells, keep, resimulate, retry_invalid, no_shrink };
    let causes = Causes::read(&arguments.causes)?;
    let weir = Weir::open(&arguments.weir, Duration::from_secs(arguments.patience))
        .map_err(|error| format!("{}: {error}", arguments.weir.display()))?;
    let version = version(&arguments.weir)?;
    let said = |trouble: Trouble| match trouble {
        Trouble::Failed(text) | Trouble::Invalid(text) | Trouble::Io(text) => text,
    };
    let write = || {
        let states = session::all(&arguments.results)?;
        let text = document(&states, &causes, &version);
        std::fs::write(&arguments.document, text).map_err(Trouble::io(&arguments.document))
    };
    let mut session = Session::open(&arguments.results, &arguments.live, seed, weir).map_err(said)?;
    session.run(&asked, |_| write()).and_then(|()| write()).map_err(said)?;
    let open = unexplained(&session::all(&arguments.results).map_err(said)?, &causes);
    let names: Vec<String> = open.iter().map(Id::to_string).collect();
    let document = arguments.document.display();
    if names.is_empty() {
        eprintln!("no cell differs without a cause; {document}");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("without a known cause: {}; {document}", names.join(", "));
    Ok(ExitCode::FAILURE)
}

/// What weir says of its version.
fn version(weir: &Path) -> Result<String, String> {
    let failed = |what: String| format!("{} --version: {what}", weir.display());
    let output = Command::new(weir).arg("--version").output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(failed(output.status.to_string())),
    }
}
