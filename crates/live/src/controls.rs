//! The congestion controls of a run: the kernel's own if it has one of that name, otherwise weir's kernel form, loaded for the
//! run and removed after it.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use weir_control::{Config, Feedback};
use weir_engine::EngineError;
use weir_kernel::{Held, Problem};
use weir_linux::namespace::sysctl;
use weir_plan::{Group, Run};
use weir_workload::Role;

/// The controller whose receiver echoes marks as in RFC 8257.
const ECHOES_MARKS: &str = "dctcp";

/// The controllers that Linux has and weir has no kernel form of (net/ipv4/Kconfig).
const STOCK: [&str; 3] = ["newreno", "cubic", "bbr"];

/// A controller's name in this kernel.
pub(crate) fn kernel_name(controller: &str) -> &'static str {
    let own = own_name(controller);
    match weir_kernel::control(controller) {
        Some(control) if !is_native(own) => control.kernel,
        _ => own,
    }
}

/// The controller of a group's receiving hosts, by its name in labs; `None` if they send no data and echo marks as in RFC 3168.
/// A client sends its requests with the group's controller, as in the simulator, unless the lab asks for DCTCP's feedback and
/// that controller's kernel form does not give it.
pub(crate) fn receiving(group: &Group) -> Option<&str> {
    let settings = group.tcp()?;
    let (_, feedback) = settings.cc.signals();
    let asks = group.workload.role() == Role::RequestResponse;
    match settings.feedback {
        Feedback::Dctcp if !asks || feedback == Feedback::Classic => Some(ECHOES_MARKS),
        _ => asks.then(|| settings.cc.name()),
    }
}

/// The name that the kernel's own form of a controller has.
fn own_name(controller: &str) -> &'static str {
    match Config::members().iter().find(|member| member.name == controller) {
        Some(member) if member.name == "newreno" => "reno",
        Some(member) => member.name,
        None => "",
    }
}

/// Whether the kernel has the control without weir. The list is read once: controls that appear later are weir's.
fn is_native(name: &str) -> bool {
    static NATIVE: OnceLock<String> = OnceLock::new();
    let native = NATIVE.get_or_init(|| sysctl("ipv4.tcp_available_congestion_control").unwrap_or_default());
    native.split(' ').any(|native| native == name)
}

/// The controls that this process has loaded into the kernel, shared by its runs.
static SHARED: Mutex<Vec<Shared>> = Mutex::new(vec![]);
/// Signals that a control was removed.
static FREED: Condvar = Condvar::new();

/// A control and how many runs use it.
#[derive(Debug)]
struct Shared {
    config: Config,
    held: Held,
    runs: usize,
}

fn shared() -> MutexGuard<'static, Vec<Shared>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Weir's controls in the kernel, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    used: Vec<Config>,
    names: Vec<&'static str>,
}

impl Controls {
    /// Tries what [`Controls::load`] will do. A control that was loaded once in this process is not tried again.
    ///
    /// # Errors
    /// As [`Controls::load`].
    pub(crate) fn check(run: &Run) -> Result<(), EngineError> {
        static SEEN: Mutex<Vec<Config>> = Mutex::new(vec![]);
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        for (group, config) in wanted(run)? {
            if !seen.contains(&config) {
                weir_kernel::hold(&config).map_err(|problem| refused(group, &config, &problem))?;
                seen.push(config);
            }
        }
        Ok(())
    }

    /// Loads the controls that a run needs and the kernel lacks. A name has one set of parameters in the kernel: while another
    /// run uses the name with different ones, this waits.
    ///
    /// # Errors
    /// A controller has no kernel form, takes other parameters than the run has, or cannot be loaded.
    pub(crate) fn load(run: &Run) -> Result<Controls, EngineError> {
        let wanted = wanted(run)?;
        let in_the_way = |shared: &mut Vec<Shared>| {
            let other = |config: &Config| {
                shared.iter().any(|it| it.config.name() == config.name() && it.config != *config)
            };
            wanted.iter().any(|(_, config)| other(config))
        };
        let mut shared = FREED.wait_while(shared(), in_the_way).unwrap_or_else(PoisonError::into_inner);
        let mut controls = Controls::default();
        for (group, config) in wanted {
            let failure = controls.share(&mut shared, &config).err();
            if let Some(problem) = failure {
                // Dropping `controls` releases the controls taken so far, and needs the lock.
                drop(shared);
                return Err(refused(group, &config, &problem));
            }
        }
        Ok(controls)
    }

    fn share(&mut self, shared: &mut Vec<Shared>, config: &Config) -> Result<(), Problem> {
        let place = match shared.iter().position(|it| it.config == *config) {
            Some(place) => place,
            None => {
                let held = weir_kernel::hold(config)?;
                shared.push(Shared { config: config.clone(), held, runs: 0 });
                shared.len() - 1
            }
        };
        let it = &mut shared[place];
        it.runs += 1;
        self.used.push(config.clone());
        self.names.push(it.held.control().kernel);
        Ok(())
    }

