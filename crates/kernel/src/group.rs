//! One command under one control: it runs in a control group of its own, in which a program sets the control of every connection
//! that is opened or accepted (cgroups(7), sock_ops). The network, other programs and their settings stay as they are.

use crate::object::{Held, load_object};
use crate::{Control, Problem, Relabelling, needs_marks};
use libbpf_rs::Object;
use rustix::io::FdFlags;
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// Length of a control's name in the kernel (`TCP_CA_NAME_MAX`), and of `choice` in `bpf/choose.c`.
const NAME: usize = 16;
const CHOICE: usize = NAME + 4;

/// How the program is attached (include/uapi/linux/bpf.h): a group below may have its own program, which then runs instead. If both ran,
/// the upper one would decide.
const SOCK_OPS: libbpf_sys::bpf_attach_type = libbpf_sys::BPF_CGROUP_SOCK_OPS;
const OVERRIDABLE: u32 = libbpf_sys::BPF_F_ALLOW_OVERRIDE;
/// The message to the tidier when the command has ended; if this process is killed, the tidier gets none.
const ENDED: &[u8] = b"ended\n";

/// Prefix of our groups' names; the number of the maker's PID namespace and its process number there follow.
const PREFIX: &str = "weir-use-";
/// The number of the PID namespace that sees all processes (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
const OUTERMOST: u64 = 0xeffffffc;

/// A control group whose connections all get one congestion control.
#[derive(Debug)]
pub struct Group {
    /// Its folder; below, the list of its processes, open for writing.
    folder: File,
    processes: OwnedFd,
    /// The tidier: a process that creates the group, and removes it when its input ends.
    tidier: Child,
    /// The program that sets the control.
    object: Object,
}

impl Group {
    /// Creates a group below the group of this process. If this process is killed, the tidier keeps the control and its relabelling in
    /// the kernel until all processes in the group have ended.
    ///
    /// # Errors
    /// There is no cgroup2 file system, or the kernel refuses the program.
    pub fn new(held: &Held, relabelling: Option<&Relabelling>) -> Result<Group, Problem> {
        let unknown = || Problem::failed("cannot find the control group of this process");
        let (own, space) = (own_group().map_err(unknown())?, pid_namespace("self").map_err(unknown())?);
        sweep(&own, space);
        let folder = own.join(format!("{PREFIX}{space}-{}", std::process::id()));
        let failed = || Problem::failed(format!("cannot make the control group {}", folder.display()));
        let links = held.links().into_iter().chain(relabelling.into_iter().flat_map(Relabelling::links));
        let tidier = make_and_tidy_up(&folder, links.map(|link| link.as_raw_fd()).collect());
        let tidier = tidier.map_err(failed())?;
        let processes = File::options().write(true).open(folder.join("cgroup.procs")).map_err(failed())?;
        let object = load_object("choose", |_, section| write_choice(held.control, section))?;
        let folder = File::open(&folder).map_err(failed())?;
        let group = Group { folder, processes: processes.into(), tidier, object };
        // Unlike a link, which disappears with its holder, the program stays attached as long as the group exists.
        // SAFETY: both descriptors are open, and no memory is passed.
        match unsafe {
            libbpf_sys::bpf_prog_attach(group.program()?, group.folder.as_raw_fd(), SOCK_OPS, OVERRIDABLE)
        } {
            0 => Ok(group),
            _ => Err(failed()(io::Error::last_os_error())),
        }
    }

    fn program(&self) -> Result<RawFd, Problem> {
        let program = self.object.progs().next().map(|program| program.as_fd().as_raw_fd());
        program.ok_or_else(|| Problem::failed("cannot choose")(io::Error::other("its object has no program")))
    }

    /// Runs a command in the group until it ends. If this process dies, the command gets SIGTERM.
    ///
    /// # Errors
    /// The command cannot be run.
    pub fn run(&self, mut command: Command) -> Result<ExitStatus, Problem> {
        let program = command.get_program().to_string_lossy().into_owned();
        let processes = self.processes.as_raw_fd();
        let enter = move || {
            // SAFETY: the descriptor is open: `self` outlives the call of `status`, and exec closes it only later.
            let processes = unsafe { BorrowedFd::borrow_raw(processes) };
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
            rustix::io::write(processes.as_fd(), b"0")?;
            Ok(())
        };
        // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
        unsafe { command.pre_exec(enter) };
        command.status().map_err(|error| Problem::Command { program, error })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(program) = self.program() {
            // SAFETY: both descriptors are open, and no memory is passed.
            unsafe { libbpf_sys::bpf_prog_detach2(program, self.folder.as_raw_fd(), SOCK_OPS) };
        }
        if let Some(mut input) = self.tidier.stdin.take() {
            let _ = input.write_all(ENDED);
        }
        let _ = self.tidier.wait();
    }
}

/// Starts the tidier, which creates the group and removes it when this process is gone, even if this process is killed before it knows
/// of the group. The tidier keeps these descriptors open until then.
fn make_and_tidy_up(folder: &Path, kept: Vec<RawFd>) -> io::Result<Child> {
    let mut shell = Command::new("sh");
    shell.args(["-c", include_str!("tidy.sh"), "weir-tidy"]).arg(folder);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let keep = move || {
        kept.iter().try_for_each(|descriptor| {
            // SAFETY: the descriptor is open: the caller has borrowed it until the process is spawned.
            let descriptor = unsafe { BorrowedFd::borrow_raw(*descriptor) };
            Ok(rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?)
        })
    };
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe { shell.pre_exec(keep) };
    let mut child = shell.spawn()?;
    let mut told = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut told)?;
    }
    if told == "made\n" {
        return Ok(child);
    }
    let _ = child.wait();
    Err(io::Error::other(told.trim().to_owned()))
}

/// The number of a process's PID namespace (pid_namespaces(7)).
fn pid_namespace(process: &str) -> io::Result<u64> {
    Ok(fs::metadata(Path::new("/proc").join(process).join("ns/pid"))?.ino())
}

/// Removes groups whose makers are gone. A maker's tidier is killed with it if its whole PID namespace is killed, as with a container.
/// Only a process that sees all others can tell.
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
