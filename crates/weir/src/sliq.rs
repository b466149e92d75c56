//! `weir sliq`: the transport SLIQ between hosts: files, streams and measurements; and its plan for a given channel.

mod args;
mod connect;
mod frames;
mod member;
mod perf;
mod plan;
mod received;
mod send;
mod serve;

pub(crate) use args::SliqArgs;

use crate::failure::Failure;
use args::SliqAction;

/// Runs `weir sliq`.
pub(crate) fn sliq(action: &SliqAction) -> Result<(), Failure> {
    match action {
        SliqAction::Plan(args) => plan::plan(args),
        SliqAction::Keygen(args) => crate::transfer::keygen(&args.file),
        SliqAction::Serve(args) => serve::serve(args),
        SliqAction::Send(args) => send::send(args),
        SliqAction::Perf(args) => perf::perf(args),
    }
}
