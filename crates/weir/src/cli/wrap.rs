//! The arguments of `weir wrap` and `weir link`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir wrap --link 'rate=20mbit rtt=40ms queue=dualpi2' -- iperf3 -c 192.0.2.7
  weir wrap --link 'rate=50mbit/10mbit rtt=30ms' --serve 'iperf3 -s' -- sh -c 'iperf3 -c $WEIR_FAR_END'
  weir wrap --link 'rate=30mbit delay=2ms' --link 'rate=8mbit delay=20ms loss=1%'          a shell behind two links
  weir wrap --link 'rate=20mbit rtt=40ms' --link 'to=198.51.100.0/24 rate=2mbit rtt=300ms' -- ping 198.51.100.7
  weir wrap --lab labs/cellular.toml --forward 8080 -- curl -O http://10.0.0.3:8080/file
  weir wrap --link 'rate=20mbit rtt=40ms' --live -- ping 192.0.2.7          the links in the terminal's last lines
  weir wrap --link 'rate=8mbit rtt=80ms loss=1%' --internet -- curl -O http://192.0.2.7/file          as root

A link has the keys of [dumbbell] in a lab (docs/labs.md, docs/links.md); DOWN/UP gives each direction a value, and down is the direction \
towards the command. With to=PREFIX a link takes the packets to and from these addresses alone, which are the far end's unless --internet \
leads to them; the longest prefix counts. The command runs as the user who calls weir, in a network of its own, from which the default route leads to the far \
end. WEIR_FAR_END and WEIR_FAR_END_V6 are the far end's addresses. `weir link` changes the links meanwhile. docs/wrap.md translates the \
commands of other emulators.
Exit status: the command's, or 128 and the number of the signal that ended it; 126 or 127 it could not be run; 1 the network failed; 2 \
bad input.")]
pub(crate) struct WrapArgs {
    /// A link, as KEY=VALUE separated by spaces; several stand in a row, the first nearest the command, and those with the same to=PREFIX in
    /// a row of their own
    #[arg(long, value_name = "LINK", required_unless_present = "lab")]
    pub link: Vec<String>,
    /// Take the network of this lab, with its schedules and traces; the command stands where its first traffic group receives
    #[arg(long, value_name = "FILE", conflicts_with = "link")]
    pub lab: Option<PathBuf>,
    /// Change a value of the network's lab: a path with dots, and TOML (quotes around text may be left out)
    #[arg(long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Run this at the far end, by a shell, until the command has ended; the command starts when it listens
    #[arg(long, value_name = "COMMAND")]
    pub serve: Option<OsString>,
    /// Relay connections (TCP) to this port of the far end to the same port of this host, at 127.0.0.1
    #[arg(long, value_name = "PORT")]
    pub forward: Vec<std::num::NonZeroU16>,
    /// Give the far end a way to the networks that this host reaches by its default route (IPv4); only as root
    #[arg(long)]
    pub internet: bool,
    /// Print the network as a lab, and run nothing
    #[arg(long)]
    pub print: bool,
    /// Write a result with a report into this folder
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Show rate, delay, backlog, drops and marks of each link in the terminal's last lines (standard error) while the command runs
    #[arg(long, requires = "command")]
    pub live: bool,
    /// Say nothing unless something is wrong
    #[arg(long)]
    pub quiet: bool,
    /// The command and its arguments [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir link list
  weir link show down
  weir link set down rate=5mbit
  weir link set 4711:link1-up delay=80ms loss=2%

A link is a direction, and is called as in the lab: `down` and `up` behind one link of `weir wrap`, `link1` and `link1-up`, `link2` and \
so on behind several. If several runs have a link of the name, put the run's number and a colon before it.")]
pub(crate) struct LinkArgs {
    #[command(subcommand)]
    pub action: LinkAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LinkAction {
    /// List the links of what runs here: wrapped commands and live runs
    #[command(after_help = "Example:\n  weir link list --json")]
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show a link as it is now, and what was changed
    #[command(after_help = "Example:\n  weir link show down")]
    Show {
        /// The link
        name: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Change a link at once; the run records it
    #[command(after_help = "\
Example:
  weir link set down rate=5mbit loss=1%

The settings are those of a change in a lab's schedule, except traces: rate, delay, loss, largest, jitter, duplicate, corrupt, and queue \
for shapers.")]
    Set {
        /// The link
        name: String,
        /// Its new settings, as KEY=VALUE; the others stay as they are
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
}
