//! Bounds that tests hold against every controller of the registry, and the controllers that do not meet one by design. A design that
//! cannot meet a bound states it here, with the reason; the test then leaves it out.

/// A bound that every controller must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// A larger segment size keeps the window in segments, as in Linux.
    SegmentsAtANewMss,
    /// Alone on a clean link it takes three quarters of the rate, and half with marks.
    ShareAlone,
    /// Alone before a buffer of one bandwidth-delay product it keeps the link 90 % busy and loses few packets.
    BusyAlone,
    /// Alone before a buffer of a quarter of that it stays within the buffer.
    ShallowBuffer,
    /// Alone at a marking threshold it loses no packet.
    NoLossAtMarks,
}

/// The exemptions: controller, bound and reason.
const EXEMPT: &[(&str, Bound, &str)] = &[(
    "ctcp",
    Bound::SegmentsAtANewMss,
    "a circuit's window is its bandwidth-delay product in bytes, whatever the segments",
)];

/// Why the controller of this name need not meet a bound; `None` if it must.
pub fn exempt(controller: &str, bound: Bound) -> Option<&'static str> {
    let found = EXEMPT.iter().find(|(name, from, _)| *name == controller && *from == bound);
    found.map(|(.., reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exemptions_are_of_known_controllers_and_have_reasons() {
        for (name, _, reason) in EXEMPT {
            assert!(crate::Config::members().iter().any(|member| member.name == *name), "{name}");
            assert!(reason.len() > 20, "{name}: {reason}");
        }
    }
}
