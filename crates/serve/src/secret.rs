//! A secret by which requests are told apart: who has not been given the address cannot guess it.

use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::io;
use subtle::ConstantTimeEq;
use weir_base::Hex;

/// Bytes of a secret: 128 bits cannot be guessed.
const BYTES: usize = 16;

/// A random secret, as hexadecimal digits.
pub(crate) struct Secret(String);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub(crate) fn new() -> io::Result<Secret> {
        let mut bytes = [0; BYTES];
        // So few bytes come at once or not at all.
        if getrandom(&mut bytes, GetRandomFlags::empty())? != BYTES {
            return Err(io::Error::other("the system gave too few random bytes"));
        }
        Ok(Secret(Hex(&bytes).to_string()))
    }

    /// Whether a text is the secret. The time that this takes tells nothing but the length.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
