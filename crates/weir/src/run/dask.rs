//! `weir run --dask`: the Python package brings the runs to the workers of a Dask cluster and writes the result folder.

use crate::cli::{EngineName, RunArgs, VERSION};
use crate::failure::Failure;
use crate::run::catch_interrupts;
use serde::Deserialize;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_record::Summary;

/// The Python that is started: the one of an active virtual environment.
const PYTHON: &str = "python3";
/// Starts the package's command. An older package does not have it.
const START: &str = "\
import sys
try:
    from weir import _command
except ImportError as missing:
    print(f'weir: python3 cannot import the package weir of this version: {missing}', file=sys.stderr)
    print('  help: make python builds it; pip install target/python/wheels/weir-*.whl distributed', file=sys.stderr)
    sys.exit(2)
sys.exit(_command.main(sys.argv[1:]))
";

/// What a sweep has done.
#[derive(Debug, Deserialize)]
pub(crate) struct Swept {
    /// The result folder.
    pub path: PathBuf,
    /// Number of runs that were done now.
    pub done: usize,
    /// Number of runs that the folder held already.
    pub kept: usize,
}

/// Runs a lab on the cluster of this scheduler.
///
/// # Errors
/// Python, a package or the cluster is not as it must be, a run failed, or it was interrupted. The message was printed then.
pub(crate) fn sweep(args: &RunArgs, scheduler: &str) -> Result<Swept, Failure> {
    if args.on.contains(&EngineName::Live) {
        return Err(Failure::bad_input(
            "a cluster runs labs on the simulator only",
            "leave --dask out for --on live",
        ));
    }
    let mut command = Command::new(PYTHON);
    command.args(["-c", START, VERSION, scheduler]).arg(&args.lab);
    for setting in &args.set {
        command.arg(format!("--set={setting}"));
    }
    if let Some(out) = &args.out {
        command.arg("--out").arg(out);
    }
    let options = [(args.carry, "--carry"), (args.rerun, "--rerun"), (args.no_report, "--no-report")];
    command.args(options.iter().filter(|(given, _)| *given).map(|(_, option)| option));
    // Ctrl-C reaches both; Python ends the sweep, and says so.
    catch_interrupts()?;
    let output = command.stderr(Stdio::inherit()).output().map_err(not_started)?;
    match output.status.code() {
        Some(0) => serde_json::from_slice(&output.stdout).map_err(|error| {
            Failure::failed(format!("{PYTHON} did not say what the sweep has done: {error}"))
        }),
        Some(status) => Err(Failure::quiet(u8::try_from(status).unwrap_or(1))),
        None => Err(Failure::failed(format!("{PYTHON} was ended by a signal"))),
    }
}

fn not_started(error: io::Error) -> Failure {
    let what = match error.kind() {
        ErrorKind::NotFound => format!("--dask needs {PYTHON}, which is not there"),
        _ => format!("{PYTHON} cannot be started: {}", weir_base::not_started(error)),
    };
    Failure::bad_input(what, "install Python 3.10 or newer, with the packages weir and distributed")
}

/// The metrics of all runs, from `summary.json`.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn summary(folder: &Path) -> Result<Summary, Failure> {
    let path = folder.join("summary.json");
    let read = fs::read(&path).and_then(|text| serde_json::from_slice(&text).map_err(io::Error::other));
    read.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}
