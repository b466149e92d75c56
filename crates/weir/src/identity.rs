//! Which build of weir this is: runs of different builds are never mixed in one result folder.

use std::hash::{DefaultHasher, Hasher};
use std::sync::OnceLock;

/// The version, and a hash of the program itself.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        hasher.write(&program);
        format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
    })
}
