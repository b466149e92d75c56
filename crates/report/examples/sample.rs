//! Writes a report of the tests' made-up lab, for work on the pages:
//! `cargo run -p weir-report --example sample -- FOLDER [RUNS]`.

#[path = "../tests/integration/sample.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "it is the tests' own, who use all of it")]
mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let lab = match arguments.next() {
        Some(count) => sample::large(count.parse()?),
        None => sample::lab(&["sim", "live"], 2),
    };
    weir_report::write_pages(folder.as_ref(), &lab, |run| Ok(sample::series(run)))?;
    println!("{folder}/index.html");
    Ok(())
}
