//! The list of all results below a folder. A result is read again only when a glance at its folder shows a change. All its files are looked
//! at afterwards, as many results at a time as an answer may wait for, and again and again: so a thousand results are listed at once, and
//! damage shows soon.

use crate::find::find;
use crate::row::{Row, State};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_engine::{Glance, on_all_cores};

/// For how long the list counts as up to date: several pages may ask at once.
const FRESH: Duration = Duration::from_millis(200);
/// How long the first answer may take before no further result is looked at, and how long later ones may.
const FIRST: Duration = Duration::from_millis(600);
const LATER: Duration = Duration::from_millis(150);
/// For how long a look at all files of a result counts, and how long each answer may take for those that were looked at before.
const LOOKED: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(30);

/// All results below a folder, as they were last read.
pub(crate) struct List {
    root: PathBuf,
    read: Mutex<Option<Read>>,
    /// Held while results are read.
    reading: Mutex<()>,
}

/// The results when they were last read.
#[derive(Clone)]
struct Read {
    at: Instant,
    results: Arc<Vec<Known>>,
}

/// A result as it was last read.
#[derive(Clone)]
struct Known {
    folder: PathBuf,
    stamp: u64,
    /// What the folder says of itself.
    told: Arc<Row>,
    /// The same after a look at all files, if there was one, and when.
    row: Arc<Row>,
    looked: Option<Instant>,
}

impl List {
    /// The list of the results below `root`, which are not read yet.
    pub(crate) fn new(root: &Path) -> List {
        List { root: root.into(), read: Mutex::default(), reading: Mutex::default() }
    }

    /// All rows: with `fresh` as they are now, otherwise as they were last read, if they were.
    pub(crate) fn rows(&self, fresh: bool) -> Vec<Arc<Row>> {
        let results = match self.last() {
            Some(read) if !fresh => read.results,
            _ => self.refresh(),
        };
        results.iter().map(|known| Arc::clone(&known.row)).collect()
    }

    /// The row and the folder of the result with this path, if the list has it.
    pub(crate) fn result(&self, path: &str) -> Option<(Arc<Row>, PathBuf)> {
        let results = self.last().map_or_else(|| self.refresh(), |read| read.results);
        let known = results.iter().find(|known| known.row.path == path)?;
        Some((Arc::clone(&known.row), known.folder.clone()))
    }

    /// Makes the next answer up to date.
    pub(crate) fn expire(&self) {
        if let Some(read) = &mut *held(&self.read) {
            read.at = read.at.checked_sub(FRESH).unwrap_or(read.at);
        }
    }

    fn last(&self) -> Option<Read> {
        held(&self.read).clone()
    }

    fn refresh(&self) -> Arc<Vec<Known>> {
        let _reading = held(&self.reading);
        let last = self.last();
        if let Some(read) = last.as_ref().filter(|read| read.at.elapsed() < FRESH) {
            return Arc::clone(&read.results);
        }
        let began = Instant::now();
        let before: HashMap<&Path, &Known> = last
            .iter()
            .flat_map(|read| read.results.iter())
            .map(|known| (known.folder.as_path(), known))
            .collect();
        let mut results =
            each(find(&self.root), |folder| self.read(&folder, before.get(folder.as_path()).copied()));
        look(&mut results, began, if last.is_some() { LATER } else { FIRST });
        let results = Arc::new(results);
        *held(&self.read) = Some(Read { at: Instant::now(), results: Arc::clone(&results) });
        results
    }

    /// What a folder says of itself: as it is known, if a glance shows no change.
    fn read(&self, folder: &Path, before: Option<&Known>) -> Known {
        // Of a folder that cannot be read, `Row::read` says so.
        let glance = Glance::of(folder).unwrap_or_default();
        // A writer that is killed changes no file.
        let same = |known: &&Known| known.stamp == glance.stamp && known.told.state != State::Running;
        if let Some(known) = before.filter(same) {
            return known.clone();
        }
        let mut row = Row::read(&self.root, folder, &glance);
        // The size of a tree that runs stays as it was until the next look.
        row.bytes = before.and_then(|known| known.row.bytes);
        let row = Arc::new(row);
        Known { folder: folder.into(), stamp: glance.stamp, told: Arc::clone(&row), row, looked: None }
    }
}

/// Looks at all files of those results first that were never looked at or longest ago, and stops this long after the answer began.
fn look(results: &mut [Known], began: Instant, time: Duration) {
    let mut due: Vec<&mut Known> =
        results.iter_mut().filter(|known| known.looked.is_none_or(|at| at.elapsed() > LOOKED)).collect();
    due.sort_by_key(|known| known.looked);
    let again = Instant::now() + AGAIN;
    each(due, |known| {
        let end = if known.looked.is_none() { began + time } else { again.min(began + time) };
        if Instant::now() < end {
            known.row = Arc::new(known.told.checked(&known.folder));
            known.looked = Some(Instant::now());
        }
    });
}

/// Does this for each piece, on all cores; the results are in the order of the pieces.
fn each<T: Send, U: Send>(pieces: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let pieces: Vec<Mutex<(Option<T>, Option<U>)>> =
        pieces.into_iter().map(|piece| Mutex::new((Some(piece), None))).collect();
    let next = AtomicUsize::new(0);
    on_all_cores(pieces.len(), &|| {
        while let Some(place) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut place = held(place);
            place.1 = place.0.take().map(&work);
        }
    });
    pieces
        .into_iter()
        .filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner).1)
        .collect()
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
