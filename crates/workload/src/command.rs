//! Any command, run by a shell inside a host: real programs as traffic. Only the live engine can; the simulator refuses it.
//! The command runs as the user who runs weir, in the host's network namespace and in a PID namespace of its own, so that
//! nothing of it survives the run.

use crate::checks::Fault;
use crate::{Action, Bytes, Event, Parameters, Random, Role, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands for something else in a command, in braces.
pub const PLACEHOLDERS: [&str; 6] = ["sender", "receiver", "port", "flow", "seed", "duration"];

/// Parameters of a command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The command, as one types it into a shell. `{sender}` and `{receiver}` stand for the hosts' addresses, `{port}` for a
    /// port that no other flow uses, `{flow}` for the flow's name, `{seed}` for the run's seed and `{duration}` for the
    /// seconds that are left of the run at its start.
    pub run: String,
    /// The host that it runs in.
    pub host: Host,
    /// A command for the other host, started just before and ended with the run: a server, say. How it ends is not judged.
    pub peer: Option<String>,
    /// Environment variables for both, beside those that weir itself has.
    pub environment: BTreeMap<String, String>,
    /// Whether the command may end with a status other than 0 without failing the run. A run that a command fails is not
    /// tried again by itself, whatever `--retries` says: what the command did outside the lab would be done twice.
    pub may_fail: bool,
}

/// One of a group's two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Host {
    /// The one that the group's data leaves.
    #[default]
    Sender,
    /// The one that it goes to.
    Receiver,
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::Command
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Command)
    }
    fn faults(&self, _: Bytes) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.run.trim().is_empty() {
            let help = "write run = \"iperf3 -c {receiver}\", for example";
            faults.push(Fault::new("run", "there is no command to run", help));
        }
        for (key, text) in [("run", Some(&self.run)), ("peer", self.peer.as_ref())] {
            let Some(text) = text else { continue };
            if text.contains('\0') {
                faults.push(Fault::new(key, "a command cannot hold a NUL character", "take it out"));
            }
            for word in braced(text).filter(|word| !PLACEHOLDERS.contains(word)) {
                // A shell has braces of its own; only what looks like a slip of the pen is refused.
                if let Some(meant) = PLACEHOLDERS.into_iter().find(|known| one_slip_apart(word, known)) {
                    let message = format!("nothing is called {{{word}}}");
                    faults.push(Fault::new(key, message, format!("did you mean {{{meant}}}?")));
                }
            }
        }
        let bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = self.environment.keys().find(bad) {
            let message = format!("an environment variable cannot be called \"{name}\"");
            faults.push(Fault::new("environment", message, "write { NAME = \"value\" }"));
        }
        faults
    }
    fn wanted(&self, _: crate::Span) -> Option<Bytes> {
        Some(Bytes::ZERO)
    }
    fn command(&self) -> Option<&Config> {
        Some(self)
    }
}

/// What stands in braces, where it is one word of small letters.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    let inside = |part: &'_ str| -> Option<usize> { part.find('}') };
    text.split('{').skip(1).filter_map(move |part| {
        let word = &part[..inside(part)?];
        (!word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')).then_some(word)
    })
}

/// Whether one letter more, less or other, or two in the other order, makes one word of the other.
fn one_slip_apart(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        0 => {
            let (a, b) = (&short.as_bytes()[same..], &long.as_bytes()[same..]);
            let swapped = a.len() > 1 && a[0] == b[1] && a[1] == b[0] && a[2..] == b[2..];
            swapped || a.get(1..) == b.get(1..)
        }
        1 => short[same..] == long[same + 1..],
        _ => false,
    }
}

/// The command with each placeholder replaced; other braces stay as they are.
pub fn fill_in(command: &str, values: &[(&str, String)]) -> String {
    let mut text = command.to_string();
    for (name, value) in values {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    text
}

/// A command drives itself: no engine asks this for anything.
#[derive(Debug)]
struct Command;

impl Workload for Command {
    fn next(&mut self, _: Event, _: Time) -> Action {
        Action::WaitUntil(Time::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(run: &str) -> Vec<Fault> {
        Config { run: run.into(), ..Config::default() }.faults(Bytes::new(1500))
    }

    #[test]
    fn placeholders_are_filled_in_and_a_shells_own_braces_stay() {
        let values = [("receiver", "10.0.0.2".to_string()), ("port", "23000".to_string())];
        assert_eq!(
            fill_in("iperf3 -c {receiver} -p {port} | awk '{print $1}'", &values),
            "iperf3 -c 10.0.0.2 -p 23000 | awk '{print $1}'"
        );
    }

    #[test]
    fn a_slip_of_the_pen_is_told_and_a_shells_own_braces_are_not() {
        assert_eq!(faults("ping {reciver}")[0].help, "did you mean {receiver}?");
        assert_eq!(faults("ping {reciever}")[0].help, "did you mean {receiver}?");
        assert_eq!(faults("ping {receivers}")[0].help, "did you mean {receiver}?");
        assert_eq!(faults("ping {receiver} && awk '{print}' ${HOME} {a,b} {x}"), []);
        assert_eq!(faults("  ")[0].key, "run");
    }
}
