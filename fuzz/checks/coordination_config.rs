//! Whatever an administrator writes is a configuration from which an aggregation point can be made, or an error.

use weir_coord::{Config, Point};

/// Reads a configuration.
pub(crate) fn check(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(config) = Config::from_toml(text) {
        Point::new(&config, 1, 1).expect("a configuration that was read is right");
    }
}
