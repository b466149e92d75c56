//! Whatever stands in a line of a log of keys, it is refused with a reason, or it is the secrets of a connection that read back from their own line.
//! They open no packet that nobody has sealed with them.

use weir_sliq::secrets::{Secrets, Unsealing};

/// Reads the first line, and takes the bytes behind it for a packet.
pub(crate) fn check(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (line, packet) = (String::from_utf8_lossy(&data[..end]), data.get(end + 1..).unwrap_or_default());
    match Secrets::read(&line) {
        Ok(secrets) => {
            let again = Secrets::read(&secrets.line()).expect("it is a line");
            assert_eq!((again.connection, again.line()), (secrets.connection, secrets.line()));
            assert!(secrets.connection < 1 << 24);
            let mut reader = Unsealing::new(&secrets).expect("any 32 bytes are a secret");
            assert!(!reader.open(packet, &mut vec![]));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
