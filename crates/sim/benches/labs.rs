//! The simulator's inner loop on the labs of `benches/`, without records: `cargo bench -p weir-sim`. Quote ratios against an
//! earlier commit measured in the same sitting; `make bench` counts whole processes and instructions.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_engine::{Engine, Watch};
use weir_plan::{Lab, Run};
use weir_record::{
    DelaySample, FlowEvent, FlowSample, LinkSample, Message, PacketRecord, Recorder, RttSample, StateSample,
    TransportSample,
};
use weir_sim::Simulator;

/// Counts what the bottleneck sends, and keeps nothing.
#[derive(Default)]
struct Count(u64);

impl Recorder for Count {
    fn link(&mut self, sample: &LinkSample) {
        if sample.link == 0 {
            self.0 += sample.sent.iter().sum::<u64>();
        }
    }
    fn delay(&mut self, _: &DelaySample) {}
    fn flow(&mut self, _: &FlowSample) {}
    fn rtt(&mut self, _: &RttSample) {}
    fn transport(&mut self, _: &TransportSample) {}
    fn state(&mut self, _: &StateSample<&str>) {}
    fn event(&mut self, _: &FlowEvent) {}
    fn message(&mut self, _: &Message) {}
    fn packet(&mut self, _: &PacketRecord) {}
}

fn run_of(lab: &str, duration: &str) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches").join(format!("{lab}.toml"));
    let settings = [format!("run.duration={duration}"), "run.warmup=0 s".into()];
    Lab::load(&path, &settings).expect("the labs of benches/ are sound").runs().remove(0)
}

fn simulate(run: &Run) -> u64 {
    let mut count = Count::default();
    let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
    Simulator.run(run, &mut count, &watch).expect("the labs of benches/ can be simulated");
    count.0
}

fn labs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("labs");
    group.sample_size(10);
    for (lab, duration) in [
        ("dumbbell", "20 s"),
        ("yield", "20 s"),
        ("loss", "10 s"),
        ("long-fat", "10 s"),
        ("many-flows", "2 s"),
    ] {
        let run = run_of(lab, duration);
        group.throughput(Throughput::Elements(simulate(&run)));
        group.bench_function(lab, |bencher| bencher.iter(|| simulate(&run)));
    }
    group.finish();
}

criterion_group!(benches, labs);
criterion_main!(benches);
