//! An instant of civil time in whole seconds, always UTC: reservations must mean the same everywhere and in every season.

use chrono::{DateTime, NaiveDateTime};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use weir_base::Span;

/// Seconds since 1970-01-01T00:00:00Z, as POSIX counts them, up to the end of the year 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Utc(u64);

/// A text that is no instant of UTC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time in UTC; write it like 2026-11-23T10:00Z")]
pub struct UtcError(String);

/// 9999-12-31T23:59:59Z, the last that is written with four digits.
const LAST: u64 = 253_402_300_799;
/// Accepted formats: with and without seconds, with T or a space.
const FORMATS: [&str; 4] = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];

impl Utc {
    /// The instant this many seconds after the beginning of 1970, at most the end of 9999.
    pub fn from_secs(secs: u64) -> Utc {
        Utc(secs.min(LAST))
    }
    /// Seconds since the beginning of 1970.
    pub fn as_secs(self) -> u64 {
        self.0
    }
    /// The instant `span` later; fractions of a second are cut off. `None` beyond the end of 9999.
    pub fn after(self, span: Span) -> Option<Utc> {
        let secs = self.0.checked_add(span.as_millis() / 1000)?;
        (secs <= LAST).then_some(Utc(secs))
    }
    /// The end of the year 9999, which no instant is after.
    pub fn last() -> Utc {
        Utc(LAST)
    }
    /// The time since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Utc) -> Span {
        Span::from_secs(self.0.saturating_sub(earlier.0).min(u64::MAX / 1_000_000_000))
    }
}

impl FromStr for Utc {
    type Err = UtcError;
    fn from_str(text: &str) -> Result<Utc, UtcError> {
        let error = || UtcError(text.to_owned());
        let civil = text.trim().strip_suffix(['Z', 'z']).ok_or_else(error)?.trim_end();
        let parse = |format: &&str| NaiveDateTime::parse_from_str(civil, format).ok();
        let parsed = FORMATS.iter().find_map(parse).ok_or_else(error)?;
        let secs = u64::try_from(parsed.and_utc().timestamp()).map_err(|_| error())?;
        if secs > LAST { Err(error()) } else { Ok(Utc(secs)) }
    }
}

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = i64::try_from(self.0).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
        match civil {
            Some(civil) => write!(f, "{}", civil.format("%Y-%m-%dT%H:%M:%SZ")),
            None => write!(f, "{} s", self.0),
        }
    }
}

impl Serialize for Utc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_they_are_written() {
        for (text, secs) in [
            ("1970-01-01T00:00:00Z", 0),
            // 20,000 days: 2024-10-04.
            ("2024-10-04T00:00:00Z", 20_000 * 86_400),
            ("2024-02-29T12:30:15Z", 1_709_209_815),
            ("9999-12-31T23:59:59Z", LAST),
        ] {
            let utc: Utc = text.parse().unwrap();
            assert_eq!((utc.as_secs(), utc.to_string()), (secs, text.to_owned()));
        }
        let short: Utc = "2024-02-29 12:30Z".parse().unwrap();
        assert_eq!(short.after(Span::from_secs(15)), "2024-02-29T12:30:15Z".parse().ok());
    }

    #[test]
    fn no_instant_is_after_the_year_9999() {
        let eve: Utc = "9999-12-31T23:00Z".parse().unwrap();
        assert_eq!(eve.after(Span::from_secs(3599)), Some(Utc::last()));
        assert_eq!(eve.after(Span::from_secs(3600)), None);
    }

    #[test]
    fn an_instant_that_is_not_utc_is_refused() {
        let wrong = [
            "",
            "Z",
            "now",
            "2026-11-23T10:00",
            "2026-11-23T10:00+01:00",
            "2026-02-30T10:00Z",
            "1969-12-31T23:59:59Z",
            "10000-01-01T00:00Z",
            "2026-11-23T25:00Z",
        ];
        for text in wrong {
            assert!(text.parse::<Utc>().is_err(), "{text}");
        }
    }
}
