//! Bytes as hexadecimal digits.

use std::fmt;

/// Shows bytes with two hexadecimal digits each, in lower case: `Hex(&[1, 0xab])` is `01ab`.
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[test]
fn each_byte_has_two_digits() {
    assert_eq!(Hex(&[0, 1, 0xab, 0xff]).to_string(), "0001abff");
    assert_eq!(Hex(&[]).to_string(), "");
}
