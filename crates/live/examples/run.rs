//! Runs one lab live and prints its outcome, without reports or files: for a quick look while working on the engine.
//!
//!     cargo run -p weir-live --example run -- LAB [PATH=VALUE]...

use std::sync::atomic::AtomicBool;
use weir_engine::{Engine, Watch};
use weir_live::{Live, Tally};
use weir_plan::Lab;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let privilege = weir_linux::enter()?;
    eprintln!("{privilege:?}");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, settings) = arguments.split_first().ok_or("which lab?")?;
    let lab = Lab::load(path.as_ref(), settings).map_err(|error| error.render(false, 100))?;
    for run in lab.runs() {
        Live.check(&run)?;
        let mut tally = Tally::new(&run);
        let watch = Watch { cancel: &AtomicBool::new(false), progress: &|_| {}, capture: None, folder: None };
        let outcome = Live.run(&run, &mut tally, &watch)?;
        println!("== {}", run.id);
        println!("{tally}");
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    }
    Ok(())
}
