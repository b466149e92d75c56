//! The file of reservations: after restarts, with several processes that write it, killed while writing, with the clock set back,
//! torn and damaged.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use weir_base::{Random, Rate, Span};
use weir_circuit::{Card, Circuit, Conflict, Guarantee, Store, StoreError, Utc};

/// Set for the processes that a test starts: the file that they write.
const FILE: &str = "WEIR_STORE_FILE";

fn at(secs: u64) -> Utc {
    Utc::from_secs(secs)
}
fn card() -> Card {
    Card { rate: Rate::from_mbit_per_sec(1000), background: Rate::default() }
}
/// 100 Mbit/s to one of many destinations.
fn circuit(to: u64, from: u64, until: u64) -> Circuit {
    Circuit {
        device: "eth0".into(),
        destination: format!("10.{}.{}.{}", to >> 16, (to >> 8) & 255, to & 255).parse().unwrap(),
        rate: Rate::from_mbit_per_sec(100),
        rtt: Span::from_millis(50),
        guarantee: Guarantee::Full,
        from: at(from),
        until: at(until),
    }
}
fn numbers(path: &Path) -> BTreeSet<u64> {
    let (calendar, _) = Store::open_existing(path).unwrap().calendar().unwrap();
    calendar.circuits().map(|(number, _)| number).collect()
}

#[test]
fn reservations_outlast_the_process_and_numbers_are_not_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.sqlite");
    let mut store = Store::open(&path).unwrap();
    let first = store.reserve(&circuit(1, 100, 200), &card(), at(50)).unwrap();
    assert_eq!((first.number, first.clock_behind), (1, None));
    assert_eq!(store.reserve(&circuit(2, 100, 200), &card(), at(50)).unwrap().number, 2);
    assert_eq!(store.cancel(&[2], at(51)).unwrap(), [circuit(2, 100, 200)]);
    drop(store);
    let mut store = Store::open(&path).unwrap();
    let (calendar, latest) = store.calendar().unwrap();
    assert_eq!(calendar.circuits().collect::<Vec<_>>(), [(1, &circuit(1, 100, 200))]);
    assert_eq!(latest, at(51));
    assert_eq!(store.reserve(&circuit(2, 100, 200), &card(), at(52)).unwrap().number, 3);
    assert!(matches!(store.cancel(&[1, 2], at(53)), Err(StoreError::Unknown(2))));
    drop(store);
    assert_eq!(numbers(&path), [1, 3].into());
}

#[test]
fn a_reservation_that_does_not_fit_changes_nothing_and_names_the_conflicts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.sqlite");
    let mut store = Store::open(&path).unwrap();
    for to in 1..=10 {
        store.reserve(&circuit(to, 100, 200), &card(), at(50)).unwrap();
    }
    let full = store.reserve(&circuit(11, 150, 160), &card(), at(50)).unwrap_err();
    assert!(matches!(full, StoreError::Conflict(Conflict::Full { with, .. }) if with.len() == 10));
    let overlap = store.reserve(&circuit(3, 150, 160), &card(), at(50)).unwrap_err();
    assert!(matches!(overlap, StoreError::Conflict(Conflict::Overlap { with: 3 })));
    let past = store.reserve(&circuit(12, 10, 50), &card(), at(50)).unwrap_err();
    assert!(matches!(past, StoreError::Past { .. }));
    drop(store);
    assert_eq!(numbers(&path), (1..=10).collect());
}

#[test]
fn a_reservation_takes_another_rate_if_the_card_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.sqlite");
    let mut store = Store::open(&path).unwrap();
    for to in 1..=3 {
        store.reserve(&circuit(to, 100, 200), &card(), at(50)).unwrap();
    }
    let mbits = Rate::from_mbit_per_sec;
    // The other two reserve 200 Mbit/s.
    assert_eq!(
        store.change(2, mbits(800), &card(), at(150)).unwrap(),
        Circuit { rate: mbits(800), ..circuit(2, 100, 200) }
    );
    let full = store.change(1, mbits(101), &card(), at(150)).unwrap_err();
    assert!(matches!(full, StoreError::Conflict(Conflict::Full { with, .. }) if with == [2, 3]));
    assert!(matches!(store.change(4, mbits(1), &card(), at(150)), Err(StoreError::Unknown(4))));
    drop(store);
    let (calendar, _) = Store::open_existing(&path).unwrap().calendar().unwrap();
    let rates: Vec<Rate> = calendar.circuits().map(|(_, circuit)| circuit.rate).collect();
    assert_eq!(rates, [mbits(100), mbits(800), mbits(100)]);
}

#[test]
fn reservations_still_count_after_the_clock_was_set_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("circuits.sqlite")).unwrap();
    store.reserve(&circuit(1, 1000, 2000), &card(), at(900)).unwrap();
    // The clock runs until the circuit is over, and is then set back by an hour.
    store.reserve(&circuit(2, 5000, 6000), &card(), at(4000)).unwrap();
    let again = store.reserve(&circuit(1, 1500, 1600), &card(), at(400)).unwrap_err();
    assert!(matches!(again, StoreError::Conflict(Conflict::Overlap { with: 1 })));
    let other = store.reserve(&circuit(3, 1500, 1600), &card(), at(400)).unwrap();
    assert_eq!(other.clock_behind, Some(Span::from_secs(3600)));
    assert_eq!(store.calendar().unwrap().1, at(4000));
}

