//! The shapers of a device at a moment, without counters: two snapshots are equal if no setting was changed in between.

use crate::message::{Handle, Message};
use serde::{Deserialize, Serialize};

/// Disciplines, classes and filters of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub(crate) disciplines: Vec<Message>,
    pub(crate) classes: Vec<Message>,
    /// Filters in the order in which the kernel asks them.
    pub(crate) filters: Vec<Message>,
}

impl Snapshot {
    /// The handle and kind of a root discipline that was installed. `None` if it is the kernel's default, which has no handle.
    pub fn root(&self) -> Option<(Handle, &str)> {
        let root = self.disciplines.iter().find(|it| it.parent == Handle::ROOT && it.handle != Handle::NONE);
        root.map(|root| (root.handle, root.kind()))
    }

    /// Whether it has a class of this handle.
    pub fn has_class(&self, handle: Handle) -> bool {
        self.classes.iter().any(|class| class.handle == handle)
    }

    /// Whether it is equal to another snapshot, whatever their devices.
    pub fn is_like(&self, other: &Snapshot) -> bool {
        let without_place = |all: &[Message]| -> Vec<Message> {
            all.iter().map(|message| Message { index: 0, ..message.clone() }).collect()
        };
        let lists = |it: &Snapshot| [&it.disciplines, &it.classes, &it.filters].map(|all| without_place(all));
        lists(self) == lists(other)
    }
}
