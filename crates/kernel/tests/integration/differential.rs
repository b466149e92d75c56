//! The C form of each control, compiled for user space, against its Rust form: random connections of 10,000 events and more, and
//! connections recorded in a kernel; windows and thresholds must be equal after every event.
//!
//! `bpf/host/host.c` replaces the kernel around the control. Without a C compiler the test is skipped, with a message; with
//! WEIR_REQUIRE_LIVE=1 it fails.

mod cases;
mod forms;
mod random;
mod recorded;

use cases::CASES;
use std::process::Command;
use weir_control::Config;

#[test]
fn the_c_form_and_the_rust_form_have_equal_windows_after_every_event() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler");
        assert!(std::env::var_os("WEIR_REQUIRE_LIVE").is_none(), "WEIR_REQUIRE_LIVE is set");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (json, parameters) in CASES {
        let config: Config = serde_json::from_str(json).unwrap();
        let kernel = weir_kernel::control(config.name()).unwrap().kernel;
        let program = forms::compile(kernel.strip_prefix("weir_").unwrap(), folder.path());
        for (seed, properties) in (1..).zip(random::CONNECTIONS) {
            random::lived(&config, seed, properties).compare(
                &program,
                parameters,
                &format!("{json}, seed {seed}"),
            );
        }
        for (seed, (name, trace)) in (1..).zip(recorded::TRACES) {
            recorded::lived(&config, seed, trace).compare(&program, parameters, &format!("{json}, {name}"));
        }
    }
}

#[test]
fn circuits_with_much_loss_fall_back_unless_that_is_switched_off() {
    for (json, parameters) in CASES.iter().filter(|(json, _)| json.contains("\"ctcp\"")) {
        let config: Config = serde_json::from_str(json).unwrap();
        let left = (1..)
            .zip(random::CONNECTIONS)
            .filter(|(seed, properties)| random::lived(&config, *seed, *properties).left)
            .count();
        let has_circuit = parameters.iter().any(|(name, _)| *name == "rate");
        let stays = parameters.contains(&("fall_back", 0));
        assert_eq!(left > 0, !stays, "{json}: {left} of {} left", random::CONNECTIONS.len());
        assert!(has_circuit || left == random::CONNECTIONS.len(), "{json}");
    }
}

#[test]
fn recorded_traces_move_every_window() {
    for (json, _) in CASES {
        let config: Config = serde_json::from_str(json).unwrap();
        if config.name() == "ctcp" {
            // A circuit's window must not change.
            continue;
        }
        for (name, trace) in recorded::TRACES {
            let windows = recorded::lived(&config, 1, trace).windows();
            assert!(windows >= 10, "{json}, {name}: {windows} different windows");
        }
    }
}