/// Runs this test program again, for the test of this name.
fn again(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("store::{test}"), "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped());
    command
}

#[test]
fn processes_that_write_at_once_never_overbook() {
    if let Some(path) = std::env::var_os(FILE) {
        // Each tries the same twenty destinations; ten circuits fit.
        let mut store = Store::open(Path::new(&path)).unwrap();
        let admitted =
            (1..=20).filter(|to| store.reserve(&circuit(*to, 100, 200), &card(), at(50)).is_ok()).count();
        println!("admitted {admitted}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.sqlite");
    let name = "processes_that_write_at_once_never_overbook";
    // The processes also race to create the file.
    let children: Vec<_> = (0..6).map(|_| again(name, &path).spawn().unwrap()).collect();
    let mut admitted = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let told = text.split_once("admitted ").unwrap().1;
        admitted += told.split_whitespace().next().unwrap().parse::<usize>().unwrap();
    }
    assert_eq!((admitted, numbers(&path)), (10, (1..=10).collect()));
}

#[test]
fn confirmed_reservations_remain_after_the_writer_was_killed() {
    if let Some(path) = std::env::var_os(FILE) {
        let mut store = Store::open(Path::new(&path)).unwrap();
        for to in 0.. {
            let hour = 3600 * (to % 1000);
            let one = store.reserve(&circuit(to, 100 + hour, 3700 + hour), &card(), at(50)).unwrap().number;
            println!("made {one}");
            if to % 3 == 0 {
                println!("cancels {one}");
                store.cancel(&[one], at(50)).unwrap();
                println!("cancelled {one}");
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::stream(1, "kills");
    for kill in 0..12 {
        let path = folder.path().join(format!("{kill}.sqlite"));
        let mut child =
            again("confirmed_reservations_remain_after_the_writer_was_killed", &path).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut lines = lines.filter(|line| line.starts_with("made") || line.starts_with("cancel"));
        let mut told: Vec<String> = lines.by_ref().take(1 + random.below(60) as usize).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        told.extend(lines);
        let (mut promised, mut unsure) = (BTreeSet::new(), None);
        for line in &told {
            let (word, number) = line.split_once(' ').unwrap();
            // The last line may be cut off.
            let Ok(number) = number.parse::<u64>() else { continue };
            unsure = (word == "cancels").then_some(number);
            if word == "made" {
                promised.insert(number)
            } else {
                promised.remove(&number)
            };
        }
        let there = numbers(&path);
        let next = told.iter().filter(|line| line.starts_with("made")).count() as u64 + 1;
        let unexpected: Vec<u64> =
            there.difference(&promised).copied().filter(|it| Some(*it) != unsure && *it != next).collect();
        assert!(promised.is_subset(&there) && unexpected.is_empty(), "{promised:?} {there:?}");
    }
}

/// A file with forty reservations, and its bytes.
fn sound(path: &Path) -> Vec<u8> {
    let mut store = Store::open(path).unwrap();
    for to in 0..40 {
        store.reserve(&circuit(to, 100 * to, 100 * to + 700), &card(), at(0)).unwrap();
    }
    store.cancel(&[7], at(1)).unwrap();
    drop(store);
    std::fs::read(path).unwrap()
}

/// The content of a file, or the error if it is refused.
fn believed(path: &Path) -> Result<Vec<(u64, Circuit)>, StoreError> {
    let (calendar, _) = Store::open_existing(path)?.calendar()?;
    Ok(calendar.circuits().map(|(number, circuit)| (number, circuit.clone())).collect())
}

#[test]
fn a_truncated_file_is_refused_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.sqlite");
    let bytes = sound(&path);
    let whole = believed(&path).unwrap();
    assert_eq!(whole.len(), 39);
    let torn = folder.path().join("torn.sqlite");
    for length in (0..bytes.len()).step_by(97) {
        std::fs::write(&torn, &bytes[..length]).unwrap();
        let error = believed(&torn).unwrap_err();
        assert!(matches!(error, StoreError::Torn { .. } | StoreError::Foreign(_)), "{length}: {error}");
        assert_eq!(std::fs::read(&torn).unwrap(), bytes[..length]);
    }
}

#[test]
fn a_damaged_file_is_refused_or_still_holds_the_same_reservations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("circuits.sqlite");
    let bytes = sound(&path);
    let whole = believed(&path).unwrap();
    let damaged = folder.path().join("damaged.sqlite");
    let mut random = Random::stream(1, "damage");
    let mut refused = 0;
    for _ in 0..2000 {
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(3) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.below(256) as u8;
        }
        // In half of the cases, a whole sector of 512 bytes was never written.
        if random.chance(0.5) {
            let sector = random.below(bytes.len() as u64 / 512) as usize * 512;
            bytes[sector..sector + 512].fill(0);
        }
        std::fs::write(&damaged, &bytes).unwrap();
        match believed(&damaged) {
            Ok(still) => assert_eq!(still, whole),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 500, "{refused} of 2000 were refused");
}

#[test]
fn other_files_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "not a database, but long enough to be one: ".repeat(100)).unwrap();
    let before = std::fs::read(&text).unwrap();
    assert!(matches!(Store::open(&text).unwrap_err(), StoreError::Foreign(_)));
    assert_eq!(std::fs::read(&text).unwrap(), before);
    let nowhere = folder.path().join("no/such/folder");
    assert!(matches!(Store::open(&nowhere).unwrap_err(), StoreError::Failed { .. }));
    assert!(!nowhere.exists());
}
