//! A file with the secrets of the connections to neighbours (`--key-log`), by which captures of a test can be decoded (`weir sliq decode`).

use crate::failure::Failure;
use crate::frame::log;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use weir_sliq::host::Host;

/// The file, and the connection of each neighbour that was written last.
pub(super) struct KeyLog {
    /// `None` once it could not be written.
    file: Option<File>,
    written: Vec<Option<u32>>,
}

impl KeyLog {
    /// Opens the file, to the end of which lines are written. A new one is readable by its owner alone.
    ///
    /// # Errors
    /// It cannot be opened, or others can read it.
    pub(super) fn open(path: &Path, neighbours: usize) -> Result<KeyLog, Failure> {
        let refused = |what: String, help: String| {
            Failure::bad_input(format!("--key-log {}: {what}", path.display()), help)
        };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let file =
            file.map_err(|error| refused(error.to_string(), "name a file that can be written".into()))?;
        let metadata = file.metadata().map_err(|error| refused(error.to_string(), "name a file".into()))?;
        if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
            let help = format!("chmod 600 {}, or name a new file", path.display());
            return Err(refused("others can read it".into(), help));
        }
        log::info(&format!(
            "weir: the secrets of the connections to neighbours go to {}: who reads it can open captured packets, and forge new ones; for tests only",
            path.display()
        ));
        Ok(KeyLog { file: Some(file), written: vec![None; neighbours] })
    }

    /// Writes the secrets of the connection `number` to the neighbour of this link, unless they were written already.
    pub(super) fn note(&mut self, port: usize, number: usize, host: &Host) {
        let (Some(file), Some(written)) = (&mut self.file, self.written.get_mut(port)) else { return };
        if *written == host.connection(number) {
            return;
        }
        let Some(secrets) = host.secrets(number) else { return };
        *written = Some(secrets.connection);
        if let Err(error) = append(file, &secrets.line()) {
            log::error(&format!("weir: the log of keys ends here: {error}"));
            self.file = None;
        }
    }
}

fn append(file: &mut File, line: &str) -> io::Result<()> {
    file.write_all(format!("{line}\n").as_bytes())?;
    file.flush()
}
