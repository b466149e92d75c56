//! Connections: pure state machines with an explicit clock. Segments and times go in, segments and the next time come out.
#![forbid(unsafe_code)]

pub mod tcp;