    /// Their names in the kernel.
    pub(crate) fn names(&self) -> &[&'static str] {
        &self.names
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        let mut shared = shared();
        for config in &self.used {
            if let Some(it) = shared.iter_mut().find(|it| it.config == *config) {
                it.runs -= 1;
            }
        }
        shared.retain(|it| it.runs > 0);
        drop(shared);
        FREED.notify_all();
    }
}

/// The controllers that the kernel lacks, each with a group that asks for it.
fn wanted(run: &Run) -> Result<Vec<(&Group, Config)>, EngineError> {
    let mut wanted: Vec<(&Group, Config)> = vec![];
    for (group, settings) in run.groups.iter().filter_map(|group| Some((group, group.tcp()?))) {
        let config = &settings.cc;
        let own = own_name(config.name());
        if is_native(own) {
            let plain = config.name().parse();
            if plain.as_ref() != Ok(config) {
                return Err(unable(
                    format!("group {}: the kernel's {own} takes no parameters", group.name),
                    "leave the parameters at their defaults, or use `--on sim`",
                ));
            }
            continue;
        }
        match wanted.iter().find(|(_, other)| other.name() == config.name()) {
            None => wanted.push((group, config.clone())),
            Some((_, other)) if other == config => {}
            Some((other, _)) => {
                return Err(unable(
                    format!(
                        "groups {} and {} give {} different parameters, and a kernel has only one control of that name",
                        other.name,
                        group.name,
                        config.name()
                    ),
                    "give both the same parameters, vary them from run to run, or use `--on sim`",
                ));
            }
        }
    }
    let echoes = run.groups.iter().find(|group| receiving(group) == Some(ECHOES_MARKS));
    let there = is_native(ECHOES_MARKS) || wanted.iter().any(|(_, config)| config.name() == ECHOES_MARKS);
    if let (Some(group), false) = (echoes, there) {
        let plain = ECHOES_MARKS.parse::<Config>().map_err(EngineError::Failed)?;
        wanted.push((group, plain));
    }
    Ok(wanted)
}

fn refused(group: &Group, config: &Config, problem: &Problem) -> EngineError {
    let (name, controller) = (&group.name, config.name());
    if let Problem::Unknown(_) = problem {
        let available = sysctl("ipv4.tcp_available_congestion_control").unwrap_or_default();
        if !STOCK.contains(&controller) {
            return unable(
                format!(
                    "group {name}: {controller} has no kernel form: neither Linux nor weir's bpf/ has one"
                ),
                &format!(
                    "use `--on sim`, or choose a controller that this kernel has ({available}) or weir can load (`weir kernel list`); \
                     ARCHITECTURE.md says how a kernel form is added"
                ),
            );
        }
        return unable(
            format!("group {name}: this kernel has no congestion control {controller}"),
            &format!(
                "it has: {available}. Load the kernel's module (`modprobe tcp_{controller}`), choose another controller, or use \
                 `--on sim`"
            ),
        );
    }
    let why = match Some(config.name()) == group.controller().map(Config::name) {
        true => "this kernel has no congestion control",
        false => "its receivers echo marks as DCTCP does, and this kernel has no",
    };
    unable(
        format!("group {name}: {why} {controller}, and weir's own is not available: {problem}"),
        &format!(
            "{}, or load the kernel's module (`modprobe tcp_{controller}`), or use `--on sim`",
            problem.help()
        ),
    )
}

/// The error for a run that cannot be done here, with advice.
pub(crate) fn unable(what: String, help: &str) -> EngineError {
    EngineError::Unable { what, help: help.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_controller_is_refused_with_a_list_of_the_kernels() {
        let refusal = |cc: &str| {
            let lab = format!(
                "format = 1\n[run]\nduration = \"1 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n\
                 [traffic.a]\ncc = \"{cc}\"\n"
            );
            let run =
                weir_plan::Lab::from_str(&lab, "test.toml", ".".as_ref(), &[]).unwrap().runs().remove(0);
            let group = &run.groups[0];
            let unknown = Problem::Unknown(cc.to_owned());
            match refused(group, group.controller().unwrap(), &unknown) {
                EngineError::Unable { what, help } => (what, help),
                other => panic!("it failed: {other}"),
            }
        };
        // No module of Linux has Copa.
        let (what, help) = refusal("copa");
        assert!(what.contains("copa has no kernel form") && !help.contains("modprobe"), "{what}: {help}");
        let (what, help) = refusal("bbr");
        assert!(what.contains("group a") && what.contains("bbr"), "{what}");
        let has = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        assert!(help.contains(has.trim()) && help.contains("--on sim"), "{help}");
    }
}
