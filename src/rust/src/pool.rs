//! Several profiles as one, for analyses of all their samples: of runs that are compared, and on a page.

use crate::arena::Arena;
use crate::argument::Sexp;
use crate::{from_r, to_r};
use profile_core::error::Result;
use profile_core::limits::cancel::Stop;
use profile_core::model::Profile;

/// Checks tables of version "2.0" and reads them as one profile, which has the sources of all profiles in order. Columns
/// of users are ignored.
///
/// The combined tables are R objects, in which regular columns take little memory. R code never sees them, and they are
/// read and checked as the tables of one profile.
pub fn pooled(arena: Arena, profiles: &[Sexp], stop: Stop) -> Result<Profile> {
    if let [only] = profiles {
        return from_r::analysed(*only, stop);
    }
    let combined = from_r::with_lists(profiles, stop, |lists| {
        to_r::combined_tables(arena, lists, false, true, stop)
    })?;
    let mut profile = from_r::analysed(combined.read(), stop)?;
    from_r::assign_packages(profiles, &mut profile, stop)?;
    Ok(profile)
}
