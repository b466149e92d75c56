//! The description of a registry's member.

/// A member of a registry (a controller, a queue, a workload), for `weir list`, `weir describe`, the schema and diagnostics.
#[derive(Debug, Clone)]
pub struct Named {
    /// The name that a lab file uses.
    pub name: &'static str,
    /// Other names of the same member.
    pub aliases: &'static [&'static str],
    /// A line that says what the member is, with its source (RFC, paper section, kernel file).
    pub summary: &'static str,
    /// JSON schema of its parameters; descriptions are the field documentation, with defaults.
    pub parameters: schemars::Schema,
}
