//! The list of all results below a folder. A result is read again only when one of its files has changed.

use crate::extent::Extent;
use crate::find::find;
use crate::row::{Row, State};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_engine::on_all_cores;

/// For how long the list counts as up to date: several pages may ask at once.
const FRESH: Duration = Duration::from_millis(200);

/// All results below a folder, as they were last read.
pub(crate) struct List {
    root: PathBuf,
    read: Mutex<Option<(Instant, Rows)>>,
    /// Held while results are read.
    reading: Mutex<()>,
}

/// The rows of the list, each with the stamp of what was read.
type Rows = Arc<Vec<(u64, Arc<Row>)>>;

impl List {
    /// The list of the results below `root`, which are not read yet.
    pub(crate) fn new(root: &Path) -> List {
        List { root: root.into(), read: Mutex::default(), reading: Mutex::default() }
    }

    /// All rows: with `fresh` as they are now, otherwise as they were last read, if they were.
    pub(crate) fn rows(&self, fresh: bool) -> Vec<Arc<Row>> {
        let rows = match self.last() {
            Some((_, rows)) if !fresh => rows,
            _ => self.refresh(),
        };
        rows.iter().map(|(_, row)| Arc::clone(row)).collect()
    }

    /// The row and the folder of the result with this path, which the list has.
    pub(crate) fn result(&self, path: &str) -> Option<(Arc<Row>, PathBuf)> {
        let row = self.rows(false).into_iter().find(|row| row.path == path)?;
        let folder = if path == "." { self.root.clone() } else { self.root.join(path) };
        Some((row, folder))
    }

    /// Makes the next answer up to date.
    pub(crate) fn expire(&self) {
        if let Some((at, _)) = &mut *held(&self.read) {
            *at = at.checked_sub(FRESH).unwrap_or(*at);
        }
    }

    fn last(&self) -> Option<(Instant, Rows)> {
        held(&self.read).clone()
    }

    fn refresh(&self) -> Rows {
        let _reading = held(&self.reading);
        let last = self.last();
        if let Some((_, rows)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Arc::clone(rows);
        }
        let known: HashMap<&str, &(u64, Arc<Row>)> =
            last.iter().flat_map(|(_, rows)| rows.iter()).map(|entry| (entry.1.path.as_str(), entry)).collect();
        let folders = find(&self.root);
        let made: Vec<Mutex<Option<(u64, Arc<Row>)>>> = folders.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(place) = take(&next, folders.len()) {
                *held(&made[place]) = Some(self.read(&folders[place], &known));
            }
        };
        on_all_cores(folders.len(), &work);
        let rows = made.into_iter().filter_map(|made| made.into_inner().unwrap_or_else(PoisonError::into_inner));
        let rows: Rows = Arc::new(rows.collect());
        *held(&self.read) = Some((Instant::now(), Arc::clone(&rows)));
        rows
    }

    /// The row of a folder: the known one, if nothing in the folder has changed.
    fn read(&self, folder: &Path, known: &HashMap<&str, &(u64, Arc<Row>)>) -> (u64, Arc<Row>) {
        // A folder that cannot be read as a whole is told by what is read of it.
        let extent = Extent::of(folder).unwrap_or_default();
        let below = folder.strip_prefix(&self.root).unwrap_or(folder).to_string_lossy();
        let path = if below.is_empty() { "." } else { &below };
        match known.get(path) {
            // A writer that is killed changes no file.
            Some((stamp, row)) if *stamp == extent.stamp && row.state != State::Running => (*stamp, Arc::clone(row)),
            _ => (extent.stamp, Arc::new(Row::read(&self.root, folder, &extent))),
        }
    }
}

fn take(next: &AtomicUsize, count: usize) -> Option<usize> {
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|place| *place < count)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
