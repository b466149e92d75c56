//! Members of registries that a program has added: those that a lab names, and those that are known from results.

use crate::run::Run;
use std::sync::Arc;
use weir_base::Prototype;

/// Makes a member known that results describe: labs may name it, but it cannot be made here.
///
/// # Errors
/// It is of no registry that takes members, or its name is not one.
pub fn know(prototype: Prototype) -> Result<(), String> {
    match prototype.what.as_str() {
        weir_control::Config::WHAT => weir_control::Config::add(prototype, None),
        weir_queue::Config::WHAT => weir_queue::Config::add(prototype, None),
        other => Err(format!("no {other} can be added")),
    }
}

/// An added member that a lab names.
#[derive(Debug, Clone)]
pub struct Named {
    /// What it is.
    pub prototype: Arc<Prototype>,
    /// Whether this program can make it.
    pub can_be_made: bool,
}

impl Run {
    /// The added members that take part in it, each once.
    pub fn prototypes(&self) -> Vec<Named> {
        let mut all = Vec::new();
        for group in &self.groups {
            let second = match &group.transport {
                Some(weir_transport::Config::Sliq(sliq)) => sliq.second.as_ref(),
                _ => None,
            };
            let first = group.settings.as_ref().map(|settings| &settings.cc);
            first.into_iter().chain(second).for_each(|cc| controller(cc, &mut all));
        }
        let stations = self.stations.iter().flat_map(|station| station.station.controllers());
        stations.for_each(|cc| controller(cc, &mut all));
        for link in &self.network.links {
            queue(&link.queue, &mut all);
        }
        all
    }
}

fn controller(cc: &weir_control::Config, all: &mut Vec<Named>) {
    if let weir_control::Config::Added(added) = cc {
        let named = Named { prototype: Arc::clone(added.prototype()), can_be_made: added.maker().is_some() };
        note(named, all);
    }
}

fn queue(config: &weir_queue::Config, all: &mut Vec<Named>) {
    if let weir_queue::Config::Added(added) = config {
        let named = Named { prototype: Arc::clone(added.prototype()), can_be_made: added.maker().is_some() };
        note(named, all);
    }
    config.inner().1.into_iter().for_each(|inner| queue(inner, all));
}

fn note(named: Named, all: &mut Vec<Named>) {
    let is_same = |other: &Named| {
        (&other.prototype.what, &other.prototype.name) == (&named.prototype.what, &named.prototype.name)
    };
    if !all.iter().any(is_same) {
        all.push(named);
    }
}
