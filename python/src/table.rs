//! Tables, which other libraries take by Arrow's PyCapsule interface.

use crate::error;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringViewArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::sync::Arc;
use weir_record::{Cells, Frame};

/// A table. Its columns carry their unit in their names: `queue_delay_ms`, `goodput_mbps`, `at_ns`.
///
/// pyarrow.table(t) and polars.DataFrame(t) take it without copies, and pandas.DataFrame.from_arrow(t) takes it too. t["run"] is a
/// column as a list.
#[pyclass(module = "weir", frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// The rows of some frames, which have the same columns; there is at least one frame.
    pub(crate) fn new(frames: Vec<Frame>) -> PyResult<Table> {
        let batches = frames.into_iter().map(batch).collect::<Result<Vec<_>, _>>();
        let mut batches = batches.map_err(|error| error::failed(error.to_string()))?;
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        batches.retain(|batch| batch.num_rows() > 0);
        Ok(Table { schema, batches })
    }
}

fn batch(frame: Frame) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (vec![], vec![]);
    for column in frame.columns {
        let (kind, nullable, array) = array(column.cells)?;
        fields.push(Field::new(column.name, kind, nullable));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// The type of a column, whether cells may be empty, and its values.
fn array(cells: Cells) -> Result<(DataType, bool, ArrayRef), ArrowError> {
    Ok(match cells {
        Cells::Integers(values) => (DataType::UInt64, false, Arc::new(UInt64Array::from(values))),
        Cells::OptionalIntegers(values) => (DataType::UInt64, true, Arc::new(UInt64Array::from(values))),
        Cells::Reals(values) => (DataType::Float64, false, Arc::new(Float64Array::from(values))),
        Cells::OptionalReals(values) => (DataType::Float64, true, Arc::new(Float64Array::from(values))),
        // Each name is stored once: a row has a view of it. Polars has such columns too, and copies those of other kinds.
        Cells::Names(codes, names) => {
            let once = StringViewArray::from_iter_values(names.iter().map(|name| &**name));
            let views: Vec<u128> = codes.iter().map(|&code| once.views()[code as usize]).collect();
            let all = StringViewArray::try_new(views.into(), once.data_buffers().to_vec(), None)?;
            (DataType::Utf8View, false, Arc::new(all))
        }
    })
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// A column as a list; None stands for no value.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        let place = self.schema.index_of(column).map_err(|_| PyKeyError::new_err(column.to_owned()))?;
        let list = PyList::empty(py);
        for batch in &self.batches {
            let array = batch.column(place);
            for row in 0..array.len() {
                list.append(cell(py, array, row)?)?;
            }
        }
        Ok(list)
    }

    /// Arrow's PyCapsule interface: the table as a stream of record batches. A requested schema is not followed.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Arrow's PyCapsule interface: the names and types of the columns.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema);
        let schema = schema.map_err(|error| error::failed(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        format!("<weir.Table, {} rows of {} columns>", self.__len__(), self.schema.fields().len())
    }
}

/// A value of a column; None if there is none.
fn cell<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    let any = array.as_any();
    if let Some(integers) = any.downcast_ref::<UInt64Array>() {
        integers.value(row).into_bound_py_any(py)
    } else if let Some(reals) = any.downcast_ref::<Float64Array>() {
        reals.value(row).into_bound_py_any(py)
    } else if let Some(names) = any.downcast_ref::<StringViewArray>() {
        names.value(row).into_bound_py_any(py)
    } else {
        Err(error::failed("a column of an unknown type"))
    }
}
