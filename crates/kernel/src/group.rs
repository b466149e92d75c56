//! One command under one control: it runs in a control group of its own, in which a program sets the control of every connection
//! that is opened or accepted (cgroups(7), sock_ops). The network, other programs and their settings stay as they are.

use crate::object::load_object;
use crate::{Control, Problem, needs_marks};
use libbpf_rs::Link;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Length of a control's name in the kernel (`TCP_CA_NAME_MAX`), and of `choice` in `bpf/choose.c`.
const NAME: usize = 16;
const CHOICE: usize = NAME + 4;

/// What our groups are called; the number of the maker's PID namespace and its own there follow.
const PREFIX: &str = "weir-use-";
/// The number of the PID namespace from which all processes are seen (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
const OUTERMOST: u64 = 0xeffffffc;

/// A control group in which connections get a control.
#[derive(Debug)]
pub struct Group {
    /// The list of its processes, open for writing.
    processes: OwnedFd,
    /// Removes the group when its input ends.
    tidier: Child,
    _link: Link,
}

impl Group {
    /// Makes one below the group of this process.
    ///
    /// # Errors
    /// There is no cgroup2 file system, or the kernel refuses the program.
    pub fn new(control: &'static Control) -> Result<Group, Problem> {
        let unknown = || Problem::failed("cannot find the control group of this process");
        let (own, space) = (own_group().map_err(unknown())?, pid_namespace("self").map_err(unknown())?);
        sweep(&own, space);
        let folder = own.join(format!("{PREFIX}{space}-{}", std::process::id()));
        let failed = || Problem::failed(format!("cannot make the control group {}", folder.display()));
        // One of our own name is of a process that is gone.
        let _ = fs::remove_dir(&folder);
        fs::create_dir(&folder).map_err(failed())?;
        let tidier = tidy_up_later(&folder).map_err(failed())?;
        let processes = File::options().write(true).open(folder.join("cgroup.procs")).map_err(failed())?;
        let object = load_object("choose", |_, section| write_choice(control, section))?;
        let program = object.progs_mut().next();
        let group = File::open(&folder).map_err(failed())?;
        let link = program.map(|program| program.attach_cgroup(group.as_raw_fd()));
        match link {
            Some(Ok(link)) => Ok(Group { processes: processes.into(), tidier, _link: link }),
            Some(Err(error)) => Err(failed()(io::Error::other(error))),
            None => Err(failed()(io::Error::other("its object holds no program"))),
        }
    }

    /// Runs a command inside, to its end. It is told to end when this process dies.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn run(&self, mut command: Command) -> Result<ExitStatus, Problem> {
        let what = format!("cannot run {}", command.get_program().to_string_lossy());
        let processes = self.processes.as_raw_fd();
        let enter = move || {
            // SAFETY: the descriptor is open: `self` outlives the call of `status`, and exec closes it only later.
            let processes = unsafe { rustix::fd::BorrowedFd::borrow_raw(processes) };
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
            rustix::io::write(processes.as_fd(), b"0")?;
            Ok(())
        };
        // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
        unsafe { command.pre_exec(enter) };
        command.status().map_err(Problem::failed(what))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.tidier.stdin.take());
        let _ = self.tidier.wait();
    }
}

/// Starts what removes the group when this process is gone, even if it was killed.
fn tidy_up_later(folder: &Path) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.args(["-c", include_str!("tidy.sh"), "weir-tidy"]).arg(folder);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()
}

/// The number of a process's PID namespace (pid_namespaces(7)).
fn pid_namespace(process: &str) -> io::Result<u64> {
    Ok(fs::metadata(Path::new("/proc").join(process).join("ns/pid"))?.ino())
}

/// Removes groups whose makers are gone. What tidies up for one goes with it where its whole PID namespace is killed, as a container is.
/// Only who sees all processes can tell.
fn sweep(own: &Path, space: u64) {
    if space != OUTERMOST {
        return;
    }
    let names =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let makers: Vec<(u64, u32)> = names(own)
        .filter_map(|name| {
            let (space, process) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
            Some((space.parse().ok()?, process.parse().ok()?))
        })
        .collect();
    if makers.is_empty() {
        return;
    }
    let spaces: Vec<u64> =
        names(Path::new("/proc")).filter_map(|name| pid_namespace(name.to_str()?).ok()).collect();
    for (space, process) in makers {
        let lives = spaces.contains(&space)
            && (space != OUTERMOST || Path::new(&format!("/proc/{process}")).exists());
        if !lives {
            let _ = fs::remove_dir(own.join(format!("{PREFIX}{space}-{process}")));
        }
    }
}

/// The folder of the control group that this process is in.
fn own_group() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    // proc_pid_mountinfo(5): the mount point is the fifth field, the type follows a lone hyphen.
    let is_cgroup2 = |line: &&str| line.split(" - ").nth(1).is_some_and(|end| end.starts_with("cgroup2 "));
    let mount = mounts.lines().find(is_cgroup2).and_then(|line| line.split(' ').nth(4));
    let mount = mount.ok_or_else(|| io::Error::other("no cgroup2 file system is mounted"))?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Ok(Path::new(mount).join(own))
}

/// Fills in `choice` of `bpf/choose.c`.
fn write_choice(control: &Control, section: &mut [u8]) -> Result<(), Problem> {
    let mut choice = [0; CHOICE];
    choice[..control.kernel.len()].copy_from_slice(control.kernel.as_bytes());
    choice[NAME..].copy_from_slice(&u32::from(needs_marks(control)).to_ne_bytes());
    let place = section.get_mut(..CHOICE).ok_or_else(|| {
        Problem::failed("cannot name the control")(io::Error::other("bpf/choose.c has another layout"))
    })?;
    place.copy_from_slice(&choice);
    Ok(())
}
