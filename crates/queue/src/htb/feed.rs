//! A round of classes, in the order of their identifiers, with the class whose turn it is.

/// A sorted list. It allocates only when it grows beyond its longest length so far.
#[derive(Debug, Default)]
pub(super) struct Feed {
    ids: Vec<u32>,
    /// The class whose turn it is; `None` after the last one's turn.
    turn: Option<u32>,
    /// The class that had the turn when it was removed; `None` once another has the turn.
    resume: Option<u32>,
}

impl Feed {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn insert(&mut self, id: u32) {
        if let Err(place) = self.ids.binary_search(&id) {
            self.ids.insert(place, id);
        }
    }

    /// Removes a class from its parent's feed. If it had the turn, the next class has it.
    pub(super) fn remove(&mut self, id: u32) {
        if self.turn == Some(id) {
            (self.turn, self.resume) = (None, Some(id));
        }
        self.ids.retain(|other| *other != id);
    }

    /// Removes a class from a row; its turn passes on at once.
    pub(super) fn remove_from_row(&mut self, id: u32) {
        if self.turn == Some(id) {
            self.turn = self.after(id);
        }
        self.ids.retain(|other| *other != id);
    }

    fn after(&self, id: u32) -> Option<u32> {
        self.ids.get(self.ids.partition_point(|other| *other <= id)).copied()
    }

    /// Passes the turn on; no class has it after the last.
    pub(super) fn advance(&mut self) {
        self.turn = self.turn.and_then(|id| self.after(id));
    }

    /// The class whose turn it is; `None` after the last one's turn.
    pub(super) fn turn(&mut self) -> Option<u32> {
        if let (None, Some(id)) = (self.turn, self.resume) {
            self.turn = self.ids.get(self.ids.partition_point(|other| *other < id)).copied();
        }
        self.resume = None;
        self.turn
    }

    /// Gives the first class the turn.
    pub(super) fn rewind(&mut self) {
        self.turn = self.ids.first().copied();
    }

    /// Removes all classes.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        (self.turn, self.resume) = (None, None);
    }
}
