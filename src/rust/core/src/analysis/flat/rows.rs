//! The rows of sums and frames.

use super::origins::Origin;
use crate::error::Result;
use crate::limits::memory::{TryGrow, filled, sort_by_key};
use crate::model::{LocationId, StringId};

/// The sum of the values of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sum {
    pub group: Group,
    /// An index of `types`.
    pub type_: usize,
    pub value: f64,
    pub samples: u32,
}

/// What the samples of a sum have in common. The fields are in the order in which rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// An index of `origins`.
    pub origin: u32,
    /// Minutes since 1970, if the time is known.
    pub minute: Option<i64>,
    /// An index of `stack_keys`.
    pub stack: u32,
    /// An index of `label_keys`.
    pub labels: Option<u32>,
    pub trace: Option<StringId>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub origin: u32,
    pub stack: u32,
    /// 1 for the innermost frame.
    pub depth: u32,
    pub location: LocationId,
}

/// The pairs of a service and a value that occur in sums, sorted. A service is the first origin that has it.
pub(super) fn pairs_with_services(
    origins: &[Origin],
    sums: &[Sum],
    value: impl Fn(&Group) -> Option<u32>,
) -> Result<Vec<(u32, u32)>> {
    let mut first = filled(origins.len(), 0_u32)?;
    for index in 1..origins.len() {
        let same = origins[index].service == origins[index - 1].service;
        first[index] = if same { first[index - 1] } else { index as u32 };
    }
    // The service with which each value was seen last: the sums of a service follow each other.
    let mut last = Vec::new();
    let mut pairs = Vec::new();
    for sum in sums {
        let Some(value) = value(&sum.group) else {
            continue;
        };
        if last.len() <= value as usize {
            last.try_fill(value as usize + 1, None)?;
        }
        let service = first[sum.group.origin as usize];
        if last[value as usize].replace(service) != Some(service) {
            pairs.try_push((service, value))?;
        }
    }
    sort_by_key(&mut pairs, |pair| *pair)?;
    Ok(pairs)
}
