//! Transcendental functions that give the same bits on every machine. The standard library calls the platform's C library, whose
//! results may differ; `libm` is the same code everywhere.

pub use libm::{cbrt, exp, log as ln, pow, sqrt};
