//! What is read so far of a file, of one message or several.

use super::budget::Budget;
use crate::collections::{Index, next_row};
use crate::error::Error;
use crate::formats::format::Format;
use crate::formats::problems::Problems;
use crate::io::input::Origin;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{Profile, SampleType, Values};
use crate::protobuf::decode::Result as WireResult;

/// More sample types than any profiler has; each is a column of all samples.
pub const MOST_TYPES: usize = 1000;

pub struct File {
    pub profile: Profile,
    /// Finds the columns of sample types.
    pub types: Index,
    pub problems: Problems,
    pub budget: Budget,
    /// Whether there was a field that such messages have.
    pub is_known: bool,
    pub origin: Origin,
    pub format: &'static Format,
}

impl File {
    /// The columns of these types, as long as there are rows, for a profile at byte `at`.
    pub fn columns(&mut self, types: &[SampleType], at: usize) -> WireResult<Vec<usize>> {
        let all = &mut self.profile.values;
        let rows = self.profile.samples.len();
        let mut columns = Vec::new();
        for SampleType { type_, .. } in types {
            let hash = self.types.hash((&type_.name, &type_.unit));
            let known = self.types.find(hash, |i| all[i as usize].type_ == *type_);
            let column = match known {
                Some(column) => {
                    let values = &mut all[column as usize].column;
                    values.try_fill(rows, f64::NAN, "sample values")?;
                    column
                }
                None if all.len() >= MOST_TYPES => {
                    let message = message!("There are more than {MOST_TYPES} sample types.");
                    return Err(Error::Unsupported(message).into());
                }
                None => {
                    let column = next_row(all.len(), "sample types")?;
                    self.budget.take(size_of::<f64>() * rows, at)?;
                    let values = Values::absent(&type_.name, &type_.unit, rows)?;
                    all.try_push(values, "sample types")?;
                    self.types.insert(hash, column)?;
                    column
                }
            };
            columns.try_push(column as usize, "sample types")?;
        }
        Ok(columns)
    }
}
