//! `weir ap`: an aggregation point of the Coordination Protocol between two devices of this host, and what it has counted.

mod wire;

use crate::failure::Failure;
use crate::frame::status::{Counters, Part, Status, show_of};
use crate::frame::{Common, Daemon, Process, log};
use crate::key::{is_read_by_others, key};
use crate::output::print;
use clap::{Args, Subcommand};
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;
use weir_coord::Config;
use weir_coord::config::Prefix;
use wire::{AggregationPoint, ApError, Snapshot};

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
    #[command(flatten)]
    pub(crate) common: Common,
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

impl From<ApError> for Failure {
    fn from(error: ApError) -> Failure {
        Failure::bad_input(error.to_string(), error.help())
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

/// Seconds since 1970, which grow with each restart, and a seed for random draws.
fn epoch_and_seed() -> (u32, u64) {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since_1970.as_secs() as u32, since_1970.as_nanos() as u64)
}

impl Daemon for ApArgs {
    const COMMAND: &'static str = "ap";
    const KIND: &'static str = "aggregation point";

    fn common(&self) -> &Common {
        &self.common
    }

    fn work(&self, process: &Process) -> Result<(), Failure> {
        match (&self.action, &self.wire) {
            (Some(ApAction::Show { device, json }), _) => {
                show_of(Self::COMMAND, Self::KIND, device.as_deref(), *json)
            }
            (None, Some(wire)) => work(wire, process),
            (None, None) => {
                Err(Failure::bad_input("the two devices are missing", "`weir ap --help` shows an example"))
            }
        }
    }
}

fn work(args: &WireArgs, process: &Process) -> Result<(), Failure> {
    let mut config = config(args)?;
    // No other point works at this device while this one has its name.
    process.name(&args.local)?;
    let (epoch, seed) = epoch_and_seed();
    let mut point = AggregationPoint::open(&args.local, &args.path, &config, seed, epoch)?;
    let names: Vec<&str> = config.application.iter().map(|application| application.name.as_str()).collect();
    let begun = format!(
        "aggregation point between {} and {} for {}; interrupt it to end",
        args.local,
        args.path,
        names.join(", ")
    );
    let watch = point.watch();
    process.on_hang_up(move |now: ApArgs| {
        let Some(now) = now.wire else { return Ok(()) };
        let new = self::config(&now)?;
        if new != config {
            let (epoch, seed) = epoch_and_seed();
            watch.begin_anew(&new, seed, epoch)?;
            config = new;
        }
        Ok(())
    });
    let watch = point.watch();
    process.begin(move || status(watch.snapshot()))?;
    log::info(&begun);
    let ended = point.run(&process.stop());
    ended.map_err(|error| Failure::failed(format!("the aggregation point failed: {error}")))?;
    let snapshot = point.watch().snapshot();
    print(&Status { kind: ApArgs::KIND.to_owned(), up_s: snapshot.up_s, ..status(snapshot) }.text())
}

fn status(snapshot: Snapshot) -> Status {
    let Snapshot { local, path, packets, applications, .. } = snapshot;
    let parts = applications.into_iter().map(|application| Part {
        labels: vec![("id".into(), application.id.into()), ("name".into(), application.name.into())],
        values: application.values,
    });
    Status {
        place: format!("between {local} and {path}"),
        counters: Counters {
            name: "packets".into(),
            meaning: "Frames at both devices, and packets by outcome.".into(),
            values: packets,
        },
        part: "application".into(),
        parts: parts.collect(),
        labels: vec![("local".into(), local), ("path".into(), path)],
        ..Status::default()
    }
}
