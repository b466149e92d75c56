//! Stations that a lab can place at a node: each is one file and one line in the registry below. What a station is and may do
//! says [`weir_fabric::Station`]; both engines run the same ones.
//!
//! This room is apart from `fabric`, so that stations may build on rooms that themselves import `fabric`.
#![forbid(unsafe_code)]

mod bleacher;
mod echo;
mod policer;
#[cfg(test)]
mod testing;

use weir_fabric::{Station, Wire};

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
                matches!(self, Config::Echo(_))
            }
            /// Builds the station.
            pub fn build<P: Wire + 'static>(&self) -> Box<dyn Station<P>> {
                match self {
                    $(Config::$Variant(config) => Box::new($module::$Type::new(config)),)+
                }
            }
        }
    };
}

stations! {
    Policer(policer::Policer) = "policer" | "srtcm": "Token-bucket policer with three colours (RFC 2697): drops red packets, counts yellow ones";
    Bleacher(bleacher::Bleacher) = "ecn-bleacher" | "bleacher": "Middlebox that clears or rewrites ECN codepoints";
    Echo(echo::Echo) = "echo": "Responder: sends each datagram that is addressed to it back to where it came from";
}
