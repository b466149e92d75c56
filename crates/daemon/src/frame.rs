//! The frame of all that runs for long. A daemon is its arguments, which say what it is ([`Daemon`]), and its work. The frame gives it
//! flags from a file, a name that only one process can have, signals, another user, its status for `weir status`, a page of it,
//! metrics for Prometheus, and messages by their weight.
//!
//! A daemon opens what it needs, calls [`Process::begin`], and works until [`Process::stops`]. What it changes on the host goes with the
//! process, or stands in a journal (`weir_shaper::Journals`) from which the next start puts it back.

pub mod config;
mod http;
pub mod log;
mod metrics;
pub mod status;

use crate::failure::Failure;
use clap::Args;
use status::Status;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use weir_linux::privileges::{CapabilitySet, User, drop_to};
use weir_linux::signals::{Signal, Signals};

/// Arguments that every daemon has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of all that runs for long")]
pub struct Common {
    /// Read flags from this TOML file: its keys are their names, as `listen = "127.0.0.1:7765"`; flags given here come first. `serve`,
    /// `receive` and `ap` read it again on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run as this user from the moment that sockets and devices are open
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Serve a status page, and counters for Prometheus at /metrics, at this address of the loopback device, for example 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// The least weight of messages on standard error: error, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info", hide_possible_values = true)]
    log: log::Level,
}

impl Common {
    /// Whether it runs as another user once its sockets are open.
    pub(crate) fn changes_user(&self) -> bool {
        self.user.is_some()
    }
}

/// Something that runs for long: its arguments.
pub trait Daemon: Args {
    /// The words of its command, `sliq serve` for example.
    const COMMAND: &'static str;
    /// What it is, `aggregation point` for example.
    const KIND: &'static str;

    /// The arguments that every daemon has.
    fn common(&self) -> &Common;

    /// Opens what it needs, begins, and works until it is stopped or done.
    ///
    /// # Errors
    /// Why it failed.
    fn work(&self, process: &Process) -> Result<(), Failure>;
}

/// Runs a daemon.
///
/// # Errors
/// Why it failed.
pub fn run<D: Daemon>(daemon: &D) -> Result<(), Failure> {
    let Common { user, metrics, log, .. } = daemon.common();
    log::set(*log);
    metrics.map_or(Ok(()), http::check)?;
    let user = user.as_deref().map(|name| {
        let named = User::named(name);
        named.map_err(|error| {
            let help = "--user names a user of /etc/passwd";
            Failure::bad_input(format!("cannot run as {name}: {error}"), help)
        })
    });
    let process = Process {
        command: D::COMMAND,
        kind: D::KIND,
        began: Instant::now(),
        user: user.transpose()?,
        metrics: *metrics,
        open: Mutex::default(),
        ends: Arc::default(),
    };
    let signals = Signals::block().map_err(|error| not_started(&error))?;
    let ends = process.ends.clone();
    spawn("weir-signals", move || ends.obey(&signals))?;
    daemon.work(&process)
}

fn not_started(error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot wait for signals: {error}"))
}

/// Starts a thread that lives as long as the process.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))
}

type Hook = Box<dyn FnMut() + Send>;

/// What signals bring about.
#[derive(Default)]
struct Ends {
    stop: Arc<AtomicBool>,
    /// Whether the daemon ends by itself once `stop` is set.
    looks: AtomicBool,
    on_stop: Mutex<Option<Hook>>,
    on_hang_up: Mutex<Option<Hook>>,
}

fn call(hook: &Mutex<Option<Hook>>) -> bool {
    hook.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(|hook| hook()).is_some()
}

impl Ends {
    /// Obeys signals until the process ends.
    fn obey(&self, signals: &Signals) {
        while let Ok(signal) = signals.wait() {
            if signal == Signal::HangUp && call(&self.on_hang_up) {
                continue;
            }
            // Before it has begun there is nothing to end, and who asks twice does not want to wait.
            if !self.looks.load(Ordering::Acquire) || self.stop.swap(true, Ordering::AcqRel) {
                std::process::exit(INTERRUPTED);
            }
            call(&self.on_stop);
        }
    }
}

