//! `weir ap`: an aggregation point of the Coordination Protocol between two devices of this host, and what it has counted.

mod metrics;
mod show;

use crate::failure::Failure;
use crate::output::{print, say};
use clap::{Args, Subcommand};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use weir_coord::Config;
use weir_coord::config::Prefix;
use weir_coord::seal::Key;
use weir_live::ap::AggregationPoint;

/// The arguments of `weir ap`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Example, at the edge of a site whose endpoints are 10.1.0.0/16, behind eth1:
  cat apps.toml
    [[application]]
    id = 1
    name = \"immersion\"
    local = [\"10.1.0.0/16\"]
    local_ports = \"9000-9100\"
    remote = [\"10.2.0.0/16\"]
    remote_ports = \"9000-9100\"
  weir ap --local eth1 --path eth2 --apps apps.toml --peer 10.2.0.0/16 --metrics 127.0.0.1:9100
  weir ap show

It runs until it is interrupted. Meanwhile the two devices are the ends of a wire: frames that one device receives leave by the other \
unchanged, except packets of the applications. The devices have no addresses, and this host receives none of their packets itself. All \
changes to the host are undone when it ends, also when it is killed. It is not fail-open: while it does not run, no packets pass.
Exit status: 0 interrupted; 1 a device was removed; 2 bad input."
)]
pub struct ApArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ApAction>,
    #[command(flatten)]
    pub(crate) wire: Option<WireArgs>,
}

#[derive(Debug, Args)]
pub(crate) struct WireArgs {
    /// The device towards this site's endpoints
    #[arg(long, value_name = "DEV")]
    pub(crate) local: String,
    /// The device towards the other site
    #[arg(long, value_name = "DEV")]
    pub(crate) path: String,
    /// The file that says which applications may use it; packets of all others pass untouched
    #[arg(long, value_name = "FILE")]
    pub(crate) apps: PathBuf,
    /// Addresses of the other site, behind the other aggregation point: a prefix or one address. Every application's `remote` lies
    /// within them
    #[arg(long, value_name = "ADDR", required = true, value_delimiter = ',')]
    pub(crate) peer: Vec<Prefix>,
    /// A file with the key shared with the other aggregation point, 32 hexadecimal digits; other users must not be able to read it.
    /// With a key, every header is of version 2 and sealed
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Serve counters for Prometheus at this address of the loopback device, for example 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApAction {
    /// Show the counters and measurements of this host's aggregation points
    #[command(after_help = "Example:\n  weir ap show eth1 --json")]
    Show {
        /// The device towards the endpoints of one of them [default: all]
        device: Option<String>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Runs `weir ap`.
///
/// # Errors
/// Why it failed.
pub fn ap(args: &ApArgs) -> Result<(), Failure> {
    match (&args.action, &args.wire) {
        (Some(ApAction::Show { device, json }), _) => show::show(device.as_deref(), *json),
        (None, Some(wire)) => work(wire),
        (None, None) => {
            Err(Failure::bad_input("the two devices are missing", "`weir ap --help` shows an example"))
        }
    }
}

/// The configuration from the file and the command line.
fn config(args: &WireArgs) -> Result<Config, Failure> {
    let path = &args.apps;
    let wrong = |message: String, help: Option<String>| {
        let help = help.unwrap_or_else(|| "`weir ap --help` shows an example".to_owned());
        Failure::bad_input(format!("{}: {message}", path.display()), help)
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string(), None))?;
    let mut config = Config::from_toml(&text).map_err(|mut error| {
        let help = error.help.take();
        wrong(error.to_string(), help)
    })?;
    if config.application.is_empty() {
        return Err(wrong("it names no application, so every packet would pass unchanged".to_owned(), None));
    }
    for application in &config.application {
        let within = |remote: &&Prefix| !args.peer.iter().any(|peer| peer.covers(remote));
        if let Some(remote) = application.remote.iter().find(within) {
            let message = format!(
                "application `{}` has {remote} in `remote`, which --peer does not name",
                application.name
            );
            return Err(wrong(
                message,
                Some("all applications lead to one other site: name its addresses with --peer".to_owned()),
            ));
        }
    }
    let keyed =
        config.peer_key.is_some() || config.application.iter().any(|application| application.key.is_some());
    if keyed && is_read_by_others(path).unwrap_or(false) {
        return Err(wrong(
            "it contains keys, and other users can read it".to_owned(),
            Some(format!("chmod 600 {}", path.display())),
        ));
    }
    if let Some(file) = &args.key {
        if config.peer_key.is_some() {
            return Err(wrong(
                "it has a `peer_key`, and --key gives a second one".to_owned(),
                Some("give the key once".to_owned()),
            ));
        }
        config.peer_key = Some(key(file)?);
    }
    Ok(config)
}

fn is_read_by_others(path: &Path) -> std::io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// The key in a file.
pub(crate) fn key(path: &Path) -> Result<Key, Failure> {
    let wrong =
        |message: String, help: &str| Failure::bad_input(format!("{}: {message}", path.display()), help);
    let help =
        "write 32 hexadecimal digits into a file of mode 600: `(umask 077; openssl rand -hex 16 > peer.key)`";
    let others = is_read_by_others(path).map_err(|error| wrong(error.to_string(), help))?;
    if others {
        return Err(wrong("others can read the key".to_owned(), &format!("chmod 600 {}", path.display())));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string(), help))?;
    text.parse().map_err(|message| wrong(message, help))
}

fn work(args: &WireArgs) -> Result<(), Failure> {
    let config = config(args)?;
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Only one process can hold the name, so no other point works at this device.
    let shown = show::Listener::open(&args.local)?;
    let metrics = args.metrics.map(metrics::listen).transpose()?;
    let (seed, epoch) = (since_1970.as_nanos() as u64, since_1970.as_secs() as u32);
    let mut point = AggregationPoint::open(&args.local, &args.path, &config, seed, epoch)?;
    let stop = Arc::new(AtomicBool::new(false));
    let signalled = Arc::clone(&stop);
    ctrlc::set_handler(move || signalled.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::failed(format!("cannot wait for an interrupt: {error}")))?;
    shown.serve(point.watch())?;
    if let Some(metrics) = metrics {
        metrics::serve(metrics, point.watch())?;
    }
    let names: Vec<&str> = config.application.iter().map(|application| application.name.as_str()).collect();
    say(&format!(
        "aggregation point between {} and {} for {}; interrupt it to end",
        args.local,
        args.path,
        names.join(", ")
    ));
    point.run(&stop).map_err(|error| Failure::failed(format!("the aggregation point failed: {error}")))?;
    print(&show::told(&point.watch().snapshot()))
}
