//! The state while a file is read, which has one or more messages: the model that they are added
//! to, the problems found, and the remaining budget.

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

/// The maximum number of sample types, more than any profiler has. It limits the memory, since each
/// sample type is a column with a row for each sample.
pub const MOST_TYPES: usize = 1000;

pub struct File {
    pub profile: Profile,
    /// An index of the columns by sample type.
    pub types: Index,
    pub problems: Problems,
    pub budget: Budget,
    /// Whether any message had a field of this format.
    pub is_known: bool,
    pub origin: Origin,
    pub format: &'static Format,
}

impl File {
    /// The columns of these sample types, which are added if they are missing, and filled up to the
    /// current number of rows. `at` is the byte offset of the profile.
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
                    values.try_fill(rows, f64::NAN)?;
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
                    all.try_push(values)?;
                    self.types.insert(hash, column)?;
                    column
                }
            };
            columns.try_push(column as usize)?;
        }
        Ok(columns)
    }
}
