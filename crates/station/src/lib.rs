//! Stations that a lab can place at a node: each is one file and one line in the registry below. [`weir_fabric::Station`]
//! defines what a station is and may do; both engines run the same stations.
//!
//! This crate is separate from `fabric`, so that stations may use crates that import `fabric`.
//!
//! `policer.rs` is the file to open first.
#![forbid(unsafe_code)]

mod aggregation_point;
mod bleacher;
mod echo;
mod overlay_node;
mod policer;
#[cfg(test)]
mod testing;

pub use overlay_node::{Config as Overlay, Entering, Leaving, Neighbour, Seat};

use core::net::IpAddr;
use std::ops::RangeInclusive;
use weir_base::ParameterError;
use weir_fabric::{Station, Wire};

/// What a station learns about its lab when it is built.
#[derive(Debug, Clone, Default)]
pub struct StationContext {
    /// The seed of its random draws.
    pub seed: u64,
    /// The flows of the lab that carry Coordination Protocol headers.
    pub coordinated: Vec<Coordinated>,
    /// For a node of an overlay, what is around it.
    pub overlay: Option<Seat>,
}

/// Flows of a lab that carry headers of the Coordination Protocol.
#[derive(Debug, Clone)]
pub struct Coordinated {
    /// The application that their headers name.
    pub application: u8,
    /// Addresses of the hosts at both ends.
    pub hosts: Vec<IpAddr>,
    /// Their UDP ports, the same at both ends.
    pub ports: RangeInclusive<u16>,
}

/// What the registry asks the parameters of each kind of station.
trait Parameters {
    /// What is wrong with the parameters beyond their types; `placed` says whether the lab names links for the station.
    fn fault(&self, placed: bool) -> Option<ParameterError> {
        let _ = placed;
        None
    }
    /// Whether it answers echo requests that are addressed to it.
    fn answers(&self) -> bool {
        false
    }
}

/// Declares the registry: the configuration enum, and how it makes a station.
macro_rules! stations {
    ($($Variant:ident($module:ident::$Type:ident) = $name:literal $(($title:literal))? $(| $alias:literal)* : $summary:literal;)+) => {
        weir_base::registry! {
            /// A station and its parameters, as a lab file names it.
            pub enum Config: "station" {
                $($Variant($module::Config) = $name $(($title))? $(| $alias)* : $summary;)+
            }
        }

        impl Config {
            /// Whether it answers echo requests that are addressed to it.
            pub fn answers(&self) -> bool {
                match self {
                    $(Config::$Variant(config) => config.answers(),)+
                }
            }

            /// The congestion controllers that it runs itself.
            pub fn controllers(&self) -> &[weir_control::Config] {
                match self {
                    Config::OverlayNode(node) => node.controllers(),
                    _ => &[],
                }
            }

            /// Builds the station for its place in a lab.
            pub fn build<P: Wire + 'static>(&self, place: &StationContext) -> Box<dyn Station<P>> {
                match self {
                    $(Config::$Variant(config) => Box::new($module::$Type::new(config, place)),)+
                }
            }

            /// What is wrong with the parameters beyond their types; `placed` says whether the lab names links for the station.
            pub fn fault(&self, placed: bool) -> Option<ParameterError> {
                match self {
                    $(Config::$Variant(config) => config.fault(placed),)+
                }
            }
        }
    };
}

stations! {
    Policer(policer::Policer) = "policer" | "srtcm": "Token-bucket policer with three colours (RFC 2697): drops red packets, counts yellow ones";
    Bleacher(bleacher::Bleacher) = "ecn-bleacher" | "bleacher": "Middlebox that clears or rewrites ECN codepoints";
    AggregationPoint(aggregation_point::AggregationPoint) = "aggregation-point" | "ap": "Aggregation point: measures the path for the flows of an application and lets them share it as one";
    OverlayNode(overlay_node::OverlayNode) = "overlay-node": "Node of the backpressure overlay: sends over every path at once; a lab places them by [overlay]";
    Echo(echo::Echo) = "echo": "Responder: sends each datagram that is addressed to it back to where it came from";
}
