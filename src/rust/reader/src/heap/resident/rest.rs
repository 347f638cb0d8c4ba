//! What a snapshot contains beside the objects of R: rows for the rest of the process, and figures about it.

use super::split::{Claim, Owner, Row};
use super::{Malloc, Resident};
use crate::heap::objects::Objects;
use crate::heap::snapshot::{About, Heap};
use crate::recorded::source::{add_numbers, attribute};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::model::{Profile, Source, ValueKind};
use std::ops::Range;

#[derive(Debug, Default)]
pub struct Rest {
    pub rows: Vec<Row>,
    numbers: Vec<(&'static str, u64)>,
    allocator: Option<String>,
}

impl Rest {
    pub fn of(about: &About, objects: &Objects, heap: &Heap) -> Result<Rest> {
        let mut rest = Rest::default();
        let of_r = heap.used.saturating_add(heap.free);
        let size = match about.resident {
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
                let split = divided.split(objects.blocks(), &claims(about)?)?;
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
                    Malloc::Glibc(_) => Some(owned("glibc")?),
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
            let key = "profile.heap.allocator";
            let allocator = attribute(key, ValueKind::String, name, profile)?;
            source.attributes.try_push(allocator)?;
        }
        Ok(())
    }
}

/// R's stacks, and the variables of R and of libraries.
fn claims(about: &About) -> Result<Vec<Claim>> {
    let stacks = [&about.r.node_stack, &about.known.protected];
    let stacks = stacks.into_iter().filter(|stack| stack.start > 0);
    let variables = about.libraries.iter().map(|library| &library.variables);
    let variables = variables.flatten().chain(&about.r.variables);
    let mut claims = Vec::new();
    let mut add = |addresses: &Range<u64>, owner| {
        let addresses = addresses.clone();
        claims.try_push(Claim { addresses, owner })
    };
    for stack in stacks {
        add(stack, Owner::RStacks)?;
    }
    for variables in variables {
        add(variables, Owner::Variables)?;
    }
    Ok(claims)
}
