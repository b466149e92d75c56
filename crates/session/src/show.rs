//! How a session is shown while it is under way.

use crate::completion::Completion;

/// Shows a session to the user. All but [`Show::tell`] is called from several threads.
pub trait Show: Sync {
    /// A note or a warning, before the runs.
    fn tell(&self, text: &str);
    /// A run has come further.
    fn changed(&self, runs: &Completion);
    /// Called now and then, while no run that must have the machine for itself is under way.
    fn tick(&self, runs: &Completion);
    /// The runs have ended.
    fn ended(&self);
}
