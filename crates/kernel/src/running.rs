//! Controls that are in the kernel: which they are, and how their parameters are read and changed.

use crate::parameters::{Parameter, parameters, write_all};
use crate::pinned::is_pinned;
use crate::{CONTROLS, Control, Problem, Running, flows, links};
use libbpf_rs::btf::Btf;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::{MapCore, MapFlags, MapHandle, ProgramType};
use serde_json::{Map, Value};
use std::io;
use weir_control::Config;

/// Whether the kernel lists the control.
pub(crate) fn is_registered(control: &Control) -> bool {
    let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    listed.is_ok_and(|listed| listed.split_whitespace().any(|name| name == control.kernel))
}

/// The parameters of a control that is in the kernel, as the kernel holds them.
struct Section {
    map: MapHandle,
    parameters: Vec<Parameter>,
    values: Vec<u8>,
}

/// Key of the only element of a section's map.
const KEY: [u8; 4] = 0u32.to_ne_bytes();

/// The newest program of a control that is in the kernel, and its map of this name. Older programs may still serve connections that
/// began before the control was loaded again.
///
/// # Errors
/// The control is not there, or this process may not read the kernel's BPF objects.
pub(crate) fn map_of(control: &Control, name: &str) -> Result<(u32, MapHandle), Problem> {
    let prefix = format!("{}_", control.short);
    let maps: Vec<u32> = MapInfoIter::default().filter(|map| *map.name == *name).map(|map| map.id).collect();
    let programs = ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true));
    let newest = programs
        .filter(|program| program.ty == ProgramType::StructOps)
        .filter(|program| program.name.to_string_lossy().starts_with(&prefix))
        .filter_map(|program| Some((program.id, *program.map_ids.iter().find(|id| maps.contains(id))?)))
        .max();
    let (program, map) = newest.ok_or(Problem::NotLoaded(control.kernel))?;
    let map = MapHandle::from_map_id(map).map_err(|error| {
        Problem::failed(format!("cannot read {name} of {}", control.kernel))(io::Error::other(error))
    })?;
    Ok((program, map))
}

impl Section {
    fn find(control: &Control) -> Result<Section, Problem> {
        let failed = |error: libbpf_rs::Error| {
            Problem::failed(format!("cannot read the parameters of {}", control.kernel))(io::Error::other(
                error,
            ))
        };
        let (program, map) = map_of(control, &format!("{}.data", control.short))?;
        let types = Btf::from_prog_id(program).map_err(failed)?;
        let values = map.lookup(&KEY, MapFlags::ANY).map_err(failed)?.unwrap_or_default();
        Ok(Section { parameters: parameters(&types), map, values })
    }
}

/// The parameters of a control that is in the kernel.
///
/// # Errors
/// The control is not there, or this process may not read the kernel's BPF objects.
pub(crate) fn parameters_of(control: &Control) -> Result<Map<String, Value>, Problem> {
    let section = Section::find(control)?;
    let read = |parameter: &Parameter| (parameter.name.clone(), parameter.read(&section.values));
    Ok(section.parameters.iter().map(read).collect())
}

/// Sets all parameters of a control that is in the kernel; connections that use it follow at their next acknowledgement.
///
/// # Errors
/// The control is not there, or a value does not fit.
pub(crate) fn set(control: &Control, config: &Config) -> Result<(), Problem> {
    let mut section = Section::find(control)?;
    write_all(control, config, &section.parameters, &mut section.values)?;
    section.map.update(&KEY, &section.values, MapFlags::ANY).map_err(|error| {
        Problem::failed(format!("cannot set the parameters of {}", control.kernel))(io::Error::other(error))
    })
}

/// Compares the parameters of a control that is in the kernel with the wanted ones.
///
/// # Errors
/// [`Problem::Differs`] if a parameter differs; the control is not there, or does not accept a wanted value.
pub(crate) fn compare(control: &Control, config: &Config) -> Result<(), Problem> {
    let section = Section::find(control)?;
    let mut wanted = section.values.clone();
    write_all(control, config, &section.parameters, &mut wanted)?;
    for parameter in &section.parameters {
        let (has, wanted) = (parameter.read(&section.values), parameter.read(&wanted));
        if has != wanted {
            return Err(Problem::Differs {
                control: control.kernel,
                parameter: parameter.name.clone(),
                has: has.to_string(),
                wanted: wanted.to_string(),
                holders: links::holders(control)?,
            });
        }
    }
    Ok(())
}

/// All controls that are in the kernel, whoever loaded them.
///
/// # Errors
/// This process may not read the kernel's BPF objects.
pub fn running() -> Result<Vec<Running>, Problem> {
    let flows = flows::by_control().map_err(Problem::failed("cannot list connections"))?;
    let look = |control: &'static Control| {
        let flows = flows.get(control.kernel).copied().unwrap_or(0);
        let (parameters, pinned) = (parameters_of(control)?, is_pinned(control));
        Ok(Running { control, parameters, pinned, flows, holders: links::holders(control)? })
    };
    CONTROLS.iter().filter(|control| is_registered(control)).map(look).collect()
}
