//! Any command, run by a shell inside a host: real programs as traffic. Only the live engine can run it; the simulator refuses it.
//! The command runs as the user who runs weir, in the host's network namespace and in a PID namespace of its own, so that none of
//! its processes survives the run.

use crate::{Action, Bytes, Event, Parameters, Random, Role, Time, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_base::ParameterError;

/// The names of the placeholders in a command, which stand in braces.
pub const PLACEHOLDERS: [&str; 6] = ["sender", "receiver", "port", "flow", "seed", "duration"];

/// Parameters of a command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The command, as typed into a shell. Placeholders: `{sender}` and `{receiver}` are the hosts' addresses, `{port}` a port that no
    /// other flow uses, `{flow}` the flow's name, `{seed}` the run's seed, and `{duration}` the seconds from the command's start to
    /// the end of the run.
    #[schemars(example = &"iperf3 -c {receiver} -p {port}")]
    pub run: String,
    /// The host in which the command runs.
    pub host: Host,
    /// A command for the other host, for example a server. It starts just before and is ended with the run; its exit status is
    /// ignored.
    #[schemars(example = &"iperf3 -s -p {port}")]
    pub peer: Option<String>,
    /// Environment variables for both commands, in addition to those of weir.
    #[schemars(extend("examples" = [{ "LANG": "C" }]))]
    pub environment: BTreeMap<String, String>,
    /// Whether the run is valid if the command ends with a status other than 0. A run that fails because of a command is not retried,
    /// whatever `--retries` says, since the command's effects outside the lab would occur twice.
    pub may_fail: bool,
}

/// One of a group's two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Host {
    /// The host that sends the group's data.
    #[default]
    Sender,
    /// The host that receives it.
    Receiver,
}

impl Parameters for Config {
    fn role(&self) -> Role {
        Role::Command
    }
    fn build(&self, _: Option<Bytes>, _: Bytes, _: Random) -> Box<dyn Workload> {
        Box::new(Command)
    }
    fn faults(&self, _: Bytes) -> Vec<ParameterError> {
        let mut faults = Vec::new();
        if self.run.trim().is_empty() {
            let help = "write run = \"iperf3 -c {receiver}\", for example";
            faults.push(ParameterError::new("run", "there is no command to run", help));
        }
        for (key, text) in [("run", Some(&self.run)), ("peer", self.peer.as_ref())] {
            let Some(text) = text else { continue };
            if text.contains('\0') {
                faults.push(ParameterError::new(
                    key,
                    "a command cannot contain a NUL character",
                    "remove it",
                ));
            }
            for word in braced(text).filter(|word| !PLACEHOLDERS.contains(word)) {
                // A shell has braces of its own; only a probable misspelling of a placeholder is refused.
                if let Some(meant) = PLACEHOLDERS.into_iter().find(|known| one_slip_apart(word, known)) {
                    let message = format!("there is no placeholder {{{word}}}");
                    faults.push(ParameterError::new(key, message, format!("did you mean {{{meant}}}?")));
                }
            }
        }
        let bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = self.environment.keys().find(bad) {
            let message = format!("an environment variable cannot be called \"{name}\"");
            faults.push(ParameterError::new("environment", message, "write { NAME = \"value\" }"));
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

/// The texts in braces that are one word of lower-case letters.
fn braced(text: &str) -> impl Iterator<Item = &str> {
    let inside = |part: &'_ str| -> Option<usize> { part.find('}') };
    text.split('{').skip(1).filter_map(move |part| {
        let word = &part[..inside(part)?];
        (!word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')).then_some(word)
    })
}

/// Whether two words differ by one added, missing or changed letter, or by two adjacent letters in the other order.
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

/// The command with each placeholder replaced by its value; other braces are unchanged.
pub fn fill_in(command: &str, values: &[(&str, String)]) -> String {
    let mut text = command.to_string();
    for (name, value) in values {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    text
}

/// The workload of a command, which no engine drives.
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

    fn faults(run: &str) -> Vec<ParameterError> {
        Config { run: run.into(), ..Config::default() }.faults(Bytes::new(1500))
    }

    #[test]
    fn placeholders_are_filled_in_and_braces_of_the_shell_are_kept() {
        let values = [("receiver", "10.0.0.2".to_string()), ("port", "23000".to_string())];
        assert_eq!(
            fill_in("iperf3 -c {receiver} -p {port} | awk '{print $1}'", &values),
            "iperf3 -c 10.0.0.2 -p 23000 | awk '{print $1}'"
        );
    }

    #[test]
    fn a_misspelled_placeholder_is_reported_and_braces_of_the_shell_are_not() {
        assert_eq!(faults("ping {reciver}")[0].help, "did you mean {receiver}?");
        assert_eq!(faults("ping {reciever}")[0].help, "did you mean {receiver}?");
        assert_eq!(faults("ping {receivers}")[0].help, "did you mean {receiver}?");
        assert_eq!(faults("ping {receiver} && awk '{print}' ${HOME} {a,b} {x}"), []);
        assert_eq!(faults("  ")[0].key, "run");
    }
}
