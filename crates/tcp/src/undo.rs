//! The undo of an unnecessary reduction (`tcp_may_undo`): either every retransmission was reported as a duplicate (DSACK, RFC
//! 3708), or an acknowledgement echoes a timestamp from before the first retransmission (Eifel, RFC 3522).

/// State of the last reduction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Undo {
    /// First unacknowledged position when the reduction began; `None` if nothing can be undone.
    pub(crate) marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; `None` before the first retransmission.
    pub(crate) retrans: Option<u32>,
    /// Timestamp of the first retransmission of this episode; `None` before it.
    pub(crate) stamp: Option<u32>,
    /// Whether the reduction was a reaction to loss. A reduction by ECN is not undone.
    pub(crate) reversible: bool,
}

impl Undo {
    /// A reduction begins (`tcp_init_undo`); `retrans` retransmissions are already out.
    pub(crate) fn begin(&mut self, una: u64, retrans: u32) {
        self.marker = Some(una);
        self.retrans = (retrans > 0).then_some(retrans);
    }

    /// A segment is retransmitted.
    pub(crate) fn on_retransmit(&mut self, tick: u32) {
        self.stamp.get_or_insert(tick);
        self.retrans = Some(self.retrans.unwrap_or(0) + 1);
    }

    /// A duplicate of `segments` segments that ends at position `end` was reported.
    pub(crate) fn on_duplicate(&mut self, end: u64, segments: u32) {
        if let (Some(marker), Some(retrans)) = (self.marker, &mut self.retrans)
            && end > marker
        {
            *retrans = retrans.saturating_sub(segments);
        }
    }

    /// Whether every retransmission has been reported as a duplicate.
    pub(crate) fn all_duplicates(&self) -> bool {
        self.marker.is_some() && self.retrans == Some(0)
    }

    /// Whether an original segment caused the acknowledgement, or nothing was retransmitted (`tcp_packet_delayed`).
    pub(crate) fn original_arrived(&self, echoed: u32) -> bool {
        self.stamp.is_none_or(|stamp| before(echoed, stamp))
    }

    /// Whether the reduction was unnecessary (`tcp_may_undo`).
    pub(crate) fn may(&self, echoed: u32) -> bool {
        self.marker.is_some() && (self.retrans == Some(0) || self.original_arrived(echoed))
    }
}

/// Whether an echoed tick is earlier than `tick`; an echo of 0 is none.
pub(crate) fn before(echoed: u32, tick: u32) -> bool {
    echoed != 0 && (echoed.wrapping_sub(tick) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_of_all_retransmissions_permit_an_undo() {
        let mut undo = Undo::default();
        undo.begin(100, 0);
        undo.on_retransmit(50);
        undo.on_retransmit(51);
        undo.on_duplicate(200, 1);
        assert!(!undo.may(60));
        undo.on_duplicate(90, 1);
        assert!(!undo.may(60), "a duplicate from before the marker does not count");
        undo.on_duplicate(300, 1);
        assert!(undo.may(60));
    }

    #[test]
    fn an_echo_from_before_the_first_retransmission_permits_an_undo() {
        let mut undo = Undo::default();
        undo.begin(100, 0);
        undo.on_retransmit(50);
        assert!(undo.may(49));
        assert!(!undo.may(50));
        assert!(!undo.may(0));
    }
}
