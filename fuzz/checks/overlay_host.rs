//! Whatever stands in a node's file, is asked at its control socket, or is told by hosts of groups (IGMP): it is read, or refused in words,
//! and nothing panics. The first byte says which of the three the rest is.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;
use weir_daemon::overlay::{asked_again, public_lines, told_of};
use weir_daemon::transfer::Keys;
use weir_overlay::site::datagram::checksum;
use weir_overlay::site::igmp;

/// A folder with the keys `a.key` and `b.key`, and the lines of each.
fn keys() -> &'static (tempfile::TempDir, [String; 2]) {
    static KEYS: OnceLock<(tempfile::TempDir, [String; 2])> = OnceLock::new();
    KEYS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let lines = ["a", "b"].map(|name| {
            let keys = Keys::generate(&folder.path().join(format!("{name}.key"))).expect("keys");
            public_lines(&keys).expect("public keys")
        });
        (folder, lines)
    })
}

pub(crate) fn check(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 3 {
        0 => file(&String::from_utf8_lossy(rest)),
        1 => question(rest),
        _ => groups(rest),
    }
}

/// In the text `@a` and `@b` stand for the public keys of nodes.
fn file(text: &str) {
    let (folder, [a, b]) = keys();
    let path: PathBuf = folder.path().join("a.toml");
    match told_of(&path, &text.replace("@a", a).replace("@b", b)) {
        Ok(told) => assert!(told.starts_with("node "), "{told}"),
        Err(failure) => assert!(!failure.message.is_empty()),
    }
}

fn question(bytes: &[u8]) {
    match asked_again(bytes) {
        Ok(again) => assert_eq!(asked_again(&again), Ok(again.clone())),
        Err(why) => assert!(!why.is_empty()),
    }
}

/// A datagram; its checksums are made right, since hosts' kernels make them so.
fn groups(bytes: &[u8]) {
    let mut datagram = bytes.to_vec();
    if datagram.len() >= 20 {
        let length = datagram.len().min(1 << 15) as u16;
        datagram[2..4].copy_from_slice(&length.to_be_bytes());
        let header = usize::from(datagram[0] & 15) * 4;
        if let Some(message) = datagram.get_mut(header..).filter(|message| message.len() >= 8) {
            message[2..4].fill(0);
            let sum = checksum(message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
    }
    let mut told = BTreeSet::new();
    let mut count = 0;
    igmp::read(&datagram, |group, is_member| {
        told.insert((group, is_member));
        count += 1;
    });
    // A record of a group takes eight bytes.
    assert!(count <= datagram.len() / 8 && told.len() <= count);
}
