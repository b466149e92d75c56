//! `scripts/deps`, which the Makefile asks before it builds, on mock machines: folders with a few programs, one of which stands
//! for apt-get.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The content of each package as the machine's `apt-get` installs it; a library is a file that its `pkg-config` finds.
const PACKAGES: [(&str, &str); 10] = [
    ("gcc", "cc"),
    ("clang", "clang"),
    ("make", "make"),
    ("pkg-config", "pkg-config"),
    ("libelf-dev", "libelf.pc"),
    ("zlib1g-dev", "zlib.pc"),
    ("chromium", "chromium"),
    ("iproute2", "ip"),
    ("python3", "python3"),
    ("tshark", "tshark"),
];

/// A machine with Rust and nothing else.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(user: u32) -> Machine {
        let machine = Machine { folder: tempfile::tempdir().unwrap() };
        for tool in ["cut", "sort", "head"] {
            let place = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let place = place.into_iter().find(|place| place.exists()).unwrap();
            symlink(place, machine.folder.path().join(tool)).unwrap();
        }
        machine.add("cargo", "");
        machine.add("rustc", "echo 'rustc 1.90.0 (1159e78c4 2025-09-14)'");
        machine.add("id", &format!("echo {user}"));
        let cases: String =
            PACKAGES.iter().map(|(package, brings)| format!("{package}) echo {brings};; ")).collect();
        // A program that only has to exist is an empty file; one that pkg-config finds ends in .pc.
        machine.add(
            "apt-get",
            &format!(
                "cd ${{0%/*}}; echo \"$@\" >>log; case $1 in install) for word; do f=$(case $word in {cases} esac); \
                 case $f in '') ;; pkg-config) /bin/cp pkg-config.new pkg-config;; *) >$f; /bin/chmod +x $f;; esac; done;; esac"
            ),
        );
        machine.add("pkg-config.new", "[ -e ${0%/*}/$2.pc ]");
        machine
    }

    /// A machine with these packages.
    fn with(user: u32, packages: &[&str]) -> Machine {
        let machine = Machine::new(user);
        for (package, brings) in PACKAGES.iter().filter(|(package, _)| packages.contains(package)) {
            machine.add(brings, if *package == "pkg-config" { "[ -e ${0%/*}/$2.pc ]" } else { "" });
        }
        machine
    }

    fn add(&self, name: &str, script: &str) {
        let place = self.folder.path().join(name);
        fs::write(&place, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs `scripts/deps` with the machine's programs alone. Returns its status and its output.
    fn deps(&self, target: &str, required: bool) -> (i32, String, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/deps");
        let mut command = Command::new("/bin/sh");
        command.arg(script).arg(target).env_clear().env("PATH", self.folder.path());
        if required {
            command.env("WEIR_REQUIRE_LIVE", "1");
        }
        let output = command.output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), out, err)
    }

    /// The packages that apt-get was asked to install.
    fn installed(&self) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let installs = log.lines().filter(|line| line.starts_with("install "));
        let words = installs
            .flat_map(str::split_whitespace)
            .filter(|word| *word != "install" && !word.starts_with('-'));
        words.map(str::to_owned).collect()
    }

    fn features(&self) -> String {
        self.deps("features", false).1.trim().to_owned()
    }
}

#[test]
fn a_fresh_machine_gets_what_the_build_needs_and_builds_the_kernel_controls() {
    let machine = Machine::new(0);
    assert_eq!(machine.features(), "");
    let (status, _, said) = machine.deps("build", false);
    assert_eq!((status, said.as_str()), (0, ""));
    assert_eq!(machine.installed(), ["gcc", "clang", "make", "pkg-config", "libelf-dev", "zlib1g-dev"]);
    assert_eq!(machine.features(), "--features weir/kernel");
}

#[test]
fn each_package_is_searched_for_separately() {
    let machine =
        Machine::with(0, &["gcc", "make", "chromium", "iproute2", "python3", "pkg-config", "zlib1g-dev"]);
    assert_eq!(machine.deps("test", true).0, 0);
    assert_eq!(machine.installed(), ["tshark", "clang", "libelf-dev"]);
    assert_eq!(machine.features(), "--features weir/kernel");
    // Now that all is there nothing is installed.
    assert_eq!(machine.deps("test", true).0, 0);
    assert_eq!(machine.installed().len(), 3);
}

#[test]
fn kernel_controls_are_left_out_where_nothing_can_be_installed_unless_that_is_forbidden() {
    let all_but_clang: Vec<&str> =
        PACKAGES.map(|(package, _)| package).into_iter().filter(|it| *it != "clang").collect();
    let machine = Machine::with(1000, &all_but_clang);
    let (status, _, said) = machine.deps("test", false);
    assert_eq!(status, 0);
    assert!(
        said.contains("apt-get install clang)")
            && said.contains("without clang, weir is built without kernel controls"),
        "{said}"
    );
    assert_eq!(machine.features(), "");
    let (status, _, said) = machine.deps("test", true);
    assert!(status == 1 && said.contains("the kernel controls are required"), "{said}");
    assert_eq!(machine.installed(), Vec::<String>::new());
}

#[test]
fn required_packages_that_cannot_be_installed_are_named() {
    let (status, _, said) = Machine::with(1000, &["gcc", "make"]).deps("test", false);
    assert!(status == 1 && said.contains("please install: chromium iproute2 python3 tshark"), "{said}");
    let old = Machine::with(0, &["gcc"]);
    old.add("rustc", "echo 'rustc 1.70.0'");
    let (status, _, said) = old.deps("build", false);
    assert!(status == 1 && said.contains("rustc 1.70.0 is too old"), "{said}");
    assert_eq!(old.installed(), Vec::<String>::new());
}

#[test]
fn the_manual_needs_mdbook_which_cargo_installs() {
    let machine = Machine::new(1000);
    machine.add("cargo", "echo cargo \"$@\"");
    let (status, out, err) = machine.deps("docs", false);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("cargo install mdbook --locked --version 0.5."), "{out}");
    machine.add("mdbook", "echo mdbook v0.5.0");
    assert_eq!(machine.deps("docs", false), (0, String::new(), String::new()));
}
