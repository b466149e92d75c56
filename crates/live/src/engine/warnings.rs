//! What a reader of a live run's results should know.

use crate::apps::AppsReport;
use crate::load::Usage;
use crate::pump::PumpReport;
use serde_json::json;
use weir_base::Span;
use weir_linux::clock::Scheduling;
use weir_plan::{Change, Run};

/// Foreign load, in cores, above which the outcome carries a warning.
const NOTEWORTHY_LOAD: f64 = 0.25;

/// A line for each change of a link that was asked for during the run.
pub(super) fn changed(run: &Run, pumped: &PumpReport) -> Vec<String> {
    let told = |(link, change): &(usize, Change)| {
        let (name, at) = (&run.network.links[*link].name, change.at.as_secs_f64());
        let mut to = json!(change);
        if let Some(all) = to.as_object_mut() {
            all.retain(|key, value| key != "at" && !value.is_null());
        }
        format!("the link {name} was changed at {at:.3} s, from outside the lab, to {to}")
    };
    pumped.changes.iter().map(told).collect()
}

/// A line for whatever may have disturbed a run, or limited it.
pub(super) fn warnings(pumped: &PumpReport, driven: &AppsReport, usage: Option<Usage>) -> Vec<String> {
    let mut warnings = driven.troubles.clone();
    if pumped.scheduling == Some(Scheduling::Ordinary) {
        warnings.push("no real-time scheduling (it needs root or CAP_SYS_NICE): releases are later when other programs are busy".into());
    }
    if pumped.rests > 0 {
        warnings.push(format!(
            "the pump reached 90 % of a core and paused {} times with packets due: this load is at the limit of this machine",
            pumped.rests
        ));
    }
    if pumped.relabelled > 0 {
        warnings.push(format!(
            "the kernel's TCP sends ECT(0): {} packets were relabelled ECT(1) as they left their hosts",
            pumped.relabelled
        ));
    }
    if pumped.clock_steps > Span::ZERO {
        warnings.push(format!("the wall clock was stepped by {} during the run", pumped.clock_steps));
    }
    if let Some(usage) = usage.filter(|usage| usage.foreign + usage.steal > NOTEWORTHY_LOAD) {
        warnings.push(format!(
            "other programs used {:.2} cores during the run, and the hypervisor took {:.2}",
            usage.foreign, usage.steal
        ));
    }
    if driven.sampled_every > 1 {
        warnings.push(format!(
            "at times tcp_info was sampled only every {} periods, to stay within 1 % of a core",
            driven.sampled_every
        ));
    }
    warnings
}
