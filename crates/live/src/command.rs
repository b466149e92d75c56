//! Commands inside hosts: any program as traffic. Each runs in its host's network namespace, as the user who runs weir, and in
//! a PID namespace of its own (pid_namespaces(7)): killing the first process of that namespace kills every process that the
//! command has started, detached ones too. The kernel kills it when weir dies (`PR_SET_PDEATHSIG`).

use crate::address::{address_of, port_of};
use crate::output::Output;
use crate::testbed::Testbed;
use rustix::thread::UnshareFlags;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_base::{Span, Time, not_started};
use weir_linux::clock::Clock;
use weir_plan::Run;
use weir_record::{FlowEvent, FlowEventKind, Recorder};
use weir_workload::command::{Config, Host, fill_in};

use crate::relay::Relay;

/// How long a command's companion at the other host has to get ready.
const READY: Duration = Duration::from_millis(100);
/// Interval between two looks whether a command has ended.
const LOOK_UP: Duration = Duration::from_millis(5);

/// How a command ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// The flow's name.
    pub(crate) flow: String,
    /// How it ended, in words.
    pub(crate) how: String,
    /// Why this fails the run, if it does.
    pub(crate) failure: Option<String>,
}

/// One command of a run.
pub(crate) struct Commanded<'a> {
    run: &'a Run,
    testbed: &'a Testbed,
    config: &'a Config,
    flow: usize,
    /// Folder of the output files; `None` if output is not kept.
    folder: Option<PathBuf>,
}

/// The commands of a run.
pub(crate) fn commands<'a>(run: &'a Run, testbed: &'a Testbed, folder: Option<&Path>) -> Vec<Commanded<'a>> {
    let commanded = |(flow, planned): (usize, &weir_plan::Flow)| {
        let config = run.groups[planned.group].workload.command()?;
        Some(Commanded { run, testbed, config, flow, folder: folder.map(Path::to_owned) })
    };
    run.flows.iter().enumerate().filter_map(commanded).collect()
}

