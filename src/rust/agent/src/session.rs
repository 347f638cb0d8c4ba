//! What takes the samples of this process: the reader, see `own_session.rs`, or in tests a session that follows a script.

use profile_core::error::Result;
use profile_core::model::Profile;
use profile_reader::recorded::result::Tick;
use std::time::Instant;

/// Takes samples, and adds them to a profile that is empty at first.
pub trait Session {
    /// Finds, while R runs, what the reader needs to report complete stacks from the first sample on.
    fn prepare(&mut self) -> Result<()>;

    /// Adds a sample, if there is one now.
    fn tick(&mut self, profile: &mut Profile) -> Result<Tick>;

    /// Whether the system does not permit to see what samples wait for.
    fn is_wait_refused(&self) -> bool;

    /// Continues in another profile.
    fn continue_in(&mut self, profile: &mut Profile) -> Result<()>;

    /// Continues in another profile, with a new session. This frees what the reader has cached about objects that no longer exist.
    fn reopen(&mut self, profile: &mut Profile) -> Result<()>;

    /// Excludes the time since the last tick.
    fn skip_gap(&mut self);

    /// Stores in the profile when the recording ended, and the CPU time of its samples.
    fn finish_at(&mut self, end: Instant, profile: &mut Profile) -> Result<()>;
}
