//! The command line of weir. Messages for the user go to stderr, results to stdout. Exit status: 0 done, 1 a run failed, 2 bad
//! input, 130 interrupted.

mod ap;
mod capacity;
mod circuit;
mod cli;
mod commands;
mod compare;
mod cp;
mod doctor;
mod failure;
mod figure;
mod identity;
mod kernel;
mod list;
mod plot;
mod progress;
mod reproduce;
mod results;
mod run;
mod session;
mod sliq;
mod transfer;
mod watch;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use failure::Failure;
use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;
use weir_base::terminal::{printable, printable_line};

fn main() -> ExitCode {
    keep_memory();
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => results::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Capacity(args) => capacity::capacity(&args),
        Command::List(args) => list::list(&args),
        Command::Describe(args) => list::describe(&args),
        Command::New(args) => results::new(&args),
        Command::Export(args) => results::export(&args),
        Command::Schema => print_json(&weir_study::schema()),
        Command::Kernel(args) => kernel::kernel(&args.action),
        Command::Circuit(args) => circuit::circuit(&args.action),
        Command::Ap(args) => ap::ap(&args),
        Command::Cp(args) => cp::cp(&args.action),
        Command::Sliq(args) => sliq::sliq(&args.action),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "weir", &mut std::io::stdout());
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(),
    }
}

/// Makes the allocator keep freed memory: each run of a large tree needs the same memory again, and the kernel would have to
/// clear it anew for each (a quarter of a megabyte a run).
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// The largest threshold for mappings that glibc takes on 64 bits; larger blocks are mapped and given back.
        const MAPPED: libc::c_int = 32 << 20;
        /// More than any tree leaves free at the end of its heap.
        const TRIMMED: libc::c_int = 1 << 30;
        /// How much more than needed a heap grows at a time. The heaps of all threads but the first would otherwise grow by a
        /// few pages, with a system call for each growth: eight for a run of a large tree.
        const GROWN: libc::c_int = 16 << 20;
        // SAFETY: mallopt(3) takes two integers and touches nothing but the allocator's own settings; a value that it does
        // not take leaves them as they were. No other thread is running yet.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
            libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED);
            libc::mallopt(libc::M_TOP_PAD, GROWN);
        }
    }
}

/// Prints text on stdout. Its control characters are escaped: much of it may come from labs, results and commands.
fn print(text: &str) -> Result<(), Failure> {
    write(&printable(text))
}

/// Prints a message for the user on stderr, escaped in the same way.
fn say(text: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

/// Writes to stdout; a reader that has gone away ends the program quietly.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(|error| Failure::failed(format!("cannot write: {error}"))),
    }
}

/// Prints one JSON document on stdout.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
    // In JSON control characters stand in strings alone, most of them escaped already.
    let harmful =
        |c: char| c != '\n' && !matches!(printable_line(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_));
    let safe = |c: char| if harmful(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    write(&(text.chars().map(safe).collect::<String>() + "\n"))
}