/// The exit status of a command that was interrupted.
const INTERRUPTED: i32 = 130;

/// What a daemon has open for others.
#[derive(Default)]
struct Open {
    status: Option<status::Listener>,
    metrics: Option<TcpListener>,
}

/// The process that a daemon is: its name, its signals, its user, and what others may ask it.
pub struct Process {
    command: &'static str,
    kind: &'static str,
    began: Instant,
    user: Option<User>,
    metrics: Option<SocketAddr>,
    open: Mutex<Open>,
    ends: Arc<Ends>,
}

impl Process {
    /// Takes the name by which this instance is known, a device or an address for example, and binds the address of the metrics.
    ///
    /// # Errors
    /// Another process of this command has the name, or the address is in use.
    pub fn name(&self, name: &str) -> Result<(), Failure> {
        let status = Some(status::Listener::open(self.command, self.kind, name)?);
        let metrics = self.metrics.map(http::listen).transpose()?;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Open { status, metrics };
        Ok(())
    }

    /// Sets what SIGHUP does: `apply` gets the arguments as the file says them now. Without it SIGHUP ends the daemon.
    pub fn on_hang_up<D: Daemon>(&self, mut apply: impl FnMut(D) -> Result<(), Failure> + Send + 'static) {
        let hook = move || match config::again::<D>().and_then(&mut apply) {
            Ok(()) => log::info("the configuration was read again"),
            Err(failure) => log::error(&format!("weir: nothing was changed: {}", failure.message)),
        };
        *self.ends.on_hang_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// Sets what is done when it is to stop, besides [`Process::stops`].
    pub fn on_stop(&self, hook: impl FnMut() + Send + 'static) {
        *self.ends.on_stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(hook));
    }

    /// Begins the work: all sockets and devices are open. From here on it runs as the other user, answers what its status is, and
    /// ends by itself when it is to stop.
    ///
    /// # Errors
    /// It cannot become the other user, or a thread cannot be started.
    pub fn begin(&self, status: impl Fn() -> Status + Send + Sync + 'static) -> Result<(), Failure> {
        self.begin_with(CapabilitySet::empty(), status)
    }

    /// The same; as the other user the calling thread keeps these rights of root.
    ///
    /// # Errors
    /// Those of [`Process::begin`].
    pub fn begin_with(
        &self,
        rights: CapabilitySet,
        status: impl Fn() -> Status + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        if let Some(user) = self.user {
            drop_to(user, rights).map_err(|error| {
                Failure::bad_input(
                    format!("cannot become another user: {error}"),
                    "run it as root, or without --user",
                )
            })?;
        }
        let (kind, began) = (self.kind, self.began);
        let status: http::Source = Arc::new(move || Status {
            kind: kind.to_owned(),
            up_s: began.elapsed().as_secs_f64(),
            ..status()
        });
        let Open { status: listener, metrics } =
            std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(listener) = listener {
            let status = status.clone();
            spawn("weir-status", move || listener.serve(&*status))?;
        }
        if let Some(metrics) = metrics {
            let prefix = format!("weir_{}", self.command.replace(' ', "_"));
            spawn("weir-http", move || http::serve(&metrics, &prefix, &status))?;
        }
        self.ends.looks.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether it shows a page of its status.
    pub fn has_page(&self) -> bool {
        self.metrics.is_some()
    }

    /// Whether it is to stop.
    pub fn stops(&self) -> bool {
        self.ends.stop.load(Ordering::Acquire)
    }

    /// The flag that is set when it is to stop.
    pub fn stop(&self) -> Arc<AtomicBool> {
        self.ends.stop.clone()
    }
}
