//! Detects the version of the format that a message uses.
//!
//! The format is in development, and messages do not contain its version, although field numbers
//! have changed: version 1.10 renumbered the last fields of `Sample`. Therefore samples are read
//! with the field numbers of both versions. With the wrong ones, they violate rules of the format,
//! such as that an index must be within its table.

use super::proto::{
    data, dictionary, location, mapping, profile, resource_profiles, sample, scope_profiles,
};
use crate::error::Error;
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::protobuf::decode::{Field, Message, Result};

/// The numbers of the fields of samples, which differ between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleFields {
    pub stack_index: u32,
    pub attribute_indices: u32,
    pub link_index: u32,
    pub values: u32,
    pub timestamps: u32,
}

impl SampleFields {
    /// Version 1.10 and later.
    pub const CURRENT: SampleFields = SampleFields {
        stack_index: sample::STACK_INDEX,
        attribute_indices: sample::ATTRIBUTE_INDICES,
        link_index: sample::LINK_INDEX,
        values: sample::VALUES,
        timestamps: sample::TIMESTAMPS_UNIX_NANO,
    };
    const V1_9: SampleFields = SampleFields {
        attribute_indices: 3,
        link_index: 4,
        values: 2,
        ..SampleFields::CURRENT
    };
}

/// The number of a profile's attributes in version 1.8, whose fields came one later.
const LAST_1_8: u32 = 12;

/// The version is certain once this many samples violate a rule in the other version, and none in
/// this one.
const ENOUGH: u64 = 100;

/// The observations in a message that indicate its version.
#[derive(Debug, Default)]
struct Evidence {
    texts: u64,
    attributes: u64,
    links: u64,
    /// Whether mappings or locations refer to each attribute.
    elsewhere: Vec<bool>,
    /// The samples, read with the field numbers of 1.10 and of 1.9.
    by_1_10: Reading,
    by_1_9: Reading,
}

/// The samples, read with the field numbers of one version.
#[derive(Debug, Default)]
struct Reading {
    /// The number of samples that violate a rule.
    broken: u64,
    /// Whether samples refer to each attribute and each link.
    attributes: Vec<bool>,
    links: Vec<bool>,
    /// The number of lists of numbers that are not packed. Almost all writers pack them.
    unpacked: u64,
}

/// The detected field numbers, and whether the others are equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub fields: SampleFields,
    pub ambiguous: bool,
}

/// Detects the field numbers of the samples of a message. Fails if an unsupported version wrote it.
pub fn detect(mut message: Message, input: &str, stop: Stop) -> Result<Found> {
    let mut evidence = Evidence::default();
    let mut profiles = Vec::new();
    let mut has_tables = false;
    let mut watch = Watch::new(stop);
    while let Some(found) = message.field()? {
        match found.number {
            data::RESOURCE_PROFILES => collect(found.message()?, &mut profiles, &mut watch)?,
            data::DICTIONARY => evidence.tables(found.message()?, &mut watch)?,
            // The tables of version 1.6.
            3..=8 => has_tables = found.has_bytes(),
            _ => {}
        }
    }
    if has_tables && !profiles.is_empty() {
        return Err(older(input).into());
    }
    evidence.by_1_10 = Reading::new(evidence.attributes, evidence.links)?;
    evidence.by_1_9 = Reading::new(evidence.attributes, evidence.links)?;
    let mut watch = Watch::new(stop);
    for &message in &profiles {
        if evidence.is_older(message, &mut watch)? {
            return Err(older(input).into());
        }
    }
    let mut watch = Watch::new(stop);
    for &(mut message) in &profiles {
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            if found.number == profile::SAMPLES {
                evidence.sample(found.message()?)?;
                if evidence.is_clear() {
                    return Ok(evidence.verdict());
                }
            }
        }
    }
    Ok(evidence.verdict())
}

/// The profiles of all scopes of a resource.
fn collect<'a>(
    mut resource: Message<'a>,
    profiles: &mut Vec<Message<'a>>,
    watch: &mut Watch,
) -> Result<()> {
    while let Some(found) = resource.field()? {
        if found.number != resource_profiles::SCOPE_PROFILES {
            continue;
        }
        let mut scope = found.message()?;
        while let Some(found) = scope.field()? {
            if found.number == scope_profiles::PROFILES {
                watch.reach(found.at)?;
                profiles.try_push(found.message()?)?;
            }
        }
    }
    Ok(())
}

impl Evidence {
    fn tables(&mut self, tables: Message, watch: &mut Watch) -> Result<()> {
        let mut referring = Vec::new();
        let mut rest = tables;
        while let Some(found) = rest.field()? {
            watch.reach(found.at)?;
            match found.number {
                dictionary::STRING_TABLE => self.texts += 1,
                dictionary::ATTRIBUTE_TABLE => self.attributes += 1,
                dictionary::LINK_TABLE => self.links += 1,
                dictionary::MAPPING_TABLE => {
                    let row = (found.message()?, mapping::ATTRIBUTE_INDICES);
                    referring.try_push(row)?;
                }
                dictionary::LOCATION_TABLE => {
                    let row = (found.message()?, location::ATTRIBUTE_INDICES);
                    referring.try_push(row)?;
                }
                _ => {}
            }
        }
        self.elsewhere.try_fill(self.attributes as usize, false)?;
        for (mut message, number) in referring {
            while let Some(found) = message.field()? {
                if found.number == number {
                    mark(&found, &mut self.elsewhere);
                }
            }
        }
        Ok(())
    }

