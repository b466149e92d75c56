//! Values of Python as values of a lab.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use toml::Value;

/// Deepest nesting of lists and dicts: far more than a lab has.
const DEEPEST: usize = 16;

/// A text, a number, a truth value, or a list or a dict of such values.
pub(crate) fn value(of: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested(of, 0)
}

fn nested(of: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(PyValueError::new_err(format!("a value of a lab is nested {DEEPEST} times at most")));
    }
    let list = |values: Vec<Bound<'_, PyAny>>| {
        let values = values.iter().map(|value| nested(value, depth + 1));
        values.collect::<PyResult<Vec<_>>>().map(Value::Array)
    };
    // A bool is an int in Python.
    if of.is_instance_of::<PyBool>() {
        Ok(Value::Boolean(of.extract()?))
    } else if of.is_instance_of::<PyInt>() {
        Ok(Value::Integer(of.extract()?))
    } else if of.is_instance_of::<PyFloat>() {
        Ok(Value::Float(of.extract()?))
    } else if of.is_instance_of::<PyString>() {
        Ok(Value::String(of.extract()?))
    } else if let Ok(values) = of.cast::<PyList>() {
        list(values.iter().collect())
    } else if let Ok(values) = of.cast::<PyTuple>() {
        list(values.iter().collect())
    } else if let Ok(table) = of.cast::<PyDict>() {
        let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((key.extract::<String>()?, nested(&value, depth + 1)?))
        };
        table.iter().map(entry).collect::<PyResult<toml::Table>>().map(Value::Table)
    } else {
        let name = of.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "a lab has texts with units, numbers, True and False, lists and dicts; this is of type {name}"
        )))
    }
}
