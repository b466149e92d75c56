//! A ready test: its lab, what a user may choose of it, and its verdict.

use crate::cells::{self, Cell, Numbers};
use crate::options::{Options, QueueChoice};
use crate::picture::Picture;
use serde::Serialize;
use std::path::Path;
use weir_plan::{Diagnostics, Lab};
use weir_record::Summary;

/// A ready test.
#[derive(Debug)]
pub struct Test {
    /// Its name.
    pub name: &'static str,
    /// The question that it answers.
    pub about: &'static str,
    /// Its lab, as it is shipped in `labs/tests`.
    pub text: &'static str,
    /// The groups that all have the controller that a user chooses.
    pub(crate) groups: &'static [&'static str],
    /// The queues that it compares unless the user names others; none if the lab's own queue is part of the question.
    pub(crate) queues: &'static [&'static str],
    /// The controllers that it compares unless the user names others.
    pub(crate) controllers: &'static [&'static str],
    /// Settings beyond those of the line, the queues and the controllers.
    pub(crate) settings: fn(&Options) -> Vec<String>,
    /// Its pictures.
    pub(crate) pictures: fn(&Options) -> Vec<Picture>,
    /// The numbers of a cell.
    pub(crate) numbers: fn(&Cell<'_>) -> Numbers,
    /// Two sentences about the cells.
    pub(crate) sentences: fn(&[Numbers]) -> [String; 2],
}

/// The answer of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The test's name.
    pub test: &'static str,
    /// The answer in two sentences.
    pub sentences: [String; 2],
    /// The numbers of each cell, means over its repeats.
    pub cells: Vec<Numbers>,
}

impl Test {
    /// The choices with the test's own in place of those that the user left out.
    ///
    /// # Errors
    /// The user chooses queues where the queue is the question.
    pub fn complete(&self, mut options: Options) -> Result<Options, String> {
        if self.queues.is_empty() && !options.queues.is_empty() {
            return Err(format!("the test {} has queues of its own, so --queue is not for it", self.name));
        }
        if options.queues.is_empty() {
            let read = |text: &&str| text.parse::<QueueChoice>();
            options.queues = self.queues.iter().map(read).collect::<Result<_, _>>()?;
        }
        if options.controllers.is_empty() {
            options.controllers = self.controllers.iter().map(|cc| (*cc).to_owned()).collect();
        }
        Ok(options)
    }

    /// The lab for these choices, which [`Test::complete`] has completed.
    ///
    /// # Errors
    /// A choice that the lab refuses, an unknown controller or a wrong parameter of a queue for example.
    pub fn lab(&self, options: &Options) -> Result<Lab, Diagnostics> {
        let mut settings = options.line();
        settings.extend(Options::queue(&options.queues));
        settings.extend(Options::controller(&options.controllers, self.groups));
        settings.extend((self.settings)(options));
        Lab::from_str(self.text, &format!("{}.toml", self.name), Path::new("."), &settings)
    }

    /// The pictures of the results for these choices.
    pub fn pictures(&self, options: &Options) -> Vec<Picture> {
        (self.pictures)(options)
    }

    /// The verdict about the runs of its lab. Invalid runs do not count where a cell has valid ones.
    pub fn verdict(&self, summary: &Summary) -> Verdict {
        let numbers: Vec<Numbers> = cells::of(summary).iter().map(|cell| (self.numbers)(cell)).collect();
        Verdict { test: self.name, sentences: (self.sentences)(&numbers), cells: numbers }
    }
}
