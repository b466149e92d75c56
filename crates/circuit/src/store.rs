//! The file that keeps reservations over restarts: an SQLite database, since several processes may write it at a time and the
//! machine may stop at any moment. The calendar decides within the transaction that writes, so two processes cannot both reserve a
//! rate that is free only once.
//!
//! Nothing is removed by the clock: after the clock is set back, an interval that seemed to be over counts again. The file keeps
//! the latest time that was written to it, so that a clock which was set back can be reported. A torn or damaged file is refused:
//! SQLite checks its structure, and digests check its rows.

use crate::{Calendar, Card, Circuit, Conflict, Guarantee, Utc};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, Transaction, TransactionBehavior, params};
use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use twox_hash::XxHash64;
use weir_base::{Rate, Span};

/// The `application_id` by which SQLite identifies the file: "weir".
const APPLICATION: i64 = 0x7765_6972;
/// The version of its tables (`user_version`).
const VERSION: i64 = 1;
/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(10);

/// `state` has one row: the number of the next reservation, the latest time written, and the exclusive or of all rows' digests.
const TABLES: &str = "
    CREATE TABLE reservation (
        number INTEGER PRIMARY KEY, device TEXT NOT NULL, destination TEXT NOT NULL, rate_bit_per_s INTEGER NOT NULL,
        rtt_ns INTEGER NOT NULL, guarantee TEXT NOT NULL, from_s INTEGER NOT NULL, until_s INTEGER NOT NULL,
        digest INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE state (next INTEGER NOT NULL, latest_s INTEGER NOT NULL, digest INTEGER NOT NULL) STRICT;
    INSERT INTO state VALUES (1, 0, 0);
";

/// Why the file cannot be used, or a reservation cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file's content is not as it was written.
    #[error("{path} is torn or damaged: {why}")]
    Torn {
        /// The file.
        path: PathBuf,
        /// How it is damaged.
        why: String,
    },
    /// The file belongs to another program, or to a later version of weir.
    #[error("{0} is not a file of reservations that this version of weir can read")]
    Foreign(PathBuf),
    /// Another process used the file for too long.
    #[error("{0} has been in use by another process for 10 s")]
    Busy(PathBuf),
    /// The circuit does not fit.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The reservation's time is over.
    #[error("the reservation would end at {until}, which is over: it is {now}")]
    Past {
        /// When it would end.
        until: Utc,
        /// The present time by the clock.
        now: Utc,
    },
    /// There is no reservation of this number.
    #[error("there is no reservation {0}")]
    Unknown(u64),
    /// The system reports an error.
    #[error("{path}: {error}")]
    Failed {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl StoreError {
    /// What a person can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            StoreError::Torn { .. } => {
                "restore it from a copy, or move it away and make the reservations again; nothing was changed"
            }
            StoreError::Foreign(_) => "name another file with --store",
            StoreError::Busy(_) => "end that process, or repeat the command",
            StoreError::Conflict(Conflict::Empty | Conflict::Overlap { .. } | Conflict::Full { .. }) => {
                "`weir circuit list` shows the reservations; choose another time or a lower rate"
            }
            StoreError::Conflict(_) => "reserve a rate above 0 and at most the card's",
            StoreError::Past { .. } => "times are UTC; `date -u` prints the clock's time",
            StoreError::Unknown(_) => "`weir circuit list` prints the numbers",
            StoreError::Failed { .. } => "its folder must exist and be writable; --store names another file",
        }
    }
}

/// A reservation that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// Its number, which no other reservation ever gets.
    pub number: u64,
    /// How far the clock is behind the latest time in the file; `None` if it is not behind.
    pub clock_behind: Option<Span>,
}

