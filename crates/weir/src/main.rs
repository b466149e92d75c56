//! The command line of weir. Messages for the user go to stderr, results to stdout. Exit status: 0 done, 1 a run failed, 2 bad
//! input, 130 interrupted. `cli.rs` is the file to open first.

mod analyze;
mod capacity;
mod circuit;
mod cli;
mod commands;
mod compare;
mod doctor;
mod failure;
mod figure;
mod kernel;
mod keygen;
mod link;
mod list;
mod live;
mod names;
mod note;
mod observe;
mod optimum;
mod parameters;
mod plot;
mod progress;
mod ready;
mod reference;
mod reproduce;
mod results;
mod run;
mod serve;
mod session;
mod sliq;
mod wrap;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;
use weir_daemon::{Run, frame, say};

fn main() -> ExitCode {
    keep_memory();
    let words = match frame::config::with_file(std::env::args_os().collect()) {
        Ok(words) => words,
        Err(failure) => return Failure::from(failure).tell(),
    };
    let command = Cli::parse_from(words).command;
    // What a wrapped program that was killed has left.
    if let Err(error) = weir_live::restore_forwarding() {
        say(&format!("weir: forwarding of this host's devices was not restored: {error}"));
    }
    let done = match command {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => results::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Plot(args) => plot::plot(&args),
        Command::Test(args) => ready::test(&args),
        Command::Wrap(args) => wrap::wrap(&args),
        Command::Link(args) => link::link(&args.action),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Analyze(args) => analyze::analyze(&args),
        Command::Observe(args) => observe::observe(&args),
        Command::Capacity(args) => capacity::capacity(&args),
        Command::Optimum(args) => optimum::optimum(&args),
        Command::List(args) => list::list(&args),
        Command::Describe(args) => list::describe(&args),
        Command::Reference(args) => reference::reference(&args),
        Command::New(args) => results::new(&args),
        Command::Export(args) => results::export(&args),
        Command::Note(args) => note::note(&args),
        Command::Serve(args) => serve::serve(&args, compare::write_page),
        Command::Schema => print_json(&weir_study::schema()),
        Command::Kernel(args) => kernel::kernel(&args.action),
        Command::Circuit(args) => circuit::circuit(&args.action).map_err(Failure::from),
        Command::Daemon(daemon) => daemon.run().map_err(Failure::from),
        Command::Sliq(args) => sliq::sliq(&args.action).map_err(Failure::from),
        Command::Status { json } => frame::status::show(json).map_err(Failure::from),
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

/// Prints text on stdout.
fn print(text: &str) -> Result<(), Failure> {
    Ok(weir_daemon::print(text)?)
}

/// Prints one JSON document on stdout.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    Ok(weir_daemon::print_json(value)?)
}
