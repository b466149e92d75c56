//! Classes that take turns, in the order of their identifiers, with the one whose turn it is.

/// A sorted list: nothing is allocated once it has been as long as it gets.
#[derive(Debug, Default)]
pub(super) struct Feed {
    ids: Vec<u32>,
    /// Whose turn it is; none after the last one's.
    turn: Option<u32>,
    /// Who had the turn when it was taken out, while nobody has it.
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

    /// Takes one out of a class's feed: whoever comes next after it has the turn when it had.
    pub(super) fn remove(&mut self, id: u32) {
        if self.turn == Some(id) {
            (self.turn, self.resume) = (None, Some(id));
        }
        self.ids.retain(|other| *other != id);
    }

    /// Takes one out of a row: its turn passes on at once.
    pub(super) fn remove_from_row(&mut self, id: u32) {
        if self.turn == Some(id) {
            self.turn = self.after(id);
        }
        self.ids.retain(|other| *other != id);
    }

    fn after(&self, id: u32) -> Option<u32> {
        self.ids.get(self.ids.partition_point(|other| *other <= id)).copied()
    }

    /// The turn passes on; to nobody after the last.
    pub(super) fn advance(&mut self) {
        self.turn = self.turn.and_then(|id| self.after(id));
    }

    /// Whose turn it is, if it is anybody's.
    pub(super) fn turn(&mut self) -> Option<u32> {
        if let (None, Some(id)) = (self.turn, self.resume) {
            self.turn = self.ids.get(self.ids.partition_point(|other| *other < id)).copied();
        }
        self.resume = None;
        self.turn
    }

    /// The turn is the first one's.
    pub(super) fn rewind(&mut self) {
        self.turn = self.ids.first().copied();
    }

    /// Forgets whose turn it is.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        (self.turn, self.resume) = (None, None);
    }
}
