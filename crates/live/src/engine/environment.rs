//! What a live run's results keep of the machine and of the run's course.

use super::{Session, Surroundings};
use crate::apps::AppsReport;
use crate::lateness::Limits;
use crate::pump::PumpReport;
use serde_json::{Map, Value, json};
use weir_base::{Histogram, Span};
use weir_engine::cores;
use weir_linux::clock::Scheduling;
use weir_linux::process::time_of;

impl Session<'_> {
    pub(super) fn environment(
        &self,
        pumped: &PumpReport,
        driven: &AppsReport,
        around: &Surroundings,
        limits: &Limits,
    ) -> Map<String, Value> {
        let uname = rustix::system::uname();
        let mut environment = Map::new();
        let mut put = |name: &str, value: Value| environment.insert(name.to_owned(), value);
        put("kernel", uname.release().to_string_lossy().into());
        put("processors", cores().into());
        put("scheduling", pumped.scheduling.map_or("", Scheduling::name).into());
        put("lasted_s", around.lasted.as_secs_f64().into());
        put("memory_locked", around.memory_locked.into());
        put("lateness_us", spread(&pumped.lateness.releases));
        put("lateness_limit_us", (limits.p99.as_nanos() as f64 / 1e3).into());
        put("stalls", pumped.lateness.stalls().into());
        put("stalled_ms", pumped.lateness.stalled().as_millis_f64().into());
        put("ring_wait_us", spread(&pumped.ring_wait));
        put(
            "pump_core_share",
            json!({ "mean": round(pumped.mean), "peak_100ms": round(pumped.peak), "rests": pumped.rests }),
        );
        if let Some(usage) = around.usage {
            put("foreign_load_cores", round(usage.foreign));
            put("steal_cores", round(usage.steal));
        }
        if let Some(between) = &self.between {
            let seconds = |number| time_of(between.daemons.process(number)).as_secs_f64();
            let each = between.dissolved.sites.iter().enumerate();
            let used = each.map(|(number, site)| (site.name.clone(), seconds(number).into()));
            put("overlay_node_cpu_s", Value::Object(used.collect()));
        }
        put("ignored_frames", pumped.ignored.into());
        put("drops_outside", Value::Object(around.drops.clone()));
        if !around.ended.is_empty() {
            let how = around.ended.iter().map(|ended| (ended.flow.clone(), ended.how.clone().into()));
            put("commands", Value::Object(how.collect()));
        }
        put("ring_drops", pumped.ring_drops.into());
        put("refused_sends", pumped.refused.into());
        if !around.shaped.is_empty() {
            put("shaped_packets", Value::Object(around.shaped.clone()));
        }
        put("clock_steps_ms", pumped.clock_steps.as_millis_f64().into());
        put("tcp_info_every_periods", driven.sampled_every.into());
        put("applications_waited_ms", driven.waited.map(Span::as_millis_f64).into());
        put("applications_paused", driven.pauses.record());
        if driven.gap_error.count() > 0 {
            put("datagram_gap_error_us", spread(&driven.gap_error));
        }
        put("loaded_controls", self.controls.names().into());
        put("sysctls", Value::Object(self.testbed.effective_settings(self.run)));
        environment
    }
}

/// The usual percentiles of a histogram, in microseconds.
fn spread(histogram: &Histogram) -> Value {
    let micros = |span: Option<Span>| span.map(|span| span.as_nanos() as f64 / 1e3);
    json!({
        "count": histogram.count(),
        "mean": micros(histogram.mean()),
        "p50": micros(histogram.percentile(0.5)),
        "p99": micros(histogram.percentile(0.99)),
        "p99.9": micros(histogram.percentile(0.999)),
        "max": micros(histogram.max()),
    })
}

fn round(share: f64) -> Value {
    ((share * 1000.0).round() / 1000.0).into()
}
