//! Compiles each control of `bpf/` for the kernel, if the feature `bpf` is on. The object of `NAME.c` is that of the control that
//! `src/lib.rs` lists with this short name.
//!
//! clang is called as libbpf-cargo would call it; that crate would add a dozen dependencies for one command line.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    println!("cargo:rerun-if-changed={}", sources.display());
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    println!("cargo:rerun-if-env-changed=CLANG");
    // Both are set by cargo: the second by libbpf-sys, which links libbpf.
    let variable =
        |name: &str| PathBuf::from(env::var_os(name).unwrap_or_else(|| panic!("{name} is not set")));
    let (out, headers) = (variable("OUT_DIR"), variable("DEP_BPF_INCLUDE"));
    let mut names = vec![];
    for entry in fs::read_dir(&sources).expect("bpf/ is part of the repository") {
        let source = entry.expect("bpf/ can be read").path();
        if source.extension().is_some_and(|extension| extension == "c") {
            names.push(compile(&source, &sources, &headers, &out));
        }
    }
    names.sort();
    let rows: String = names
        .iter()
        .map(|name| format!("    (\"{name}\", include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.o\"))),\n"))
        .collect();
    let table = format!("static OBJECTS: [(&str, &[u8]); {}] = [\n{rows}];\n", names.len());
    fs::write(out.join("objects.rs"), table).expect("cargo's output folder can be written");
}

/// Compiles `NAME.c` to `NAME.o`; returns the name.
fn compile(source: &Path, include: &Path, headers: &Path, out: &Path) -> String {
    let name = source.file_stem().expect("it has an extension").to_string_lossy().into_owned();
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror"]);
    command.arg("-Wno-unused-parameter").arg("-c").arg(source).arg("-o").arg(out.join(format!("{name}.o")));
    for folder in [include.join("linux"), include.to_owned(), headers.to_owned()] {
        command.arg("-I").arg(folder);
    }
    match command.status() {
        Ok(status) if status.success() => name,
        Ok(status) => panic!("{} did not compile: {status}", source.display()),
        Err(error) => panic!(
            "the feature `bpf` needs clang, and {} cannot be run: {error}. `make deps` installs it; `make build` leaves the \
             feature out where it is missing",
            clang.to_string_lossy()
        ),
    }
}
