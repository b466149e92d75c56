//! What is wrong with a parameter, for the plan to say with its place in the lab.

/// An error in a parameter whose type is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterError {
    /// The parameter.
    pub key: &'static str,
    /// What is wrong with it.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl ParameterError {
    /// The error of this parameter.
    pub fn new(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> ParameterError {
        ParameterError { key, message: message.into(), help: help.into() }
    }
}
