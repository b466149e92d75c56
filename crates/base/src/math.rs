//! Transcendental functions that give the same bits on every machine. The standard library calls the platform's C library, whose
//! results may differ; `libm` is the same code everywhere.

pub use libm::{cbrt, exp, expm1 as exp_m1, log as ln, log1p as ln_1p, pow, sqrt};
