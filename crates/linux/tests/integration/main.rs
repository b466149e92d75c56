//! What the kernel does with packets, in network namespaces of its own. Tests are skipped, with a message, if no namespace can be made or
//! the kernel lacks what they need; with WEIR_REQUIRE_LIVE=1 that is a failure.
#![allow(clippy::unwrap_used)] // it is tests all through, but clippy sees no harness

mod masquerade;
mod pair;
mod place;
mod transparent;
mod tun;
mod udp;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments = Arguments::from_args();
    if !arguments.list
        && let Err(error) = weir_linux::enter()
    {
        return place::skipped(&format!("no network namespace can be made: {error}"));
    }
    let all = masquerade::TESTS.iter().chain(&transparent::TESTS).chain(&pair::TESTS);
    let all = all.chain(&tun::TESTS).chain(&udp::TESTS);
    let trial = |&(name, test): &(&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, all.map(trial).collect()).exit();
}
