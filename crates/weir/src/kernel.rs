//! `weir kernel`: weir's controls in the running kernel.

use crate::cli::KernelAction;
use crate::failure::Failure;
use crate::{print, print_json};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use weir_control::Config;
use weir_kernel::{CONTROLS, Control, Group, Problem, Relabelling, Running};

/// Does what is asked.
pub(crate) fn kernel(action: &KernelAction) -> Result<(), Failure> {
    match action {
        KernelAction::Load { names, set, ect1 } => load(names, set, ect1),
        KernelAction::Unload { names } => unload(names),
        KernelAction::List { json } => list(*json),
        KernelAction::Use { name, set, ect1, command } => use_for(name, set, ect1, command),
    }
}

fn load(names: &[String], set: &[String], ect1: &[String]) -> Result<(), Failure> {
    if names.len() > 1 && !(set.is_empty() && ect1.is_empty()) {
        return Err(Failure::bad_input(
            "--set and --ect1 are for one control at a time",
            "load the others with a command of their own",
        ));
    }
    let running = weir_kernel::running()?;
    for name in names {
        let control = find(name)?;
        let relabelling = relabel(control, ect1)?;
        match running.iter().find(|running| running.control == control) {
            Some(_) if set.is_empty() && ect1.is_empty() => {
                return Err(Problem::Loaded(control.kernel).into());
            }
            Some(running) => weir_kernel::set(&configure(control, running.parameters.clone(), set)?)?,
            None => weir_kernel::load(&configure(control, Map::new(), set)?)?.pin()?,
        }
        if let Some(relabelling) = relabelling {
            relabelling.pin()?;
        }
    }
    Ok(())
}

fn unload(names: &[String]) -> Result<(), Failure> {
    if !names.is_empty() {
        return Ok(names.iter().try_for_each(|name| weir_kernel::unload(name))?);
    }
    let pinned = weir_kernel::running()?.into_iter().filter(|running| running.pinned);
    Ok(pinned.map(|running| running.control.name).try_for_each(weir_kernel::unload)?)
}

fn use_for(name: &str, set: &[String], ect1: &[String], command: &[OsString]) -> Result<(), Failure> {
    let control = find(name)?;
    // Held until the command has ended, where it was not there already.
    let _held = weir_kernel::hold(&configure(control, Map::new(), set)?)?;
    let _relabelling = relabel(control, ect1)?;
    let group = Group::new(control)?;
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments);
    let status = group.run(command)?;
    // As shells have it: 128 and the signal that ended it.
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    if code == 0 { Ok(()) } else { Err(Failure::quiet(u8::try_from(code).unwrap_or(1))) }
}

fn relabel(control: &'static Control, devices: &[String]) -> Result<Option<Relabelling>, Problem> {
    (!devices.is_empty()).then(|| Relabelling::new(control, devices)).transpose()
}

fn find(name: &str) -> Result<&'static Control, Failure> {
    weir_kernel::control(name).ok_or_else(|| Problem::Unknown(name.to_owned()).into())
}

/// A controller with these parameters, some of them changed.
fn configure(
    control: &Control,
    mut parameters: Map<String, Value>,
    set: &[String],
) -> Result<Config, Failure> {
    let help = || format!("`weir describe {}` names its parameters", control.name);
    for change in set {
        let Some((name, text)) = change.split_once('=') else {
            return Err(Failure::bad_input(format!("--set {change}: expected PARAMETER=VALUE"), help()));
        };
        let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
        parameters.insert(name.to_owned(), value);
    }
    Config::with_parameters(control.name, Value::Object(parameters))
        .map_err(|error| Failure::bad_input(error, help()))
}

fn list(as_json: bool) -> Result<(), Failure> {
    let running = weir_kernel::running()?;
    let of = |control: &Control| running.iter().find(|running| running.control == control);
    if as_json {
        let all = CONTROLS.iter().map(|control| {
            let state = of(control).map(|running| {
                let Running { parameters, pinned, flows, .. } = running;
                json!({ "parameters": parameters, "pinned": pinned, "flows": flows })
            });
            json!({ "name": control.name, "kernel": control.kernel, "loaded": state })
        });
        return print_json(&all.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for control in CONTROLS {
        let state = of(control).map_or_else(|| "-".to_owned(), state);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:14}  {:15}  {state}", control.name, control.kernel);
    }
    print(&text)
}

/// A loaded control in words.
fn state(running: &Running) -> String {
    let how = if running.pinned { "loaded" } else { "loaded, held by a process" };
    let parameters: Vec<String> =
        running.parameters.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    let flows = if running.flows == 1 { "1 flow".to_owned() } else { format!("{} flows", running.flows) };
    format!("{how}; {flows} here; {}", parameters.join(" "))
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
