//! Connections of `weir sliq` that take part in an application of the Coordination Protocol.

use super::args::{MemberArgs, ShareArgs};
use crate::cp::{identity, scheme};
use crate::failure::Failure;
use weir_coord::header::Version;
use weir_coord::participation::{Coordination, Identity};

/// A connection's part in its application, and its identity.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) coordination: Coordination,
    pub(super) identity: Identity,
}

impl Member {
    /// The member that the arguments name; `None` if they name no application. A server has no `share`.
    ///
    /// # Errors
    /// The key cannot be read, there is no such scheme, or the rates contradict each other.
    pub(super) fn new(args: &MemberArgs, share: Option<&ShareArgs>) -> Result<Option<Member>, Failure> {
        let Some((application, flow)) = args.application.zip(args.flow) else { return Ok(None) };
        let mut coordination = Coordination::of(application);
        if let Some(share) = share {
            if share.first_rate > share.max_rate {
                let message =
                    format!("--first-rate {} is above --max-rate {}", share.first_rate, share.max_rate);
                return Err(Failure::bad_input(message, "raise --max-rate, or lower --first-rate"));
            }
            coordination.scheme = scheme(&share.scheme)?;
            (coordination.rate, coordination.max_rate) = (share.first_rate, share.max_rate);
        }
        let identity = identity(flow, args.application_key.as_deref())?;
        Ok(Some(Member { coordination, identity }))
    }

    /// Length in bytes of the header at the start of its packets.
    pub(super) fn header(&self) -> u64 {
        let version = if self.identity.key.is_some() { Version::Two } else { Version::One };
        version.length() as u64
    }

    /// The identity of the next connection: each has its own epoch.
    pub(super) fn next_identity(&mut self) -> Identity {
        self.identity.epoch = self.identity.epoch.wrapping_add(1);
        self.identity
    }
}
