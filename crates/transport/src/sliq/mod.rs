//! SLIQ, the transport between overlay nodes of the GNAT report (section 3): streams over lossy paths, each with its own
//! reliability, one of which keeps a deadline with a given probability.

pub mod aec;
