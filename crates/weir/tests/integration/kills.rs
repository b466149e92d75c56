//! Nothing finished is lost, whatever kills weir: `run`, `report`, `run --rerun` and `run --rerun --only` are killed at random
//! moments (SIGKILL), the folder is read, and the same command, given again, must end with the bytes of a folder in which
//! nothing was ever killed. Ten kills as an ordinary test, as many as WEIR_KILLS says by hand (`make soak`).

use crate::place::{LAB, Place, tree};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use weir_base::Random;
use weir_engine::Results;

/// One kill in this many is of the lab that is kept in shards, which takes ten times as long.
const SHARDED: usize = 5;

/// A lab, its results without kills for each of two seeds, and the folder in which commands are killed.
struct Story {
    place: Place,
    /// How many runs the lab has.
    runs: usize,
    /// All files of a folder in which nothing was killed, for each seed.
    whole: [Vec<(PathBuf, Vec<u8>)>; 2],
    /// How long such a run takes.
    takes: Duration,
    /// Which of the seeds is in `out`.
    holds: usize,
}

impl Story {
    fn new(repeats: usize, seconds: u32) -> Story {
        let place = Place::new();
        let lab = LAB
            .replace("repeats = 2", &format!("repeats = {repeats}"))
            .replace("'4 s'", &format!("'{seconds} s'"));
        fs::write(place.path("lab.toml"), lab).unwrap();
        let began = Instant::now();
        let whole = [0, 1].map(|seed| {
            place.done(&run(seed, "whole"));
            let files = tree(&place.path("whole"));
            fs::rename(place.path("whole"), place.path(&format!("whole-{seed}"))).unwrap();
            files
        });
        let takes = began.elapsed() / 2;
        place.done(&run(0, "out"));
        fs::write(place.path("out/notes.txt"), "mine").unwrap();
        Story { place, runs: 2 * repeats, whole, takes, holds: 0 }
    }

    /// Kills a command at a random moment; false if it had ended before.
    fn kill(&self, command: &[&str], random: &mut Random) -> bool {
        let mut child =
            self.place.command(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_nanos(random.below(self.takes.as_nanos() as u64)));
        let hit = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        hit
    }

    /// The runs that a reader finds in a folder, and their seeds; empty if there are no results yet.
    fn read(&self, folder: &str) -> (HashSet<String>, HashSet<u64>) {
        let path = self.place.path(folder);
        if !path.join("lab.toml").is_file() && !path.join(".weir-rerun/complete.json").is_file() {
            return Default::default();
        }
        let results = Results::open(&path).unwrap();
        let runs = results.runs.iter();
        runs.map(|run| (run.file.id.clone(), run.file.run.seed)).unzip()
    }

    /// Asserts that the folder is as if nothing had ever been killed in it.
    fn is_whole(&self, folder: &str, seed: usize) {
        let mut files = tree(&self.place.path(folder));
        let notes = files.iter().position(|(path, _)| path == Path::new("notes.txt"));
        let notes = notes.map(|place| files.remove(place).1);
        assert_eq!(notes, (folder == "out").then(|| b"mine".to_vec()), "what is not weir's stays");
        let names =
            |files: &[(PathBuf, Vec<u8>)]| files.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert_eq!(names(&files), names(&self.whole[seed]));
        assert!(files == self.whole[seed], "the bytes of {folder}");
    }

    /// Runs in a new folder: what had ended stays, kill after kill.
    fn kill_a_run(&self, random: &mut Random) -> usize {
        let command = run(0, "new");
        let mut hits = usize::from(self.kill(&command, random));
        let (first, _) = self.read("new");
        hits += usize::from(self.kill(&command, random));
        let (second, _) = self.read("new");
        assert!(second.is_superset(&first), "{} runs were there, then {}", first.len(), second.len());
        let told = self.place.done(&command);
        assert!(kept(&told) >= second.len(), "{} were there: {told}", second.len());
        self.is_whole("new", 0);
        fs::remove_dir_all(self.place.path("new")).unwrap();
        hits
    }

    /// Runs everything again with the other seed: readers see one whole set or the other.
    fn kill_a_rerun(&mut self, random: &mut Random) -> usize {
        let new = 1 - self.holds;
        let command = [&run(new, "out")[..], &["--rerun"]].concat();
        let (_, before) = self.read("out");
        let hit = self.kill(&command, random);
        let (there, seeds) = self.read("out");
        assert_eq!(there.len(), self.runs, "a whole set");
        assert!(seeds == before || seeds.is_disjoint(&before), "of one lab");
        let staged = if seeds == before { self.read("out/.weir-rerun").0 } else { there };
        // If it was killed after all was in place, the rerun is done; the command given again would be another rerun.
        let is_done = seeds != before && !self.place.path("out/.weir-rerun").exists();
        if !is_done {
            let told = self.place.done(&command);
            assert!(kept(&told) >= staged.len(), "{} had ended: {told}", staged.len());
        }
        self.is_whole("out", new);
        self.holds = new;
        usize::from(hit)
    }

    /// Runs a part again, which must come out as it was.
    fn kill_a_part(&self, random: &mut Random) -> usize {
        let command = [&run(self.holds, "out")[..], &["--rerun", "--only", "dumbbell.queue=pie"]].concat();
        let hit = self.kill(&command, random);
        assert_eq!(self.read("out").0.len(), self.runs, "a whole set");
        self.place.done(&command);
        self.is_whole("out", self.holds);
        usize::from(hit)
    }

    /// Writes the report again.
    fn kill_a_report(&self, random: &mut Random) -> usize {
        let hit = self.kill(&["report", "out"], random);
        assert_eq!(self.read("out").0.len(), self.runs, "a whole set");
        self.place.done(&["report", "out"]);
        self.is_whole("out", self.holds);
        usize::from(hit)
    }
}

fn run(seed: usize, out: &str) -> Vec<&str> {
    let seed = ["run.seed=1", "run.seed=2"][seed];
    vec!["run", "lab.toml", "--set", seed, "--out", out]
}

/// How many runs were kept, from what a command says at its end.
fn kept(told: &str) -> usize {
    let words: Vec<&str> = told.split_whitespace().collect();
    let place = words.windows(4).position(|words| words[1..] == ["kept", "from", "before."]);
    words[place.unwrap_or_else(|| panic!("{told}"))].parse().unwrap()
}

#[test]
fn finished_runs_survive_a_kill_of_weir_at_any_time() {
    let kills = std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut random = Random::stream(std::process::id().into(), "kills");
    let mut stories = [Story::new(10, 8), Story::new(101, 2)];
    let (mut hits, mut attempts) = (0, 0);
    while hits < kills {
        let story = &mut stories[usize::from(attempts % SHARDED == SHARDED - 1)];
        hits += match random.below(4) {
            0 => story.kill_a_run(&mut random),
            1 => story.kill_a_rerun(&mut random),
            2 => story.kill_a_part(&mut random),
            _ => story.kill_a_report(&mut random),
        };
        attempts += 1;
        assert!(
            attempts < 20 * kills.max(5),
            "{hits} of {attempts} commands were under way when they were killed"
        );
    }
    for story in &stories {
        assert_eq!(
            story.place.files(),
            ["lab.toml", "out", "whole-0", "whole-1"],
            "nothing is left beside them"
        );
    }
    println!("{hits} kills in {attempts} commands");
}
