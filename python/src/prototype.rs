//! Controllers and queues that are Python classes: they join the registries under their names, and their hooks are called by the simulator.
//! What a class is, `weir/_prototypes.py` finds out.
//!
//! A hook that raises an exception ends its run. The exception travels to `weir.run`, which raises it.

mod built_in;
mod controller;
mod events;
mod packets;
mod queue;
mod values;

use crate::error;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::sync::{Arc, OnceLock};
use weir_base::{Parameters, Prototype, Raised, Random};

/// Adds the classes that hooks take to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<built_in::BuiltIn>()?;
    events::register(module)?;
    packets::register(module)?;
    module.add_function(wrap_pyfunction!(add, module)?)
}

/// Adds a class to the registry of its kind. `own` names the hooks that the class has itself.
#[pyfunction(name = "_add")]
fn add(prototype: &str, class: Bound<'_, PyType>, own: Vec<String>) -> PyResult<()> {
    let prototype: Prototype =
        serde_json::from_str(prototype).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let class = Arc::new(Class {
        class: class.unbind(),
        called: format!("{} {}", prototype.what, prototype.name),
        own,
    });
    let added = match prototype.what.as_str() {
        weir_control::Config::WHAT => {
            let choices = controller::Choices::of(&prototype);
            let make: Box<weir_control::Maker> =
                Box::new(move |parameters, start| controller::make(&class, &choices, parameters, start));
            weir_control::Config::add(prototype, Some(Arc::from(make)))
        }
        _ => {
            let make: Box<weir_queue::Maker> =
                Box::new(move |parameters, link, random| queue::make(&class, parameters, link, random));
            weir_queue::Config::add(prototype, Some(Arc::from(make)))
        }
    };
    added.map_err(|refused| error::error(refused, "choose another name"))
}

/// A class that was added.
pub(crate) struct Class {
    class: Py<PyType>,
    /// Its kind and name: `controller mine`.
    called: String,
    own: Vec<String>,
}

impl Class {
    /// An object of the class.
    fn object<'py>(
        &self,
        py: Python<'py>,
        place: impl IntoPyObject<'py>,
        parameters: &Parameters,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = PyDict::new(py);
        for (name, value) in parameters {
            named.set_item(name, values::of_json(py, value)?)?;
        }
        self.class.bind(py).call((place,), Some(&named))
    }

    /// A hook of an object, if the class has it itself.
    fn hook(&self, object: &Bound<'_, PyAny>, name: &'static str) -> PyResult<Option<Hook>> {
        let has = self.own.iter().any(|own| own == name);
        has.then(|| Ok(Hook { name, call: object.getattr(name)?.unbind() })).transpose()
    }

    /// The result of a hook; its exception ends the run.
    fn ended<T>(&self, result: PyResult<T>) -> T {
        result.unwrap_or_else(|exception| {
            Python::attach(|py| {
                // Python 3.10 has no notes.
                let _ =
                    exception.value(py).call_method1("add_note", (format!("raised by the {}", self.called),));
            });
            Raised::raise(exception)
        })
    }
}

/// A method of an object.
pub(crate) struct Hook {
    name: &'static str,
    call: Py<PyAny>,
}

impl Hook {
    /// What the method returns.
    fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call.bind(py).call1(arguments)
    }

    /// The same as a number of a kind, such as "a number of bytes".
    fn number(&self, py: Python<'_>, kind: &str) -> PyResult<u64> {
        let value = self.call(py, ())?;
        match value.extract() {
            Ok(0) | Err(_) => Err(self.wrong(&value, kind)),
            Ok(number) => Ok(number),
        }
    }

    /// The same, where None stands for none.
    fn optional(&self, py: Python<'_>, kind: &str) -> PyResult<Option<u64>> {
        let value = self.call(py, ())?;
        match value.extract() {
            Ok(Some(0)) | Err(_) => Err(self.wrong(&value, kind)),
            Ok(number) => Ok(number),
        }
    }

    fn truth(&self, py: Python<'_>) -> PyResult<bool> {
        self.call(py, ())?.is_truthy()
    }

    fn wrong(&self, value: &Bound<'_, PyAny>, kind: &str) -> PyErr {
        let shown = value.repr().map_or_else(|_| "an object".into(), |text| text.to_string());
        PyValueError::new_err(format!("{} returned {shown}, expected {kind}, at least 1", self.name))
    }

    /// What a hook `state` reports.
    fn state(&self, py: Python<'_>) -> PyResult<Vec<(String, f64)>> {
        let state = self.call(py, ())?;
        let items = state.call_method0("items")?.try_iter()?;
        let mut all = Vec::new();
        for item in items {
            let (name, value): (String, f64) = item?.extract()?;
            if !value.is_finite() {
                return Err(PyValueError::new_err(format!(
                    "state returned {name}: {value}, expected a finite number"
                )));
            }
            all.push((name, value));
        }
        Ok(all)
    }
}

/// Random numbers of a connection or a link: in Python a `random.Random`, which is made when it is first asked for.
#[derive(Clone)]
pub(crate) struct Stream(Arc<(u64, OnceLock<Py<PyAny>>)>);

impl Stream {
    fn new(random: &mut Random) -> Stream {
        Stream(Arc::new((random.bits(), OnceLock::new())))
    }
}

impl<'py> IntoPyObject<'py> for Stream {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (seed, made) = &*self.0;
        if let Some(made) = made.get() {
            return Ok(made.bind(py).clone());
        }
        let new = py.import("random")?.getattr("Random")?.call1((*seed,))?.unbind();
        Ok(made.get_or_init(|| new).bind(py).clone())
    }
}
