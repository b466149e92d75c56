//! `weir plot`: a metric of a result as a file, for papers and slides, without a browser.

use crate::cli::{PlotArgs, PlotKind};
use crate::failure::Failure;
use crate::print;
use crate::results::tell;
use std::fs;
use weir_engine::Results;
use weir_report::plot::{Figure, Kind, PlotError, Wanted};

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Failure {
        match error {
            PlotError::Asked { message, help } => Failure::bad_input(message, help),
            PlotError::Records(error) => error.into(),
            PlotError::Drawing(_) => Failure::failed(error.to_string()),
        }
    }
}

/// Draws the plot and writes its file.
pub(crate) fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let ending = args.output.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if !["svg", "png"].contains(&ending) {
        return Err(Failure::bad_input(
            format!("{} ends neither in .svg nor in .png", args.output.display()),
            "the ending of -o FILE selects the format of the plot",
        ));
    }
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
        },
        metric: args.metric.clone(),
        of: args.of.clone(),
        by: args.by.clone(),
        along: args.along.clone(),
        only: only.collect::<Result<_, _>>()?,
        log: args.log,
    };
    let results = Results::open(&args.folder)?;
    tell(&results);
    let figure = Figure::of(&results, &wanted)?;
    let file = match ending {
        "svg" => figure.svg()?.into_bytes(),
        _ => figure.png()?,
    };
    fs::write(&args.output, file).map_err(|error| {
        let message = format!("{}: {error}", args.output.display());
        Failure::bad_input(message, "give -o a file in a folder that exists and that you can write")
    })?;
    print(&format!("{}\n", args.output.display()))
}
