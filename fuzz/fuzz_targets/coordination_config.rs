//! Whatever an administrator writes, it is a configuration that an aggregation point can be made of, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_coord::{Config, Point};

fuzz_target!(|text: &str| {
    if let Ok(config) = Config::from_toml(text) {
        Point::new(&config, 1, 1).expect("a configuration that was read is right");
    }
});
