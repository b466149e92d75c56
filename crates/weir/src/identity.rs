//! Which build of weir this is: runs of different builds are never mixed in one result folder.

use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::sync::OnceLock;
use twox_hash::XxHash64;

/// Read piece by piece: the program with its line tables is tens of megabytes, whose pages cost more than their hash.
const PIECE: usize = 1 << 17;

/// The version, and a hash of the program itself.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| format!("{} {:016x}", env!("CARGO_PKG_VERSION"), hash_of_program().unwrap_or(0)))
}

fn hash_of_program() -> std::io::Result<u64> {
    let mut program = File::open(std::env::current_exe()?)?;
    let mut hasher = XxHash64::with_seed(0);
    let mut piece = vec![0; PIECE];
    loop {
        match program.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(&piece[..length]),
        }
    }
}
