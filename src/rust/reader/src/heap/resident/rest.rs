//! What a snapshot contains beside the objects of R: rows for the rest of the process, and figures about it.

use super::rows::Row;
use super::split::Claim;
use super::{GLIBC, Malloc, Resident};
use crate::heap::objects::Objects;
use crate::recorded::source::{add_numbers, attribute};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::model::{Profile, Source, ValueKind};

#[derive(Debug, Default)]
pub struct Rest {
    pub rows: Vec<Row>,
    numbers: Vec<(&'static str, u64)>,
    allocator: Option<String>,
}

impl Rest {
    /// `claims` are the parts of memory whose use is known.
    pub fn of(resident: &Resident, objects: &Objects, claims: &[Claim]) -> Result<Rest> {
        let mut rest = Rest::default();
        let of_r = objects.bytes();
        let size = match resident {
            Resident::Unknown => 0,
            Resident::Size(size) => {
                rest.rows.try_push(Row {
                    part: "native memory and code",
                    name: None,
                    type_: owned("not divided by the system")?,
                    bytes: size.saturating_sub(of_r),
                })?;
                *size
            }
            Resident::Divided(divided) => {
                let split = divided.split(objects.blocks(), claims)?;
                rest.rows = split.rows;
                let absent = of_r.saturating_sub(split.heap);
                rest.numbers
                    .try_push(("profile.heap.not_resident", absent))?;
                let with_others = divided.with_others();
                rest.numbers
                    .try_push(("profile.heap.with_others", with_others))?;
                for (key, bytes) in [
                    ("profile.heap.unsure", split.unsure),
                    ("profile.heap.swapped", divided.swapped()),
                ] {
                    if bytes > 0 {
                        rest.numbers.try_push((key, bytes))?;
                    }
                }
                rest.allocator = match &divided.malloc {
                    Malloc::Unknown => None,
                    Malloc::Other(name) => Some(owned(name)?),
                    Malloc::Glibc(_) => Some(owned(GLIBC)?),
                };
                divided.sum()
            }
        };
        rest.numbers.try_push(("profile.heap.resident", size))?;
        Ok(rest)
    }

    /// Adds the figures to the attributes of a source.
    pub fn describe(&self, source: &mut Source, profile: &mut Profile) -> Result<()> {
        add_numbers(source, &self.numbers, profile)?;
        if let Some(name) = &self.allocator {
            let key = "profile.process.allocator";
            let allocator = attribute(key, ValueKind::String, name, profile)?;
            source.attributes.try_push(allocator)?;
        }
        Ok(())
    }
}
