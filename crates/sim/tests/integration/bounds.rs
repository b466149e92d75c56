//! Runs that once had no end, or went back in time: each ends now, or fails with a reason.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_base::Span;
use weir_engine::{Engine, EngineError, Watch};
use weir_plan::{Lab, Run};
use weir_record::Records;
use weir_sim::Simulator;
use weir_transport::Config;

/// Progress is reported each 16,384 events and at each sample: no run of these tests that ends has nearly as many reports.
const MOST_LOOKS: u64 = 5_000;

fn run(text: &str) -> Result<Run, String> {
    let lab = Lab::from_str(&format!("format = 1\n{text}"), "bounds.toml", ".".as_ref(), &[]);
    lab.map(|lab| lab.runs().remove(0)).map_err(|error| error.render(false, 100))
}

/// Simulates a run, which fails as cancelled if it takes too many events.
fn simulate(run: &Run) -> Result<Records, EngineError> {
    let (cancel, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |_| {
        if looks.fetch_add(1, Ordering::Relaxed) > MOST_LOOKS {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let watch = Watch { cancel: &cancel, progress: &progress, capture: None, folder: None };
    let mut records = Records::default();
    let outcome = Simulator.run(run, &mut records, &watch)?;
    assert!(outcome.audit.balances(), "{:?}", outcome.audit);
    Ok(records)
}

/// One flow of SLIQ over a dumbbell, for ten seconds.
fn sliq(dumbbell: &str, parameters: &str, traffic: &str) -> String {
    format!(
        "[run]\nduration = '10 s'\nwarmup = '0 s'\n[dumbbell]\n{dumbbell}\n[traffic.a]\n\
         transport = {{ kind = 'sliq', {parameters} }}\n{traffic}\n"
    )
}

const SLOW: &str = "rate = '1 Mbit/s'\nrtt = '20 ms'";

#[test]
fn a_keepalive_below_20_ms_is_refused_where_it_stands() {
    for keepalive in ["0 s", "1 ns", "19 ms"] {
        let fault = run(&sliq(SLOW, &format!("keepalive = '{keepalive}'"), "")).unwrap_err();
        for told in ["a keepalive each ", "bounds.toml:9:", "help: write 20 ms or more"] {
            assert!(fault.contains(told), "{told} in {fault}");
        }
    }
    simulate(&run(&sliq(SLOW, "keepalive = '20 ms'", "")).unwrap()).unwrap();
}

#[test]
fn an_end_that_never_stops_sending_ends_the_run_with_a_reason() {
    let mut run = run(&sliq(SLOW, "", "")).unwrap();
    let Some(Config::Sliq(parameters)) = &mut run.groups[0].transport else { panic!("no SLIQ") };
    // A lab cannot ask for this.
    parameters.keepalive = Some(Span::ZERO);
    let Err(EngineError::Endless(why)) = simulate(&run) else { panic!("no reason") };
    assert!(why.starts_with("flow a (transport sliq): its "), "{why}");
    assert!(why.contains("has sent 1048576 packets at 0."), "{why}");
}

#[test]
fn a_connection_that_is_idle_for_less_than_a_round_trip_ends() {
    let far = "rate = '10 Mbit/s'\nrtt = '100 ms'";
    let queued = "rate = '57 kbit/s'\nrtt = '90 ms'";
    for (dumbbell, idle) in [(far, "0 s"), (far, "50 ms"), (far, "150 ms"), (queued, "197 ms")] {
        for cc in ["cubic", "bbr", "copa"] {
            for workload in ["'bulk'", "{ kind = 'requests' }", "{ kind = 'web', rate = 2 }"] {
                for start in ["never", "long", "always"] {
                    let parameters = format!("idle = '{idle}', fast_start = '{start}', search_mtu = true");
                    let lab = sliq(
                        dumbbell,
                        &parameters,
                        &format!("cc = '{cc}'\nflows = 2\nworkload = {workload}"),
                    );
                    let ends = simulate(&run(&lab).unwrap());
                    ends.unwrap_or_else(|error| panic!("{error}\n{lab}"));
                }
            }
        }
    }
}

#[test]
fn a_handshake_longer_than_the_wait_for_reports_sets_no_timer_in_the_past() {
    let web = "[run]\nduration = '10 s'\n[dumbbell]\nrate = '0.3 Mbit/s'\nrtt = '80 ms'\n[traffic.d]\n\
               [traffic.b]\nworkload = { kind = 'web', load = '0.7 Mbit/s' }\n";
    let many = "[run]\nduration = '10 s'\nhost_jitter = '100 us'\n[dumbbell]\nrate = '0.108 Mbit/s'\nrtt = '4 ms'\n\
                [traffic.a]\nflows = 5\nstart = { from = '8 ms', to = '2 s' }\n[traffic.b]\nsack = false\n\
                [traffic.d]\nrtt = '76 ms'\nhost = 'h1'\n[traffic.c]\nrtt = '77 ms'\nstart = '36 ms'\n";
    for (lab, transport) in [
        (web, "{ kind = 'sliq', coordination = { application = 2 } }"),
        (web, "{ kind = 'rudp', application = 2 }"),
        (many, "{ kind = 'sliq', idle = '240 ms', coordination = { application = 1 } }"),
    ] {
        for seed in 1..10 {
            let lab =
                format!("{lab}transport = {transport}\n").replace("[run]", &format!("[run]\nseed = {seed}"));
            simulate(&run(&lab).unwrap()).unwrap_or_else(|error| panic!("{error}\n{lab}"));
        }
    }
}
