//! What can be asked of a run about its links: one line of text.

use std::fmt;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// What the run is, and how its links are now.
    Show,
    /// Changes a link.
    Set {
        /// The link's name.
        link: String,
        /// The change, in one line as [`weir_plan::change`] reads it.
        change: String,
    },
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Show => f.write_str("show"),
            Request::Set { link, change } => write!(f, "set {link} {change}"),
        }
    }
}

impl Request {
    /// Reads a request, whatever the bytes are.
    ///
    /// # Errors
    /// The bytes are no request; the text says why.
    pub fn parse(bytes: &[u8]) -> Result<Request, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the request is not UTF-8")?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        if text.contains(char::is_control) {
            return Err("the request is not one line of text".into());
        }
        match text.split_once(' ') {
            None if text == "show" => Ok(Request::Show),
            Some(("set", rest)) => match rest.split_once(' ') {
                Some((link, change)) if !link.is_empty() && !change.trim().is_empty() => {
                    Ok(Request::Set { link: link.into(), change: change.into() })
                }
                _ => Err("a change has the name of a link, and the link's new settings".into()),
            },
            _ => Err("the request is neither `show` nor `set`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_it_was_written() {
        let set = Request::Set { link: "down".into(), change: "rate=5mbit loss=1%".into() };
        for request in [Request::Show, set] {
            assert_eq!(Request::parse(request.to_string().as_bytes()), Ok(request));
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bytes in [
            &b""[..],
            b"list",
            b"set",
            b"set down",
            b"set down ",
            b"set  rate=1mbit",
            b"show\0",
            b"\xff",
            b"show\nshow",
        ] {
            assert!(Request::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
