//! The key of an application or of two aggregation points, in a file that its owner alone reads.

use crate::failure::Failure;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use weir_coord::seal::Key;

/// Whether other users can read a file.
///
/// # Errors
/// The file is not there.
pub(crate) fn is_read_by_others(path: &Path) -> std::io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// The key in a file.
///
/// # Errors
/// The file cannot be read, others can read it, or it has no key.
pub(crate) fn key(path: &Path) -> Result<Key, Failure> {
    let wrong =
        |message: String, help: &str| Failure::bad_input(format!("{}: {message}", path.display()), help);
    let help =
        "write 32 hexadecimal digits into a file of mode 600: `(umask 077; openssl rand -hex 16 > peer.key)`";
    let others = is_read_by_others(path).map_err(|error| wrong(error.to_string(), help))?;
    if others {
        return Err(wrong("others can read the key".to_owned(), &format!("chmod 600 {}", path.display())));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string(), help))?;
    text.parse().map_err(|message| wrong(message, help))
}
