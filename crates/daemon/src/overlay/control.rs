//! What other processes may ask a running node, and its answers: questions come to the node's loop by a channel.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use weir_linux::question;
use weir_live::OVERLAY_PREFIX as PREFIX;
use weir_overlay::site::Service;

/// How long the loop of a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question {
    /// How the node, its neighbours and its flows are.
    Status,
    /// A flow is to have this priority.
    Priority {
        /// Its name, as the status has it.
        flow: String,
        /// Above 0.
        priority: f64,
    },
    /// The node is to use this K, in bits squared per second.
    K(f64),
    /// The node is to forward nothing of other nodes, or to do so again.
    Drain(bool),
    /// A service, which comes before all others.
    Add(Box<Service>),
    /// The service of this name is to go.
    Remove(String),
}

/// A question with the way back for its answer.
pub(super) struct Asked {
    pub(super) question: Question,
    answer: Sender<Value>,
}

impl Asked {
    /// Answers.
    pub(super) fn answer(&self, answer: Value) {
        // Who has not waited gets no answer.
        let _ = self.answer.send(answer);
    }
}

/// The answer to a question that is refused.
pub(super) fn refusal(error: impl Into<String>, help: impl Into<String>) -> Value {
    json!({ "error": error.into(), "help": help.into() })
}

/// Answers under a node's name from now on, until the process ends. The questions come out of the channel.
///
/// # Errors
/// The name is too long, or another process has it.
pub(super) fn listen(name: &str) -> Result<Receiver<Asked>, Failure> {
    let listener = question::Listener::open(&format!("{PREFIX}{name}")).map_err(|error| {
        Failure::bad_input(format!("cannot answer as {name:?}: {error}"), "choose a shorter `name`")
    })?;
    let (to_node, questions) = channel();
    let serve = move || {
        listener.serve(|| false, |asked| serde_json::to_vec(&forward(asked, &to_node)).unwrap_or_default());
    };
    let thread = std::thread::Builder::new().name("weir-control".to_owned()).spawn(serve);
    thread.map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    Ok(questions)
}

/// The question that these bytes are.
///
/// # Errors
/// They are none, in words.
pub(super) fn understood(asked: &[u8]) -> Result<Question, String> {
    serde_json::from_slice(asked).map_err(|error| format!("not understood: {error}"))
}

fn forward(asked: Option<&[u8]>, to_node: &Sender<Asked>) -> Value {
    let Some(asked) = asked else {
        return refusal(
            "this node belongs to another user",
            "run the command as root, or as the node's user",
        );
    };
    let question = match understood(asked) {
        Ok(question) => question,
        Err(error) => return refusal(error, "both programs must be of one version"),
    };
    let (answer, answers) = channel();
    let _ = to_node.send(Asked { question, answer });
    answers.recv_timeout(PATIENCE).unwrap_or_else(|_| refusal("the node is too busy to answer", "try again"))
}

/// The nodes of this network namespace, by name.
pub(super) fn running() -> Vec<String> {
    question::names(PREFIX)
}

/// Asks a node.
///
/// # Errors
/// There is none of this name, or it refuses.
pub(super) fn ask(name: &str, question: &Question) -> Result<Value, Failure> {
    let text = serde_json::to_vec(question).map_err(|error| Failure::failed(error.to_string()))?;
    let answer = question::ask(&format!("{PREFIX}{name}"), &text).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Failure::bad_input(
            format!("no overlay node {name:?} runs here"),
            "`weir overlay status` lists the nodes",
        ),
        _ => Failure::failed(format!("the overlay node {name:?} does not answer: {error}")),
    })?;
    let answer: Value =
        serde_json::from_slice(&answer).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    match (answer["error"].as_str(), answer["help"].as_str()) {
        (Some(error), help) => Err(Failure::bad_input(error, help.unwrap_or_default())),
        (None, _) => Ok(answer),
    }
}
