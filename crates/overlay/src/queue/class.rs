//! The ten latency classes of a bin (digest A 1.2): four hold packets, six count zombie bytes.

/// A latency class, in the order of service (digest A 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Sensitive packets whose only useful next hops were already visited.
    Critical,
    /// Packets of the overlay's own control.
    Control,
    /// Sensitive packets, by how little time they have left.
    LowLatency,
    /// Zombies in place of packets that were too late.
    Expired,
    /// Zombies against starvation, sensitive.
    StarvedSensitive,
    /// Zombies that stand for depth without delay, sensitive.
    VirtualSensitive,
    /// All other packets, first in, first out.
    Normal,
    /// Zombies from neighbours.
    Received,
    /// Zombies against starvation.
    Starved,
    /// Zombies that stand for depth without delay.
    Virtual,
}

impl Class {
    /// All classes, in the order of service.
    pub const ALL: [Class; 10] = [
        Class::Critical,
        Class::Control,
        Class::LowLatency,
        Class::Expired,
        Class::StarvedSensitive,
        Class::VirtualSensitive,
        Class::Normal,
        Class::Received,
        Class::Starved,
        Class::Virtual,
    ];
    /// The classes that hold packets.
    pub const REAL: [Class; 4] = [Class::Critical, Class::Control, Class::LowLatency, Class::Normal];
    /// Zombie classes of sensitive traffic, in the order in which they leave.
    pub const SENSITIVE_ZOMBIES: [Class; 3] =
        [Class::Expired, Class::StarvedSensitive, Class::VirtualSensitive];
    /// Zombie classes of other traffic, in the order in which they leave.
    pub const NORMAL_ZOMBIES: [Class; 3] = [Class::Received, Class::Starved, Class::Virtual];

    /// Whether it counts in the depth of sensitive traffic.
    pub const fn is_sensitive(self) -> bool {
        (self as u8) <= Class::VirtualSensitive as u8
    }
    /// Whether it holds packets; if not, it counts zombie bytes.
    pub const fn is_real(self) -> bool {
        matches!(self, Class::Critical | Class::Control | Class::LowLatency | Class::Normal)
    }
    /// The list of a class that holds packets.
    pub(super) const fn list(self) -> usize {
        match self {
            Class::Critical => 0,
            Class::Control => 1,
            Class::LowLatency => 2,
            _ => 3,
        }
    }
}
