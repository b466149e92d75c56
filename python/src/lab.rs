//! Labs: read from a file or a text, changed by settings.

use crate::error;
use crate::value::value;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use weir_plan::Run;

/// The version of the lab format that keys are of.
const FORMAT: i64 = 1;

/// A lab that was read and found sound.
///
/// It describes a network, its traffic, and what varies. Values that have a unit are texts: "20 Mbit/s", "40 ms", "64 KiB".
///
/// Lab(**keys) makes a lab of the keys at the top of a lab file, such as weir.Lab(dumbbell=weir.Dumbbell(rate="20 Mbit/s", rtt="40 ms"),
/// traffic={"bulk": weir.Traffic(cc="cubic")}). Values are objects of weir's classes, dicts, lists and plain values; None stands for a key
/// that is left out, and `format` is 1. Files that the lab names are looked for in the working folder. Raises LabError if the lab is wrong:
/// its lines are those of the text that weir writes of the keys.
#[pyclass(module = "weir")]
#[derive(Clone)]
pub(crate) struct Lab {
    origin: Origin,
    /// Settings as the command line takes them, in the order in which they were made.
    settings: Vec<String>,
    /// The lab with these settings.
    plan: weir_plan::Lab,
}

/// Where a lab comes from. It is read again, with all settings, after each change.
#[derive(Clone)]
enum Origin {
    File(PathBuf),
    Text { text: String, name: String },
}

impl Origin {
    fn read(&self, settings: &[String]) -> PyResult<weir_plan::Lab> {
        match self {
            Origin::File(path) => weir_plan::Lab::load(path, settings),
            Origin::Text { text, name } => weir_plan::Lab::from_str(text, name, Path::new("."), settings),
        }
        .map_err(error::lab)
    }
}

impl Lab {
    /// The plan of the lab as it was read.
    pub(crate) fn plan(&self) -> &weir_plan::Lab {
        &self.plan
    }

    fn new(origin: Origin) -> PyResult<Lab> {
        let plan = origin.read(&[])?;
        Ok(Lab { origin, settings: vec![], plan })
    }

    /// The lab of a result, with its source.
    pub(crate) fn of(plan: &weir_plan::Lab, folder: &Path) -> Lab {
        Lab { origin: Origin::File(folder.join("lab.toml")), settings: vec![], plan: plan.clone() }
    }

    /// The lab as the engines take it. It is read again if it names classes of the program, which may have been replaced. Another lab is not:
    /// the files that it names may be gone.
    pub(crate) fn again(&self) -> PyResult<weir_plan::Lab> {
        match self.plan.runs().iter().flat_map(Run::prototypes).next() {
            None => Ok(self.plan.clone()),
            Some(_) => self.origin.read(&self.settings),
        }
    }

    /// Adds a setting; if it is wrong, the lab stays as it was.
    fn change(&mut self, setting: String) -> PyResult<()> {
        let settings = [&self.settings[..], &[setting]].concat();
        self.plan = self.origin.read(&settings)?;
        self.settings = settings;
        Ok(())
    }
}

#[pymethods]
impl Lab {
    #[new]
    #[pyo3(signature = (**keys))]
    fn made(keys: Option<&Bound<'_, PyDict>>) -> PyResult<Lab> {
        let mut table = Table::from_iter([("format".to_owned(), Value::Integer(FORMAT))]);
        for (key, given) in keys.into_iter().flatten().filter(|(_, given)| !given.is_none()) {
            table.insert(key.extract()?, value(&given)?);
        }
        let text = toml::to_string(&table).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Lab::new(Origin::Text { text, name: "lab".into() })
    }

    /// Reads a lab file and what it extends.
    ///
    /// Raises LabError if the lab is wrong or cannot be read.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Lab> {
        Lab::new(Origin::File(path))
    }

    /// Reads a lab from a text in TOML. `name` is the lab's name if the text gives none; files that the text extends are looked
    /// for in the working folder.
    ///
    /// Raises LabError if the lab is wrong.
    #[staticmethod]
    #[pyo3(signature = (text, name = "lab"))]
    fn parse(text: String, name: &str) -> PyResult<Lab> {
        Lab::new(Origin::Text { text, name: name.into() })
    }

    /// Reads a lab file with settings as the command line takes them: PATH=VALUE.
    #[staticmethod]
    fn _read(path: PathBuf, settings: Vec<String>) -> PyResult<Lab> {
        let origin = Origin::File(path);
        let plan = origin.read(&settings)?;
        Ok(Lab { origin, settings, plan })
    }

    /// The files that the lab's text names: the path of each, relative to the text, and its content.
    fn _attachments(&self) -> Vec<(String, Cow<'_, [u8]>)> {
        self.plan.attachments().map(|(path, bytes)| (path, Cow::Borrowed(bytes))).collect()
    }

    /// Sets the value at a path, such as lab.set("dumbbell.rate", "20 Mbit/s"), and returns the lab. A level that varies this path
    /// is taken out of the tree.
    ///
    /// Raises LabError if the lab would be wrong; it stays as it was then.
    fn set<'py>(
        mut slf: PyRefMut<'py, Self>,
        path: &str,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        let value = self::value(value)?;
        slf.change(format!("{path}={value}"))?;
        Ok(slf)
    }

    /// Varies the value at a path, such as lab.vary("dumbbell.queue", ["tail-drop", "pie"]), and returns the lab. With a dict of
    /// labels, each with its settings, `path` is the name of the level.
    ///
    /// Raises LabError if the lab would be wrong; it stays as it was then.
    fn vary<'py>(
        mut slf: PyRefMut<'py, Self>,
        path: &str,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        let (level, values) = (Value::String(path.into()), value(values)?);
        slf.change(format!("vary.{level}={values}"))?;
        Ok(slf)
    }

    /// The lab as it runs, as one text in TOML: with all that it extends and all settings.
    fn toml(&self) -> &str {
        self.plan.source()
    }

    /// The lab's name: letters, digits, `-` and `_`.
    #[getter]
    fn name(&self) -> &str {
        self.plan.name()
    }

    /// What the lab shows, in a sentence; None if it does not say.
    #[getter]
    fn title(&self) -> Option<&str> {
        self.plan.title()
    }

    /// Number of runs of the lab's tree on one engine.
    #[getter]
    fn run_count(&self) -> usize {
        self.plan.run_count()
    }

    /// For `copy.copy`: a lab that changes apart from this one.
    fn __copy__(&self) -> Lab {
        self.clone()
    }

    fn __repr__(&self) -> String {
        format!("<weir.Lab {:?}, {} runs>", self.plan.name(), self.plan.run_count())
    }
}