    /// Whether a profile has a field of another type than in version 1.9 and later.
    fn is_older(&self, mut message: Message, watch: &mut Watch) -> Result<bool> {
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            let is_old = match found.number {
                // Until version 1.7.
                profile::TIME_UNIX_NANO => found.fixed64().is_err(),
                profile::PERIOD_TYPE => found.is_number(),
                profile::PERIOD => found.has_bytes(),
                // Version 1.8 had comments before the profile's id.
                profile::PROFILE_ID => {
                    let id = found.message();
                    let is_id = id.is_ok_and(|id| [0, 16].contains(&id.bytes().len()));
                    !is_id && all_below(&found, self.texts)
                }
                profile::DROPPED_ATTRIBUTES_COUNT => found.has_bytes(),
                profile::ORIGINAL_PAYLOAD_FORMAT => found.is_number(),
                LAST_1_8 => all_below(&found, self.attributes),
                _ => false,
            };
            if is_old {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn sample(&mut self, message: Message) -> Result<()> {
        self.by_1_10.sample(message, SampleFields::CURRENT)?;
        self.by_1_9.sample(message, SampleFields::V1_9)
    }

    /// Whether the version is certain. A few violations are not enough, since samples may violate
    /// rules in the right version as well.
    fn is_clear(&self) -> bool {
        let (one, other) = (self.by_1_10.broken, self.by_1_9.broken);
        one.min(other) == 0 && one.max(other) >= ENOUGH
    }

    fn verdict(&self) -> Found {
        // The criteria are, in this order: fewest samples that violate rules, most attributes and
        // links that only samples refer to, fewest lists that are not packed. Finally, if samples
        // read as 1.10 refer only to attributes that mappings or locations also refer to, these are
        // probably not attributes of samples.
        let broken = self.by_1_9.broken.cmp(&self.by_1_10.broken);
        let [new, old] = [&self.by_1_10, &self.by_1_9].map(|by| by.uses(&self.elsewhere));
        let no_new = new == 0 && self.by_1_10.attributes.contains(&true);
        let unpacked = self.by_1_9.unpacked.cmp(&self.by_1_10.unpacked);
        let order = broken.then(new.cmp(&old)).then(unpacked);
        let is_1_9 = order.is_lt() || order.is_eq() && no_new;
        let matters = !self.by_1_10.is_silent() || !self.by_1_9.is_silent();
        Found {
            fields: if is_1_9 {
                SampleFields::V1_9
            } else {
                SampleFields::CURRENT
            },
            ambiguous: matters && broken.is_eq() && new == old,
        }
    }
}

impl Reading {
    fn new(attributes: u64, links: u64) -> Result<Reading> {
        let mut reading = Reading::default();
        reading.attributes.try_fill(attributes as usize, false)?;
        reading.links.try_fill(links as usize, false)?;
        Ok(reading)
    }

    fn sample(&mut self, mut message: Message, fields: SampleFields) -> Result<()> {
        let (mut values, mut timestamps, mut broken) = (0, 0, false);
        while let Some(found) = message.field()? {
            let number = found.number;
            if [fields.values, fields.attribute_indices].contains(&number) {
                self.unpacked += u64::from(found.is_number());
            }
            if number == fields.values {
                let read = found.each(|_| {
                    values += 1;
                    Ok(())
                });
                broken |= read.is_err();
            } else if number == fields.attribute_indices {
                broken |= !mark(&found, &mut self.attributes);
            } else if number == fields.link_index {
                broken |= found.has_bytes() || !mark(&found, &mut self.links);
            } else if number == fields.timestamps {
                let read = found.each_fixed64(|_| {
                    timestamps += 1;
                    Ok(())
                });
                broken |= read.is_err();
            }
        }
        let none = values == 0 && timestamps == 0;
        let unequal = values != timestamps && values > 0 && timestamps > 0;
        self.broken += u64::from(broken || none || unequal);
        Ok(())
    }

    /// The number of attributes and links that only samples refer to.
    fn uses(&self, elsewhere: &[bool]) -> usize {
        let others = self.attributes.iter().zip(elsewhere);
        let attributes = others.filter(|(used, elsewhere)| **used && !**elsewhere);
        attributes.count() + self.links.iter().filter(|used| **used).count()
    }

    /// Whether samples refer to no attributes and no links.
    fn is_silent(&self) -> bool {
        !self.attributes.contains(&true) && !self.links.contains(&true)
    }
}

/// Marks the entries of a table that a field refers to, except entry 0, which means "none". Returns
/// whether the field is valid and all its indices are in range.
fn mark(found: &Field, entries: &mut [bool]) -> bool {
    let mut all = true;
    let read = found.each(|index| {
        match usize::try_from(index).ok().and_then(|i| entries.get_mut(i)) {
            Some(entry) => *entry |= index != 0,
            None => all &= index == 0,
        }
        Ok(())
    });
    read.is_ok() && all
}

/// The error for a version that is not supported. No program converts between versions.
pub fn older(input: &str) -> Error {
    Error::Unsupported(message!(
        "{input} is of version 1.8 or older of OpenTelemetry's profiles; versions from 1.9 on can \
         be read. Export the profile again with a newer release of the program that wrote it."
    ))
}

/// Whether a field contains only indices of a table with `entries` entries. 0 is always valid.
fn all_below(found: &Field, entries: u64) -> bool {
    let mut all = true;
    let read = found.each(|index| {
        all &= index < entries.max(1);
        Ok(())
    });
    read.is_ok() && all
}
