//! Aggregation: equal samples become one, with the sums of their values.
//!
//! Which samples are equal depends on the format, which says so by an [`Identity`] made of
//! the numbers that it gives to stacks, labels and so on. What is the same for all formats
//! is here: sums are checked, and what is 0 is left out.
//!
//! Samples can cancel each other out, which is known only at the end, when stacks and
//! strings that only they need have their numbers already. [`without_zeros`] then starts
//! anew without these samples, so that the output does not depend on what is not in it.

use super::sample_types::WrittenType;
use crate::collections::{Interner, Lists};
use crate::error::{Error, Result};
use crate::limits::memory::{TryGrow, filled};
use crate::message;
use crate::model::SourceId;
use std::hash::Hash;

const WHAT: &str = "samples";
const SUMS: &str = "sample values";

/// What tells samples apart.
pub trait Identity: Copy + Eq + Hash {
    /// Whether the values of equal samples are summed. If not, each keeps its own.
    fn is_summed(&self) -> bool {
        true
    }
}

/// Which samples are not written, by row.
pub struct LeftOut(Vec<bool>);

impl LeftOut {
    #[inline]
    pub fn contains(&self, row: usize) -> bool {
        self.0[row]
    }

    #[inline]
    pub fn add(&mut self, row: usize) {
        self.0[row] = true;
    }
}

/// What `attempt` makes of the samples that are not left out. It gives `None` when it has
/// found more to leave out, see [`Groups::leave_out_zeros`].
pub fn without_zeros<T>(
    samples: usize,
    mut attempt: impl FnMut(&mut LeftOut) -> Result<Option<T>>,
) -> Result<T> {
    let mut left_out = LeftOut(filled(samples, false, WHAT)?);
    loop {
        if let Some(made) = attempt(&mut left_out)? {
            return Ok(made);
        }
    }
}

/// Equal samples, in the order of the first of each group.
pub struct Groups<'t, 'a, Id> {
    types: &'t [&'t WrittenType<'a>],
    identities: Interner<Vec<Id>>,
    /// For each group as many values as types; 0 where they are not summed.
    sums: Vec<i64>,
    /// The group and the row of each sample.
    samples: Vec<(u32, usize)>,
}

impl<'t, 'a, Id: Identity> Groups<'t, 'a, Id> {
    pub fn new(types: &'t [&'t WrittenType<'a>]) -> Groups<'t, 'a, Id> {
        Groups {
            types,
            identities: Interner::default(),
            sums: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// Adds a sample with its values, one for each type.
    pub fn add(&mut self, row: usize, identity: Id, values: &[i64]) -> Result<()> {
        let width = self.types.len();
        let group = self.identities.intern(identity)?;
        self.sums.try_fill(self.identities.len() * width, 0, SUMS)?;
        self.samples.try_push((group, row), WHAT)?;
        if identity.is_summed() {
            let sums = &mut self.sums[group as usize * width..][..width];
            for ((sum, &value), type_) in sums.iter_mut().zip(values).zip(self.types) {
                *sum = sum
                    .checked_add(value)
                    .ok_or_else(|| too_large(type_, row))?;
            }
        }
        Ok(())
    }

    /// Each group's identity and sums.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Id, &[i64])> {
        let width = self.types.len();
        let sums = move |group: usize| &self.sums[group * width..][..width];
        self.identities
            .iter()
            .enumerate()
            .map(move |(group, &identity)| (identity, sums(group)))
    }

    /// The samples of each group in their order, as numbers for [`row()`](Groups::row).
    pub fn samples(&self) -> Result<Lists<u32>> {
        let group_of = self.samples.iter().map(|&(group, _)| group as usize);
        Lists::grouped(self.identities.len(), group_of, WHAT)
    }

    /// The row of a sample.
    pub fn row(&self, sample: u32) -> usize {
        self.samples[sample as usize].1
    }

    /// Leaves out the samples whose sums are all 0; says whether there are any.
    pub fn leave_out_zeros(&self, left_out: &mut LeftOut) -> Result<bool> {
        let mut zeros = filled(self.identities.len(), false, WHAT)?;
        for ((identity, sums), zero) in self.iter().zip(&mut zeros) {
            *zero = identity.is_summed() && is_zero(sums);
        }
        for &(group, row) in &self.samples {
            if zeros[group as usize] {
                left_out.add(row);
            }
        }
        Ok(zeros.contains(&true))
    }
}

pub fn is_zero(values: &[i64]) -> bool {
    values.iter().all(|&value| value == 0)
}

/// Fills `values` with those of a sample, one for each type.
#[inline]
pub fn values_of(
    types: &[&WrittenType],
    row: usize,
    source: SourceId,
    values: &mut Vec<i64>,
) -> Result<()> {
    values.clear();
    for type_ in types {
        values.try_push(type_.value(row, source)?, SUMS)?;
    }
    Ok(())
}

#[cold]
fn too_large(type_: &WrittenType, row: usize) -> Error {
    Error::Lossy(message!(
        "The sum of type `{}` passes 2^63 at sample {}; pprof and OpenTelemetry hold no larger \
         numbers.",
        type_.name,
        row + 1
    ))
}
