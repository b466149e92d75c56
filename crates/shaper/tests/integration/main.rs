//! Shapers in the running kernel, in network namespaces of their own. They are skipped, with a message, if no namespace can be made;
//! with WEIR_REQUIRE_LIVE=1 that is a failure.
#![allow(clippy::unwrap_used)] // it is tests all through, but clippy sees no harness

mod classes;
mod device;
mod simulated;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    if !arguments.list
        && let Err(error) = weir_linux::enter()
    {
        println!("shapers: skipped, no network namespace can be made: {error}");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    // The order of departures is compared, so no other test takes a processor meanwhile.
    arguments.test_threads.get_or_insert(1);
    let all = device::TESTS.iter().chain(&classes::TESTS).chain(&simulated::TESTS);
    let trial = |&(name, test): &(&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, all.map(trial).collect()).exit();
}
