//! The keys by which hosts authenticate each other: a pair for each host (X25519), in a file that only its owner can read. They
//! are wiped from memory when they are no longer needed.

use crate::failure::Failure;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::str::FromStr;
use weir_base::Hex;
use weir_sliq::handshake;
use zeroize::Zeroizing;

/// Length of a key in bytes.
const KEY: usize = 32;
/// Bytes of a key file that are read; both keys stand within them.
const LONGEST: usize = 1024;

/// A public key, written with 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(pub(crate) [u8; KEY]);

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl FromStr for PublicKey {
    type Err = String;
    fn from_str(text: &str) -> Result<PublicKey, String> {
        let wrong = || "a public key has 64 hexadecimal digits, as `keygen` prints it".to_owned();
        Ok(PublicKey(*from_hex(text).ok_or_else(wrong)?))
    }
}

fn from_hex(text: &str) -> Option<Zeroizing<[u8; KEY]>> {
    let text = text.trim();
    if text.len() != 2 * KEY || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = Zeroizing::new([0; KEY]);
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

/// A host's pair of keys.
pub struct Keys {
    /// Both keys.
    pub(crate) pair: handshake::Keys,
    /// The public key.
    pub public: PublicKey,
}

impl Keys {
    /// Makes a pair and writes it to a new file that only its owner reads.
    ///
    /// # Errors
    /// There is a file of this name, or it cannot be written.
    pub fn generate(path: &Path) -> io::Result<Keys> {
        let pair = handshake::Keys::generate().map_err(|_| io::Error::other("cannot generate keys"))?;
        let keys = Keys { public: PublicKey(pair.public), pair };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut private = Zeroizing::new([0; 2 * KEY]);
        for (digits, byte) in private.chunks_mut(2).zip(keys.pair.private()) {
            digits
                .copy_from_slice(&[byte >> 4, byte & 15].map(|half| b"0123456789abcdef"[usize::from(half)]));
        }
        file.write_all(b"private ")?;
        file.write_all(&private[..])?;
        file.write_all(format!("\npublic {}\n", keys.public).as_bytes())?;
        file.sync_all()?;
        Ok(keys)
    }

    /// Reads a pair for a command; the error says what to do.
    ///
    /// # Errors
    /// As [`Keys::read`]; `command` is the one whose `keygen` makes such files.
    pub(crate) fn of_command(path: &Path, command: &str) -> Result<Keys, Failure> {
        Keys::read(path).map_err(|error| {
            let help = match error.kind() {
                io::ErrorKind::PermissionDenied => format!("chmod 600 {}", path.display()),
                _ => format!("`weir {command} keygen FILE` makes one"),
            };
            Failure::bad_input(format!("{}: {error}", path.display()), help)
        })
    }

    /// Reads a pair.
    ///
    /// # Errors
    /// It cannot be read, others can read it too, or it is no pair of keys.
    fn read(path: &Path) -> io::Result<Keys> {
        let mut file = File::open(path)?;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others can read it"));
        }
        let mut bytes = Zeroizing::new([0; LONGEST]);
        let length = file.read(&mut bytes[..])?;
        let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        let named =
            |name: &str| text.lines().find_map(|line| from_hex(line.strip_prefix(name)?.strip_prefix(' ')?));
        let pair = named("private").zip(named("public"));
        let (private, public) = pair.ok_or_else(|| io::Error::other("it is not a key file from `keygen`"))?;
        Ok(Keys { pair: handshake::Keys::new(private, *public), public: PublicKey(*public) })
    }
}
