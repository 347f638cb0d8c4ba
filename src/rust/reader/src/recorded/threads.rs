//! Adds the CPU time of the threads of a process to its source.

use super::source::attribute;
use profile_core::analysis::threads::Threads;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_core::model::{Attribute, Profile};

/// The attributes of its source.
pub fn about_threads(threads: &Threads, profile: &mut Profile) -> Result<Vec<Attribute>> {
    let mut about = Vec::new();
    for (key, kind, text) in threads.facts()? {
        about.try_push(attribute(&key, kind, &text, profile)?)?;
    }
    Ok(about)
}
