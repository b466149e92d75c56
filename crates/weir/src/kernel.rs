//! `weir kernel`: weir's controls in the running kernel.

use crate::cli::KernelAction;
use crate::failure::Failure;
use crate::{print, print_json, say};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use weir_kernel::{CONTROLS, Control, Group, Holder, Problem, Relabelling, Running};

/// Runs the subcommand.
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
            "load the other controls with separate commands",
        ));
    }
    names.iter().try_for_each(|name| {
        let control = find(name)?;
        note(weir_kernel::load(control, &parameters(control, set)?, ect1)?);
        Ok(())
    })
}

fn unload(names: &[String]) -> Result<(), Failure> {
    let one = |name: &str| -> Result<(), Failure> {
        note(weir_kernel::unload(name)?);
        Ok(())
    };
    if !names.is_empty() {
        return names.iter().try_for_each(|name| one(name));
    }
    let pinned = weir_kernel::running()?.into_iter().filter(|running| running.pinned);
    pinned.map(|running| running.control.name).try_for_each(one)
}

/// Prints notes for the user, apart from the data on standard output.
fn note(notes: Vec<String>) {
    notes.iter().for_each(|note| say(&format!("note: {note}")));
}

fn use_for(name: &str, set: &[String], ect1: &[String], command: &[OsString]) -> Result<(), Failure> {
    let control = find(name)?;
    // The control is held until the command has ended.
    let held = weir_kernel::hold(&weir_kernel::configure(control, parameters(control, set)?)?)?;
    let relabelling = (!ect1.is_empty()).then(|| Relabelling::new(control, ect1)).transpose()?;
    let group = Group::new(&held, relabelling.as_ref())?;
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments);
    let status = group.run(command)?;
    // As in shells: 128 plus the signal that ended the command.
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    if code == 0 { Ok(()) } else { Err(Failure::quiet(u8::try_from(code).unwrap_or(1))) }
}

fn find(name: &str) -> Result<&'static Control, Failure> {
    weir_kernel::control(name).ok_or_else(|| Problem::Unknown(name.to_owned()).into())
}

/// The parameters that are to be set, by name.
fn parameters(control: &Control, set: &[String]) -> Result<Map<String, Value>, Failure> {
    let parameter = |change: &String| match change.split_once('=') {
        Some((name, text)) => {
            Ok((name.to_owned(), serde_json::from_str(text).unwrap_or_else(|_| text.into())))
        }
        None => Err(Failure::bad_input(
            format!("--set {change}: expected PARAMETER=VALUE"),
            format!("`weir describe {}` names its parameters", control.name),
        )),
    };
    set.iter().map(parameter).collect()
}

fn list(as_json: bool) -> Result<(), Failure> {
    let running = weir_kernel::running()?;
    let of = |control: &Control| running.iter().find(|running| running.control == control);
    if as_json {
        let all = CONTROLS.iter().map(|control| {
            let state = of(control).map(|running| {
                let Running { parameters, pinned, flows, holders, .. } = running;
                let holders: Vec<Value> = holders
                    .iter()
                    .map(|holder| json!({ "process": holder.process, "command": holder.command, "pin": holder.pin }))
                    .collect();
                json!({ "parameters": parameters, "pinned": pinned, "holders": holders, "flows": flows })
            });
            json!({ "name": control.name, "kernel": control.kernel, "loaded": state })
        });
        return print_json(&all.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for control in CONTROLS {
        let state = of(control).map_or_else(|| "-".to_owned(), state);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:16}  {:15}  {state}", control.name, control.kernel);
    }
    print(&text)
}

/// A loaded control in words.
fn state(running: &Running) -> String {
    let holders: Vec<String> = running.holders.iter().map(Holder::to_string).collect();
    let how = match (running.pinned, holders.is_empty()) {
        (true, true) => "loaded".to_owned(),
        (true, false) => format!("loaded, and used by {}", holders.join(", ")),
        (false, true) => "held by a process that cannot be seen from here".to_owned(),
        (false, false) => format!("held by {}", holders.join(", ")),
    };
    let parameters: Vec<String> =
        running.parameters.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    let flows = if running.flows == 1 { "1 flow".to_owned() } else { format!("{} flows", running.flows) };
    format!("{how}; {flows} here; {}", parameters.join(" "))
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
