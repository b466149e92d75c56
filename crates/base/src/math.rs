//! Transcendental functions that give the same bits on every machine. The standard library hands these to the
//! platform's C library, which may differ; `libm` is the same code everywhere.

pub use libm::{cbrt, exp, log as ln, pow, sqrt};
