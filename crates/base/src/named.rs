//! What a registry knows of one of its members.

/// A member of a registry (a controller, a queue, a workload), for `weir list`, `weir describe`, the schema and diagnostics.
#[derive(Debug, Clone)]
pub struct Named {
    /// The name that a lab file uses.
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// One line: what it is, and its source (RFC, paper section, kernel file).
    pub summary: &'static str,
    /// JSON schema of its parameters; descriptions are the field documentation, with defaults.
    pub parameters: schemars::Schema,
}
