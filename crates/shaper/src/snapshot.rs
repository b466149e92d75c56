//! What shapes a device at a moment, without what is counted: two of them are equal when nothing was set in between.

use crate::message::{Handle, Message};
use serde::{Deserialize, Serialize};

/// Disciplines, classes and filters of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub(crate) disciplines: Vec<Message>,
    pub(crate) classes: Vec<Message>,
    /// In the order in which they are asked.
    pub(crate) filters: Vec<Message>,
}

impl Snapshot {
    /// The root discipline that somebody has put there, and its kind. `None` where it is the kernel's default, which has no handle.
    pub fn root(&self) -> Option<(Handle, &str)> {
        let root = self.disciplines.iter().find(|it| it.parent == Handle::ROOT && it.handle != Handle::NONE);
        root.map(|root| (root.handle, root.kind()))
    }

    /// Whether it has a class of this handle.
    pub fn has_class(&self, handle: Handle) -> bool {
        self.classes.iter().any(|class| class.handle == handle)
    }

    /// Whether it would be the same on another device.
    pub fn is_like(&self, other: &Snapshot) -> bool {
        let without_place = |all: &[Message]| -> Vec<Message> {
            all.iter().map(|message| Message { index: 0, ..message.clone() }).collect()
        };
        let lists = |it: &Snapshot| [&it.disciplines, &it.classes, &it.filters].map(|all| without_place(all));
        lists(self) == lists(other)
    }
}
