//! Whatever is sent to a live run's control socket is a request that reads back as it was written, or is refused with a reason. Whatever
//! change it asks for is one that a link can make, or is refused with its place.

use weir_base::Time;
use weir_live::control::Request;
use weir_plan::{Link, change};

/// Reads a request, and the change in it.
pub(crate) fn check(bytes: &[u8]) {
    match Request::parse(bytes) {
        Ok(request) => {
            assert_eq!(Request::parse(request.to_string().as_bytes()), Ok(request.clone()));
            let Request::Set { change: line, .. } = request else { return };
            match change(&line, &Link::plain("down", 0, 1), Time::ZERO) {
                Ok(change) => assert!(change.at.is_zero() && change.trace.is_none(), "{change:?}"),
                Err(found) => assert!(!found.problems().is_empty() && !found.to_string().is_empty()),
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
}
