//! The interface of this crate without the feature `bpf`: every function returns
//! [`Problem::NotBuilt`].

use crate::{Circuit, Control, Problem, Running};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::process::{Command, ExitStatus};
use weir_control::Config;

/// Never exists without the feature `bpf`.
#[derive(Debug)]
pub struct Held {
    never: std::convert::Infallible,
}

impl Held {
    /// The control.
    pub fn control(&self) -> &'static Control {
        match self.never {}
    }
}
/// Never exists without the feature `bpf`.
#[derive(Debug)]
pub struct Group {
    never: std::convert::Infallible,
}

impl Group {
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// [`Problem::NotBuilt`].
    pub fn new(_: &Held, _: Option<&Relabelling>) -> Result<Group, Problem> {
        Err(Problem::NotBuilt)
    }
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// None: a group never exists.
    pub fn run(&self, _: Command) -> Result<ExitStatus, Problem> {
        match self.never {}
    }
}

/// Never exists without the feature `bpf`.
#[derive(Debug)]
pub struct Relabelling {
    _never: std::convert::Infallible,
}

impl Relabelling {
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// [`Problem::NotBuilt`].
    pub fn new(_: &'static Control, _: &[String]) -> Result<Relabelling, Problem> {
        Err(Problem::NotBuilt)
    }
}

/// Never exists without the feature `bpf`.
#[derive(Debug)]
pub struct Observer {
    never: std::convert::Infallible,
}

impl Observer {
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// [`Problem::NotBuilt`].
    pub fn load() -> Result<Observer, Problem> {
        Err(Problem::NotBuilt)
    }
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// None: an observer never exists.
    pub fn switch(&mut self, _: Option<u32>) -> Result<(), Problem> {
        match self.never {}
    }
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// None: an observer never exists.
    pub fn take(&mut self, _: &mut Vec<weir_observe::Sighting>) -> Result<(), Problem> {
        match self.never {}
    }
    /// See the feature `bpf`.
    ///
    /// # Errors
    /// None: an observer never exists.
    pub fn lost(&self) -> Result<u64, Problem> {
        match self.never {}
    }
    /// See the feature `bpf`.
    pub fn reason(&self, _: u16) -> String {
        match self.never {}
    }
}

/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn load(_: &'static Control, _: &Map<String, Value>, _: &[String]) -> Result<Vec<String>, Problem> {
    Err(Problem::NotBuilt)
}
/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn hold(_: &Config) -> Result<Held, Problem> {
    Err(Problem::NotBuilt)
}
/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn running() -> Result<Vec<Running>, Problem> {
    Err(Problem::NotBuilt)
}
/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn unload(_: &str) -> Result<Vec<String>, Problem> {
    Err(Problem::NotBuilt)
}
/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn set_circuit(_: &Circuit) -> Result<(), Problem> {
    Err(Problem::NotBuilt)
}
/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn remove_circuit(_: IpAddr, _: u8) -> Result<bool, Problem> {
    Err(Problem::NotBuilt)
}
/// See the feature `bpf`.
///
/// # Errors
/// [`Problem::NotBuilt`].
pub fn circuits() -> Result<Vec<Circuit>, Problem> {
    Err(Problem::NotBuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_kernel_controls_fails_where_no_test_may_be_skipped() {
        assert!(matches!(hold(&"vegas".parse().unwrap()), Err(Problem::NotBuilt)));
        println!("skipped: weir was built without its kernel controls");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
    }
}