impl Commanded<'_> {
    /// Runs the command until it has ended, its time is over or `over` is set. To be called on a thread of its own. A command
    /// that fails the run sets `stop`.
    pub(crate) fn drive(
        &self,
        clock: Clock,
        over: &AtomicBool,
        stop: &AtomicBool,
        mut relay: Relay,
        ended: &Mutex<Vec<Ended>>,
    ) {
        let flow = self.run.flows[self.flow].name.clone();
        let (how, failure) = match self.go(clock, over, stop, &mut relay) {
            Ok(Some((status, _))) if status.success() => ("ended well".to_string(), None),
            Ok(Some((status, last))) => {
                let printed = if last.is_empty() { last } else { format!(":\n{last}") };
                let failure = format!("the command of {flow} ended with {}{printed}", said(status));
                (said(status), (!self.config.may_fail).then_some(failure))
            }
            Ok(None) => ("ran until its time was over".into(), None),
            Err(error) => {
                let what = format!("cannot be run: {error}");
                (what.clone(), Some(format!("the command of {flow} {what}")))
            }
        };
        if failure.is_some() {
            stop.store(true, Ordering::Release);
        }
        let mut all = ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.push(Ended { flow, how, failure });
    }

    /// Runs the command, and its companion if it has one. Returns its status and the last lines of its output if it ended by
    /// itself.
    fn go(
        &self,
        clock: Clock,
        over: &AtomicBool,
        stop: &AtomicBool,
        relay: &mut Relay,
    ) -> io::Result<Option<(ExitStatus, String)>> {
        let pair = self.run.pair(self.flow);
        let (own, other) = match self.config.host {
            Host::Sender => (pair.from, pair.to),
            Host::Receiver => (pair.to, pair.from),
        };
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let peer = self.config.peer.as_ref().map(|text| {
                let accompany = || self.accompany(text, other, &done);
                std::thread::Builder::new().name("weir-command".into()).spawn_scoped(scope, accompany)
            });
            let peer = peer.transpose().map_err(not_started)?;
            if peer.is_some() {
                std::thread::sleep(READY);
            }
            let status = self.go_alone(own, clock, over, stop, relay);
            done.store(true, Ordering::Release);
            if let Some(peer) = peer {
                peer.join().unwrap_or_else(|_| Err(io::Error::other("its peer's thread panicked")))?;
            }
            status
        })
    }

    /// Runs the companion at the other host until the command is done.
    fn accompany(&self, text: &str, node: usize, done: &AtomicBool) -> io::Result<()> {
        let peer = self.start(text, node, "-peer")?;
        while !done.load(Ordering::Acquire) {
            std::thread::sleep(LOOK_UP);
        }
        peer.end().map(drop)
    }

    /// Runs the command itself.
    fn go_alone(
        &self,
        node: usize,
        clock: Clock,
        over: &AtomicBool,
        stop: &AtomicBool,
        relay: &mut Relay,
    ) -> io::Result<Option<(ExitStatus, String)>> {
        let flow = &self.run.flows[self.flow];
        let start = Time::ZERO + flow.start;
        let end = Time::ZERO + flow.stop.unwrap_or(self.run.duration).min(self.run.duration);
        let finished = || over.load(Ordering::Acquire) || stop.load(Ordering::Acquire);
        loop {
            let left = clock.until_start().max(start.since(clock.now()));
            if left.is_zero() || finished() {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left.as_nanos()).min(LOOK_UP));
        }
        if finished() {
            return Ok(None);
        }
        let mut command = self.start(&self.config.run, node, "")?;
        relay.event(&FlowEvent { at: clock.now(), flow: self.flow as u32, kind: FlowEventKind::Started });
        let status = loop {
            if let Some(status) = command.child.try_wait()? {
                let failed = !status.success() && !self.config.may_fail;
                let kind = if failed { FlowEventKind::Failed } else { FlowEventKind::Completed };
                relay.event(&FlowEvent { at: clock.now(), flow: self.flow as u32, kind });
                break Some(status);
            }
            if finished() || clock.now() >= end {
                break None;
            }
            std::thread::sleep(LOOK_UP);
        };
        let last = command.end()?;
        Ok(status.map(|status| (status, last)))
    }

    /// Starts a command at the host of a node. A thread may call this once, since it can make a PID namespace for its children
    /// only once, and must live as long as the command, which dies with the thread that started it.
    fn start(&self, text: &str, node: usize, what: &str) -> io::Result<Killed> {
        let host = self.testbed.hosts.iter().find(|host| host.node == node);
        let host = host.ok_or_else(|| io::Error::other("there is no such host"))?;
        // The thread that reads the output is started first: a thread whose children have another PID namespace can start no
        // threads.
        let output = self.output(what).map(|path| Output::into_file(&path)).transpose()?;
        host.namespace.join()?;
        // SAFETY: only the PID namespace of this thread's future children changes.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }?;
        // The shell stays the first process of the namespace, so that the command is an ordinary one.
        let script = format!("{}\nexit $?", fill_in(text, &self.values()));
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(script).envs(&self.config.environment).stdin(Stdio::null()).process_group(0);
        let (output, [out, err]) = match output {
            Some((output, ends)) => (Some(output), ends),
            None => (None, [Stdio::null(), Stdio::null()]),
        };
        shell.stdout(out).stderr(err);
        // SAFETY: prctl is async-signal-safe and changes nothing but the child's own setting.
        unsafe {
            shell.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            })
        };
        let child = shell.spawn().map_err(not_started)?;
        Ok(Killed { child, output })
    }

    fn values(&self) -> [(&'static str, String); 6] {
        let flow = &self.run.flows[self.flow];
        let (group, pair) = (&self.run.groups[flow.group], self.run.pair(self.flow));
        let end = flow.stop.unwrap_or(self.run.duration).min(self.run.duration);
        [
            ("sender", address_of(pair.from, group.ip).to_string()),
            ("receiver", address_of(pair.to, group.ip).to_string()),
            ("port", port_of(self.flow).to_string()),
            ("flow", flow.name.clone()),
            ("seed", self.run.seed.to_string()),
            (
                "duration",
                end.saturating_sub(flow.start).max(Span::from_secs(1)).as_secs_f64().floor().to_string(),
            ),
        ]
    }

    /// The file of its output; `None` if output is not kept.
    fn output(&self, what: &str) -> Option<PathBuf> {
        let name = format!("command-{}{what}.txt", self.run.flows[self.flow].name);
        Some(self.folder.as_ref()?.join(name))
    }
}

/// A command that does not outlive this value.
struct Killed {
    child: Child,
    output: Option<Output>,
}

impl Killed {
    /// Kills the command and all that it has started, and waits for the end of its output. Returns the last lines.
    fn end(mut self) -> io::Result<String> {
        self.kill();
        self.output.take().map_or(Ok(String::new()), Output::end)
    }

    fn kill(&mut self) {
        // The child is the first process of its PID namespace: the kernel kills all others with it (`zap_pid_ns_processes`)
        // before `wait` returns. If it has ended already, nothing is left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A status other than 0, in words.
fn said(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".into(),
    }
}
