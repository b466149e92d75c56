//! A bucket of tokens, as policers have it (RFC 2697, section 3). Tokens are counted in billionths, so that a rate a second gives whole ones
//! each nanosecond and nothing is rounded.

use crate::Span;

/// A token in billionths.
const TOKEN: u128 = 1_000_000_000;

/// A bucket of tokens: bits or packets, say.
#[derive(Debug, Clone)]
pub struct Bucket {
    size: u128,
    tokens: u128,
}

impl Bucket {
    /// A full one, with room for so many tokens.
    pub fn full(size: u128) -> Bucket {
        let size = size.saturating_mul(TOKEN);
        Bucket { size, tokens: size }
    }

    /// Adds what a rate in tokens a second gives in this time. Returns the billionths for which there is no room.
    pub fn fill(&mut self, rate: u64, time: Span) -> u128 {
        self.add(u128::from(rate) * u128::from(time.as_nanos()))
    }

    /// Adds billionths of tokens, and returns those for which there is no room.
    pub fn add(&mut self, billionths: u128) -> u128 {
        let room = self.size - self.tokens;
        self.tokens += billionths.min(room);
        billionths.saturating_sub(room)
    }

    /// Whether there are so many tokens.
    pub fn has(&self, tokens: u128) -> bool {
        self.tokens >= tokens.saturating_mul(TOKEN)
    }

    /// Takes this many tokens out, if there are enough; otherwise returns false and takes none.
    pub fn covers(&mut self, tokens: u128) -> bool {
        let covered = self.has(tokens);
        if covered {
            self.tokens -= tokens * TOKEN;
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_no_more_than_its_size_and_gives_no_more_than_it_holds() {
        let mut bucket = Bucket::full(10);
        assert!(!bucket.covers(11) && bucket.covers(10) && !bucket.has(1));
        // A third of a second at 30 a second is less than 10 tokens by 10 billionths.
        assert_eq!(bucket.fill(30, Span::from_nanos(333_333_333)), 0);
        assert!(bucket.has(9) && !bucket.has(10));
        assert_eq!(bucket.fill(30, Span::from_nanos(1)), 20);
        assert!(bucket.covers(10));
        assert_eq!(bucket.add(11 * TOKEN), TOKEN);
    }
}
