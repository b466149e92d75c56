//! A BLAKE3 digest of a block or a file.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt;
use std::str::FromStr;

/// 32 bytes; two digests are compared in constant time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(blake3::Hash);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(blake3::hash(bytes))
    }

    /// The digest of a whole: of the digests of its parts, one after another.
    pub fn of_all(parts: impl IntoIterator<Item = Digest>) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part.0.as_bytes());
        }
        Digest(hasher.finalize())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Digest {
    type Err = DigestError;
    fn from_str(text: &str) -> Result<Digest, DigestError> {
        blake3::Hash::from_hex(text).map(Digest).map_err(|_| DigestError)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
