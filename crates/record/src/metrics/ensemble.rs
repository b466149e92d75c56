//! How closely together the frames of an ensemble arrive: the coordination dissertation's measures (section 6.6.2). They
//! exist only for groups that send ensembles.

use super::value::{Value, ratio};
use super::{Column, Flows, Level, Metric, Plot, Reduction};
use crate::types::MessageKind;
use weir_base::Time;

impl Flows<'_> {
    /// When each ensemble was whole, in order of time.
    fn ensembles(&self) -> Vec<Time> {
        let mut all: Vec<_> = self.messages().flat_map(|sums| sums.ensembles.iter().copied()).collect();
        all.sort_unstable();
        all
    }
}

const SOURCE: &str = "Ott, An Open Architecture for Transport-level Coordination, 2005, section 6.6.2";

family! {
    ASYNCHRONY {
        name: "completion_asynchrony_ms",
        title: "Completion asynchrony",
        unit: "ms",
        of: &[Level::Group],
        definition: "Time from the completion of an ensemble's first frame to the completion of its last one, of ensembles that were completed in the window. A frame is complete when its last byte has been read.",
        source: SOURCE,
        columns: &[Column::new(10, "asynchrony", "completion asynchrony")],
        plot: Some(Plot { place: 8, key: "asynchrony", title: "Completion asynchrony" }),
        reduction: Reduction::Took(MessageKind::Ensemble),
    }

    STALL {
        name: "stall_time_ms",
        title: "Stall time",
        unit: "ms",
        of: &[Level::Group, Level::Flow],
        definition: "Time from the read of a frame's last byte to the read of the first byte of the same flow's next frame, of frames of ensembles that began to arrive in the window. The ordinary gap between packets is included.",
        source: SOURCE,
        plot: Some(Plot { place: 9, key: "stalls", title: "Stall time" }),
        reduction: Reduction::Took(MessageKind::Stall),
    }

    DELAY {
        name: "ensemble_delay_ms",
        title: "Delay of an ensemble's frames",
        unit: "ms",
        of: &[Level::Group, Level::Flow],
        definition: "Time from the return of the write of a frame, when its last byte is in the send buffer, to the read of that byte, of frames of ensembles that were completed in the window.",
        source: SOURCE,
        plot: Some(Plot { place: 7, key: "ensembles", title: "Frame delay of ensembles" }),
        reduction: Reduction::Took(MessageKind::Part),
    }

    PER_SECOND {
        name: "ensembles_per_s",
        title: "Ensembles per second",
        unit: "1/s",
        of: &[Level::Group],
        definition: "Ensembles that were completed in the window, over the same time as goodput.",
        source: SOURCE,
        columns: &[Column::new(9, "ensembles", "ensembles")],
        reduction: Reduction::Messages(|f| {
            let whole = f.ensembles().len();
            let span = f.active().filter(|_| whole > 0);
            Value::from(span.and_then(|span| ratio(whole as f64, span.as_secs_f64())))
        }),
    }

    JITTER {
        name: "ensemble_jitter_ms",
        title: "Jitter of ensembles",
        unit: "ms",
        of: &[Level::Group],
        definition: "Standard deviation of the time from the completion of one ensemble to that of the next, of ensembles that were completed in the window. Undefined for fewer than three ensembles.",
        source: SOURCE,
        reduction: Reduction::Messages(|f| {
            let whole = f.ensembles();
            let between: Vec<f64> =
                whole.windows(2).map(|pair| pair[1].since(pair[0]).as_millis_f64()).collect();
            let count = between.len() as f64;
            let mean = between.iter().sum::<f64>() / count;
            let squares: f64 = between.iter().map(|one| (one - mean) * (one - mean)).sum();
            Value::from((between.len() >= 2).then(|| libm::sqrt(squares / (count - 1.0))))
        }),
    }
}