/// A file of reservations.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Opens the file, and creates it if there is none.
    ///
    /// # Errors
    /// It is torn, foreign or in use, or the system reports an error.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        if !path.try_exists().map_err(failed(path))? {
            create(path)?;
        }
        Store::open_existing(path)
    }

    /// Opens the file, which must be there.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Store, StoreError> {
        // SQLite takes an empty file for a new database, and we never leave one.
        if path.metadata().map_err(failed(path))?.len() == 0 {
            return Err(StoreError::Torn { path: path.to_owned(), why: "it is empty".to_owned() });
        }
        let refused = |error| refused(path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(refused)?;
        connection.busy_timeout(PATIENCE).map_err(refused)?;
        // The folder is synced too, so that reservations survive a power failure.
        connection.pragma_update(None, "synchronous", "EXTRA").map_err(refused)?;
        let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        let (application, version) =
            (number("application_id").map_err(refused)?, number("user_version").map_err(refused)?);
        if application != APPLICATION || version != VERSION {
            return Err(StoreError::Foreign(path.to_owned()));
        }
        let sound: String =
            connection.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(refused)?;
        if sound != "ok" {
            return Err(StoreError::Torn { path: path.to_owned(), why: sound });
        }
        Ok(Store { connection, path: path.to_owned() })
    }

    /// All reservations, and the latest time that was written to the file.
    ///
    /// # Errors
    /// The file is torn or in use.
    pub fn calendar(&mut self) -> Result<(Calendar, Utc), StoreError> {
        let transaction = self.connection.transaction().map_err(|error| refused(&self.path, error))?;
        let (calendar, state) = load(&transaction, &self.path)?;
        Ok((calendar, state.latest))
    }

    /// Reserves a circuit if it fits beside all others; `now` is the present time. When this returns, the reservation is on the
    /// disk.
    ///
    /// # Errors
    /// It does not fit, its time is over, or the file cannot be written; then nothing has changed.
    pub fn reserve(&mut self, circuit: &Circuit, card: &Card, now: Utc) -> Result<Reserved, StoreError> {
        if circuit.until <= now && circuit.from < circuit.until {
            return Err(StoreError::Past { until: circuit.until, now });
        }
        self.write(now, |calendar, state, transaction| {
            calendar.admit(circuit, card)?;
            let number = state.next;
            state.next += 1;
            let digest = digest(number, circuit);
            state.digest ^= digest;
            transaction
                .execute(
                    "INSERT INTO reservation VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![
                        number.cast_signed(),
                        circuit.device,
                        circuit.destination.to_string(),
                        circuit.rate.bits_per_sec().cast_signed(),
                        circuit.rtt.as_nanos().cast_signed(),
                        name(circuit.guarantee),
                        circuit.from.as_secs().cast_signed(),
                        circuit.until.as_secs().cast_signed(),
                        digest.cast_signed(),
                    ],
                )
                .map(|_| number)
                .map_err(Failure::Sqlite)
        })
        .map(|(number, clock_behind)| Reserved { number, clock_behind })
    }

    /// Removes reservations, all or none, and returns them.
    ///
    /// # Errors
    /// One of them is not there, or the file cannot be written.
    pub fn cancel(&mut self, numbers: &[u64], now: Utc) -> Result<Vec<Circuit>, StoreError> {
        self.write(now, |calendar, state, transaction| {
            let cancel_one = |number: &u64| {
                let circuit = calendar.remove(*number).ok_or(StoreError::Unknown(*number))?;
                state.digest ^= digest(*number, &circuit);
                transaction
                    .execute("DELETE FROM reservation WHERE number = ?1", [number.cast_signed()])
                    .map(|_| circuit)
                    .map_err(Failure::Sqlite)
            };
            numbers.iter().map(cancel_one).collect()
        })
        .map(|(circuits, _)| circuits)
    }

    /// Changes the rate of a reservation, if the new one fits beside all others, and returns the changed reservation.
    ///
    /// # Errors
    /// It is not there, the rate does not fit, or the file cannot be written; then nothing has changed.
    pub fn change(&mut self, number: u64, rate: Rate, card: &Card, now: Utc) -> Result<Circuit, StoreError> {
        self.write(now, |calendar, state, transaction| {
            let old = calendar.remove(number).ok_or(StoreError::Unknown(number))?;
            let new = Circuit { rate, ..old.clone() };
            calendar.admit(&new, card)?;
            let digest_of_new = digest(number, &new);
            state.digest ^= digest(number, &old) ^ digest_of_new;
            let columns =
                [rate.bits_per_sec().cast_signed(), digest_of_new.cast_signed(), number.cast_signed()];
            transaction
                .execute("UPDATE reservation SET rate_bit_per_s = ?1, digest = ?2 WHERE number = ?3", columns)
                .map(|_| new)
                .map_err(Failure::Sqlite)
        })
        .map(|(circuit, _)| circuit)
    }

    /// Makes one change, whole or not at all, and returns how far the clock is behind, as [`Reserved::clock_behind`].
    fn write<T>(
        &mut self,
        now: Utc,
        change: impl FnOnce(&mut Calendar, &mut State, &Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<(T, Option<Span>), StoreError> {
        let path = &self.path;
        let refused = |error| refused(path, error);
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(refused)?;
        let (mut calendar, mut state) = load(&transaction, path)?;
        let clock_behind = (now < state.latest).then(|| state.latest.since(now));
        let done = change(&mut calendar, &mut state, &transaction).map_err(|failure| match failure {
            Failure::Store(error) => error,
            Failure::Sqlite(error) => refused(error),
        })?;
        let (next, latest) = (state.next.cast_signed(), state.latest.max(now).as_secs().cast_signed());
        transaction
            .execute(
                "UPDATE state SET next = ?1, latest_s = ?2, digest = ?3",
                [next, latest, state.digest.cast_signed()],
            )
            .map_err(refused)?;
        transaction.commit().map_err(refused)?;
        Ok((done, clock_behind))
    }
}

/// Why a change was not made.
enum Failure {
    Store(StoreError),
    Sqlite(rusqlite::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}
impl From<Conflict> for Failure {
    fn from(conflict: Conflict) -> Failure {
        Failure::Store(conflict.into())
    }
}

/// The row of `state`.
struct State {
    next: u64,
    latest: Utc,
    digest: u64,
}

/// Creates a file that is whole as soon as it has its name, unless another process is quicker.
fn create(path: &Path) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Anyone may see what is reserved, as anyone may see the devices.
        builder.permissions(std::fs::Permissions::from_mode(0o644));
    }
    let fresh = builder.tempfile_in(folder).map_err(failed(path))?;
    let make = || {
        let connection = Connection::open(fresh.path())?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        connection.execute_batch(TABLES)?;
        connection.close().map_err(|(_, error)| error)
    };
    make().map_err(|error| refused(path, error))?;
    match fresh.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(failed(path)(error.error)),
        _ => File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(path)),
    }
}

