//! Plots as files, in the format that the name of the file asks for.

use crate::failure::Failure;
use std::fs;
use std::path::Path;
use weir_report::plot::{Figure, PlotError};

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Failure {
        match error {
            PlotError::Asked { message, help } => Failure::bad_input(message, help),
            PlotError::Records(error) => error.into(),
            PlotError::Drawing(_) => Failure::failed(error.to_string()),
        }
    }
}

/// The format of a file with a plot.
pub(crate) enum Format {
    Svg,
    Png,
}

impl Format {
    /// The format that the name of a file asks for.
    pub(crate) fn of(file: &Path) -> Result<Format, Failure> {
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Format::Svg),
            Some("png") => Ok(Format::Png),
            _ => Err(Failure::bad_input(
                format!("{} ends neither in .svg nor in .png", file.display()),
                "the ending of the file's name selects the format of the plot",
            )),
        }
    }

    /// Draws a figure into a file.
    pub(crate) fn write(&self, figure: &Figure, file: &Path) -> Result<(), Failure> {
        let drawn = match self {
            Format::Svg => figure.svg()?.into_bytes(),
            Format::Png => figure.png()?,
        };
        fs::write(file, drawn).map_err(|error| {
            let message = format!("{}: {error}", file.display());
            Failure::bad_input(message, "name a file in a folder that exists and that you can write")
        })
    }
}
