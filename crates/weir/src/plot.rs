//! `weir plot`: a metric of a result as a file, for papers and slides, without a browser.

use crate::cli::{PlotArgs, PlotKind};
use crate::failure::Failure;
use crate::figure::Format;
use crate::print;
use crate::results::tell;
use weir_engine::Results;
use weir_report::plot::{Figure, Kind, Wanted};

/// Draws the plot and writes its file.
pub(crate) fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let format = Format::of(&args.output)?;
    let only = args.only.iter().map(|text| {
        let parts = text.split_once('=').map(|(level, label)| (level.into(), label.into()));
        parts.ok_or_else(|| {
            Failure::bad_input(format!("--only {text} has no `=`"), "write --only LEVEL=LABEL")
        })
    });
    let wanted = Wanted {
        kind: match args.kind {
            PlotKind::Time => Kind::Time,
            PlotKind::Cdf => Kind::Cdf,
            PlotKind::Bars => Kind::Bars,
            PlotKind::Lines => Kind::Lines,
            PlotKind::Heat => Kind::Heat,
            PlotKind::DelayThroughput => Kind::DelayThroughput,
        },
        metric: args.metric.clone(),
        of: args.of.clone(),
        by: args.by.clone(),
        along: args.along.clone(),
        only: only.collect::<Result<_, _>>()?,
        mean_over: args.mean_over.clone(),
        log: args.log,
        title: args.title.clone(),
        size: args.size,
    };
    let results = Results::open(&args.folder)?;
    tell(&results);
    let figure = Figure::of(&results, &wanted)?;
    format.write(&figure, &args.output)?;
    print(&format!("{}\n", args.output.display()))
}
