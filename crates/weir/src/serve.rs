//! `weir serve`: all results below a folder as pages in the browser of this machine.

use crate::failure::Failure;
use crate::print;
use clap::Args;
use std::path::{Path, PathBuf};
use weir_serve::Server;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir serve                              all results below results/, at an address that is printed
  weir serve /data/labs --port 8080
  weir serve --notes                      the page may also pin results, and write and remove notes

The address holds a random token, and opens on this machine only. The list shows for each result its lab, engines, date, what varied, \
verdicts, invalid runs, notes and size. It follows labs that run, compares two results as `weir compare` does, and opens reports as they \
are. A result that is damaged, of another version of weir, or being written is a row that says so. Without --notes nothing is written \
into the folder. Ctrl-C ends the server.")]
pub(crate) struct ServeArgs {
    /// The folder with the results, at any depth
    #[arg(default_value = "results")]
    pub folder: PathBuf,
    /// The port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Permit the page to write pins and notes
    #[arg(long)]
    pub notes: bool,
}

/// Serves until Ctrl-C; `compare` writes the page of a comparison into a folder.
pub(crate) fn serve(
    args: &ServeArgs,
    compare: fn(&[PathBuf], &Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let folder = args.folder.display();
    if !args.folder.is_dir() {
        return Err(Failure::bad_input(
            format!("{folder} is not a folder"),
            "name a folder with results; `weir run` writes them below results/",
        ));
    }
    let compare =
        move |results: &[PathBuf], out: &Path| compare(results, out).map_err(|failure| failure.to_string());
    let server = Server::new(&args.folder, args.port, args.notes, Box::new(compare)).map_err(|error| {
        Failure::bad_input(
            format!("cannot serve {folder} at port {}: {error}", args.port),
            "give another --port, or none, and a folder that you can read",
        )
    })?;
    let stop = server.stopper();
    ctrlc::set_handler(stop).map_err(|error| Failure::failed(format!("cannot wait for Ctrl-C: {error}")))?;
    print(&format!("{}\n", server.address()))?;
    server.run().map_err(|error| Failure::failed(format!("cannot serve {folder} any longer: {error}")))
}
