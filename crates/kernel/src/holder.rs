//! The processes that keep a control in the kernel.

use std::fmt;

/// A process that keeps a control in the kernel: by a descriptor of its own, or by a pin in its mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its process number.
    pub process: u32,
    /// Its command, cut to the length of a message; empty if it cannot be read.
    pub command: String,
    /// Whether it holds the control by a pin in its mount namespace, which disappears with the last process
    /// there.
    pub pin: bool,
    /// Number of the process that started it.
    #[cfg(feature = "bpf")]
    pub(crate) parent: Option<u32>,
}

/// Most characters of a command that are shown.
#[cfg(feature = "bpf")]
const SHOWN: usize = 60;

#[cfg(feature = "bpf")]
impl Holder {
    /// The process of this number.
    pub(crate) fn new(process: u32, pin: bool) -> Holder {
        let read =
            |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
        let parent = read("status").lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        Holder { process, command: shown(&read("cmdline")), pin, parent }
    }
}

/// A command line from `/proc` as one line of text, cut to the length of a message.
#[cfg(feature = "bpf")]
fn shown(command: &str) -> String {
    let words: Vec<&str> = command
        .trim_end_matches('\0')
        .split('\0')
        .map(|word| if word.contains(char::is_control) { "..." } else { word })
        .collect();
    let words = words.join(" ");
    match words.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &words[..end]),
        None => words,
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Holder { process, command, pin, .. } = self;
        let what = if *pin { "a pin in the mount namespace of process" } else { "process" };
        match command.as_str() {
            "" => write!(f, "{what} {process}"),
            command => write!(f, "{what} {process} ({command})"),
        }
    }
}

/// Names holders in a sentence.
pub(crate) fn names(holders: &[Holder]) -> String {
    match holders {
        [] => "a process that cannot be seen from here".to_owned(),
        holders => holders.iter().map(Holder::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_shortened_to_one_printable_line() {
        assert_eq!(shown("weir\0kernel\0use\0"), "weir kernel use");
        assert_eq!(shown("sh\0-c\0one\ntwo\0tail"), "sh -c ... tail");
        assert_eq!(shown("\u{1b}[31m"), "...");
        assert_eq!(shown(&"ä".repeat(61)), format!("{}...", "ä".repeat(60)));
        assert_eq!(shown(""), "");
    }
}
