//! The destination of a circuit: an address, or a prefix of addresses. The longest prefix that contains an address decides, as in
//! routing.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A prefix of IP addresses, with the bits after it clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    address: IpAddr,
    length: u8,
}

/// A text that is no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// The text has no address, or no number after the slash.
    #[error("`{0}` is not an address or a prefix; write it like 10.1.2.3 or 10.1.0.0/16")]
    Unreadable(String),
    /// The prefix has more bits than an address.
    #[error("`{text}`: a prefix of this kind has at most {most} bits")]
    TooLong {
        /// The given text.
        text: String,
        /// The bits of an address.
        most: u8,
    },
    /// The address has bits beyond the prefix.
    #[error("`{text}` has bits beyond its prefix; `{meant}` was probably meant")]
    Beyond {
        /// The given text.
        text: String,
        /// The prefix alone.
        meant: Destination,
    },
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first `length` bits of an address.
fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

impl Destination {
    /// The first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }
    /// Whether the prefix contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.length) == self.address
    }
    /// Length of the prefix in bits.
    pub fn length(&self) -> u8 {
        self.length
    }
}

impl FromStr for Destination {
    type Err = DestinationError;
    fn from_str(text: &str) -> Result<Destination, DestinationError> {
        let unreadable = || DestinationError::Unreadable(text.to_owned());
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| unreadable())?;
        let most = bits_of(address);
        let length = match length {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| unreadable())?
            }
            Some(_) => return Err(unreadable()),
            None => most,
        };
        if length > most {
            return Err(DestinationError::TooLong { text: text.to_owned(), most });
        }
        let meant = Destination { address: masked(address, length), length };
        if meant.address == address {
            Ok(meant)
        } else {
            Err(DestinationError::Beyond { text: text.to_owned(), meant })
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        if self.length < bits_of(self.address) { write!(f, "/{}", self.length) } else { Ok(()) }
    }
}

impl Serialize for Destination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_prefixes_are_read_as_they_are_written() {
        for text in ["10.1.2.3", "10.1.0.0/16", "0.0.0.0/0", "2001:db8::1", "2001:db8::/32", "::/0"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        assert_eq!("10.1.2.3/32".parse::<Destination>(), "10.1.2.3".parse());
    }

    #[test]
    fn an_invalid_prefix_is_refused_with_the_reason() {
        let error = |text: &str| text.parse::<Destination>().unwrap_err().to_string();
        assert!(error("10.1.2.3/16").contains("`10.1.0.0/16` was probably meant"));
        assert!(error("10.1.2.3/33").contains("at most 32 bits"));
        assert!(error("2001:db8::/129").contains("at most 128 bits"));
        for text in ["", "/", "10.1.2", "10.1.2.3/", "10.1.2.3/-1", "10.1.2.3/x", "10.1.2.3/999", "host"] {
            assert!(error(text).contains("is not an address"), "{text}");
        }
    }
}