/// Reads all reservations and checks their digests.
fn load(transaction: &Transaction<'_>, path: &Path) -> Result<(Calendar, State), StoreError> {
    let refused = |error| refused(path, error);
    let torn = |why: &str| StoreError::Torn { path: path.to_owned(), why: why.to_owned() };
    let state = transaction
        .query_row("SELECT next, latest_s, digest FROM state", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        })
        .map_err(refused)?;
    let (Ok(next), Ok(latest)) = (u64::try_from(state.0), u64::try_from(state.1)) else {
        return Err(torn("a number is negative"));
    };
    let mut calendar = Calendar::default();
    let mut whole = 0;
    let mut statement = transaction.prepare("SELECT * FROM reservation").map_err(refused)?;
    let mut rows = statement.query([]).map_err(refused)?;
    while let Some(row) = rows.next().map_err(refused)? {
        let (number, circuit, told) =
            read(row).map_err(refused)?.ok_or_else(|| torn("a row has invalid values"))?;
        if digest(number, &circuit) != told || number >= next {
            return Err(torn("a row was changed after it was written"));
        }
        whole ^= told;
        calendar.insert(number, circuit);
    }
    if whole != state.2.cast_unsigned() {
        return Err(torn("a row is missing"));
    }
    Ok((calendar, State { next, latest: Utc::from_secs(latest), digest: whole }))
}

/// Reads a reservation and the digest that was written with it. `None` if a value is out of its range.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<(u64, Circuit, u64)>> {
    let number = |column: &str| row.get::<_, i64>(column).map(|value| u64::try_from(value).ok());
    let text = |column: &str| row.get::<_, String>(column);
    let guarantee = text("guarantee")?;
    let circuit = || -> rusqlite::Result<Option<(u64, Circuit)>> {
        let (Some(id), Some(rate), Some(rtt), Some(from), Some(until)) = (
            number("number")?,
            number("rate_bit_per_s")?,
            number("rtt_ns")?,
            number("from_s")?,
            number("until_s")?,
        ) else {
            return Ok(None);
        };
        let (Ok(destination), Some(guarantee)) = (text("destination")?.parse(), guarantee_of(&guarantee))
        else {
            return Ok(None);
        };
        let circuit = Circuit {
            device: text("device")?,
            destination,
            rate: Rate::from_bits_per_sec(rate),
            rtt: Span::from_nanos(rtt),
            guarantee,
            from: Utc::from_secs(from),
            until: Utc::from_secs(until),
        };
        Ok(Some((id, circuit)))
    };
    let digest = row.get::<_, i64>("digest")?.cast_unsigned();
    Ok(circuit()?.map(|(number, circuit)| (number, circuit, digest)))
}

fn name(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::Full => "full",
        Guarantee::Semi => "semi",
    }
}
fn guarantee_of(text: &str) -> Option<Guarantee> {
    [Guarantee::Full, Guarantee::Semi].into_iter().find(|guarantee| name(*guarantee) == text)
}

fn digest(number: u64, circuit: &Circuit) -> u64 {
    let Circuit { device, destination, rate, rtt, guarantee, from, until } = circuit;
    let text = format!(
        "{number} {device} {destination} {} {} {} {} {}",
        rate.bits_per_sec(),
        rtt.as_nanos(),
        name(*guarantee),
        from.as_secs(),
        until.as_secs(),
    );
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(text.as_bytes());
    hasher.finish()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> StoreError {
    move |error| StoreError::Failed { path: path.to_owned(), error }
}

/// Translates an SQLite error.
fn refused(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy(path),
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Torn { path, why: error.to_string() },
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(path),
        // Tables, columns or values differ from `TABLES`.
        Some(ErrorCode::Unknown) | None => StoreError::Torn { path, why: error.to_string() },
        Some(_) => StoreError::Failed { path, error: io::Error::other(error) },
    }
}
