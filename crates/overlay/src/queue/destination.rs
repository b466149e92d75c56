//! The bytes that wait for one destination of a bin, by class.

use super::Class;
use weir_base::Time;

/// The bytes that wait for one destination of a bin, and what others keep about it.
#[derive(Debug, Clone, Default)]
pub struct Destination<S> {
    pub(super) classes: [u64; 10],
    pub(super) packets: u32,
    /// When bytes for it last left or, before that, when it was first used.
    pub last_departure: Time,
    /// What the node keeps about it.
    pub state: S,
}

impl<S> Destination<S> {
    /// Bytes of a class.
    #[inline]
    pub fn bytes(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }
    /// All bytes.
    #[inline]
    pub fn total(&self) -> u64 {
        self.classes.iter().sum()
    }
    /// Bytes of packets: of sensitive classes, or of all.
    #[inline]
    pub fn real(&self, sensitive: bool) -> u64 {
        let normal = if sensitive { 0 } else { self.bytes(Class::Normal) };
        self.bytes(Class::Critical) + self.bytes(Class::Control) + self.bytes(Class::LowLatency) + normal
    }
    /// Bytes of zombies: of sensitive classes, or of all.
    #[inline]
    pub fn zombies(&self, sensitive: bool) -> u64 {
        let sum = |classes: [Class; 3]| classes.iter().map(|class| self.bytes(*class)).sum::<u64>();
        sum(Class::SENSITIVE_ZOMBIES) + if sensitive { 0 } else { sum(Class::NORMAL_ZOMBIES) }
    }
    /// Packets owed to it. Where packets are coded they are interchangeable, and this number is what counts.
    pub fn packets(&self) -> u32 {
        self.packets
    }
}
