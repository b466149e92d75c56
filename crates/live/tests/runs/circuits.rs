//! Circuit TCP over links that lose.

use crate::{DUMBBELL, controls, go, lab};
use weir_base::{Span, Time};
use weir_live::Tally;
use weir_plan::Run;

/// Packets of 1,500 bytes in 32,500 bytes, 130 % of the BDP of 10 Mbit/s and 20 ms.
const WINDOW: f64 = 22.0;

/// A bulk flow over a circuit with the rate of the whole link, which has this loss.
fn circuit(loss: &str, seconds: u64) -> Run {
    let mut run = lab(&format!(
        "{DUMBBELL}loss = {{ down = \"{loss}\", up = \"0 %\" }}\n[traffic.a]\n\
         cc = {{ kind = \"ctcp\", rate = \"10 Mbit/s\", rtt = \"20 ms\", header_bytes = 52 }}\n"
    ));
    run.duration = Span::from_secs(seconds);
    run
}

/// The windows of the flow's samples, with their times.
fn windows(tally: &Tally) -> &[(Time, f64)] {
    &tally.flows[0].windows
}

pub(crate) fn the_window_stands() {
    let Some(_alone) = controls() else { return };
    let (tally, _) = go(&circuit("0.5 %", 5));
    assert!(tally.links[0].lost > 0 && tally.flows[0].last.retransmissions > 0, "{:?}", tally.links[0]);
    assert!(windows(&tally).len() > 10, "{:?}", windows(&tally));
    assert!(windows(&tally).iter().all(|(_, window)| *window == WINDOW), "{:?}", windows(&tally));
}

pub(crate) fn much_loss_ends_it() {
    let Some(_alone) = controls() else { return };
    let (tally, _) = go(&circuit("5 %", 14));
    // The window stands for ten of fourteen seconds. A busy machine misses samples, so times count here and not samples.
    let stood = windows(&tally).iter().take_while(|(_, window)| *window == WINDOW).count();
    let after = &windows(&tally)[stood..];
    assert!(
        stood > 10 && after.first().is_some_and(|(at, _)| *at >= Time::ZERO + Span::from_secs(10)),
        "{:?}",
        windows(&tally)
    );
    // Then H-TCP begins with half of it and rarely grows beyond that, since nearly every window loses a packet.
    let mean = after.iter().map(|(_, window)| window).sum::<f64>() / after.len() as f64;
    assert!(mean <= WINDOW / 2.0, "{after:?}");
}
