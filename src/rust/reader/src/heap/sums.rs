//! Bytes and objects by path and class.

use super::paths::PathId;
use profile_core::error::Result;
use profile_core::limits::memory::TryPut;
use std::collections::HashMap;

/// The end of a path, and a class.
pub type Key = (PathId, u64);

#[derive(Debug, Default, Clone, Copy)]
pub struct Sum {
    pub bytes: u64,
    pub objects: u64,
}

#[derive(Debug, Default)]
pub struct Sums {
    pub by_key: HashMap<Key, Sum, foldhash::fast::RandomState>,
    /// The sum of the last objects, which is not among the others yet. Objects that were made together have the same holder
    /// and class in most cases.
    last: Option<(Key, Sum)>,
}

impl Sums {
    /// Adds an object.
    pub fn add(&mut self, path: PathId, class: u64, bytes: u64) -> Result<()> {
        let key = (path, class);
        let same = self.last.as_mut().filter(|last| last.0 == key);
        if let Some((_, sum)) = same {
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.objects += 1;
            return Ok(());
        }
        self.finish()?;
        self.last = Some((key, Sum { bytes, objects: 1 }));
        Ok(())
    }

    /// Adds the last sum to the others.
    pub fn finish(&mut self) -> Result<()> {
        let Some((key, last)) = self.last.take() else {
            return Ok(());
        };
        match self.by_key.get_mut(&key) {
            Some(sum) => {
                sum.bytes = sum.bytes.saturating_add(last.bytes);
                sum.objects += last.objects;
            }
            None => {
                self.by_key.try_put(key, last)?;
            }
        }
        Ok(())
    }
}
