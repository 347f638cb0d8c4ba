//! Detects the version of the format that a message uses.
//!
//! The format is in development, and messages do not contain its version, although field numbers
//! have changed: version 1.9 renumbered the last fields of `Profile`, version 1.10 the last fields
//! of `Sample`. Therefore samples are read with the field numbers of each version. With the wrong
//! ones, they violate rules of the format, such as that an index must be within its table.

use super::proto::{
    data, dictionary, location, mapping, profile, resource_profiles, scope_profiles,
};
use crate::error::Error;
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::protobuf::decode::{Field, Message, Result};
use std::cmp::Ordering;

/// The numbers of the fields that differ between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub sample: SampleFields,
    pub profile: ProfileFields,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleFields {
    pub stack_index: u32,
    pub attribute_indices: u32,
    pub link_index: u32,
    pub values: u32,
    pub timestamps: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileFields {
    /// Comments are attributes since version 1.9.
    pub comments: u32,
    pub profile_id: u32,
    pub dropped_attributes_count: u32,
    pub payload_format: u32,
    pub payload: u32,
    pub attribute_indices: u32,
}

const SAMPLE_1_10: SampleFields = SampleFields {
    stack_index: 1,
    attribute_indices: 2,
    link_index: 3,
    values: 4,
    timestamps: 5,
};
const SAMPLE_1_9: SampleFields = SampleFields {
    stack_index: 1,
    attribute_indices: 3,
    link_index: 4,
    values: 2,
    timestamps: 5,
};
/// The number of the comments field in messages made from JSON, where fields have names. Protocol
/// buffer messages have no field with this number.
pub const COMMENTS_OF_JSON: u32 = 1001;
const PROFILE_1_9: ProfileFields = ProfileFields {
    comments: COMMENTS_OF_JSON,
    profile_id: 7,
    dropped_attributes_count: 8,
    payload_format: 9,
    payload: 10,
    attribute_indices: 11,
};
const PROFILE_1_8: ProfileFields = ProfileFields {
    comments: 7,
    profile_id: 8,
    dropped_attributes_count: 9,
    payload_format: 10,
    payload: 11,
    attribute_indices: 12,
};

impl Layout {
    /// Version 1.10 and later.
    pub const CURRENT: Layout = Layout {
        sample: SAMPLE_1_10,
        profile: PROFILE_1_9,
    };
}

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
    /// The numbers of profile fields whose types are wrong in 1.9 and in 1.8.
    mistyped_1_9: u64,
    mistyped_1_8: u64,
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

/// The detected layout, and whether another one is equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub layout: Layout,
    pub ambiguous: bool,
}

/// Detects the layout of a whole message.
pub fn detect(mut message: Message, input: &str, stop: Stop) -> Result<Found> {
    let mut evidence = Evidence::default();
    let mut profiles = Vec::new();
    let (mut has_dictionary, mut has_tables) = (false, false);
    let mut watch = Watch::new(stop);
    while let Some(found) = message.field()? {
        match found.number {
            data::RESOURCE_PROFILES => collect(found.message()?, &mut profiles, &mut watch)?,
            data::DICTIONARY => {
                has_dictionary = true;
                evidence.tables(found.message()?, &mut watch)?;
            }
            // The tables of version 1.6.
            3..=8 => has_tables = found.has_bytes(),
            _ => {}
        }
    }
    if has_tables && !profiles.is_empty() {
        return Err(older(input, "1.6").into());
    }
    evidence.by_1_10 = Reading::new(evidence.attributes, evidence.links)?;
    evidence.by_1_9 = Reading::new(evidence.attributes, evidence.links)?;
    let mut watch = Watch::new(stop);
    for &message in &profiles {
        evidence.profile(message, has_dictionary, input, &mut watch)?;
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

    fn profile(
        &mut self,
        mut message: Message,
        has_dictionary: bool,
        input: &str,
        watch: &mut Watch,
    ) -> Result<()> {
        let mut has = [false; 13];
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            let (list, number) = (found.has_bytes(), found.is_number());
            // Before version 1.8, the fields with these numbers had other types.
            let is_old = match found.number {
                profile::TIME_UNIX_NANO => found.fixed64().is_err(),
                profile::PERIOD_TYPE => number,
                profile::PERIOD => list,
                _ => false,
            };
            if is_old {
                let version = if has_dictionary { "1.7" } else { "1.5" };
                return Err(older(input, version).into());
            }
            let is_id = found
                .message()
                .is_ok_and(|id| [0, 16].contains(&id.bytes().len()));
            let wrong_1_9 = match found.number {
                7 => !is_id,
                8 => list,
                9 => number,
                11 => !all_below(&found, self.attributes),
                12 => true,
                _ => false,
            };
            let wrong_1_8 = match found.number {
                7 => !all_below(&found, self.texts),
                8 => !is_id,
                9 => list,
                11 => number,
                12 => !all_below(&found, self.attributes),
                _ => false,
            };
            self.mistyped_1_9 += u64::from(wrong_1_9);
            self.mistyped_1_8 += u64::from(wrong_1_8);
            if let Some(slot) = has.get_mut(found.number as usize) {
                *slot = true;
            }
        }
        // A payload and its format are either both present or both absent.
        self.mistyped_1_9 += u64::from(has[9] != has[10]);
        self.mistyped_1_8 += u64::from(has[10] != has[11]);
        Ok(())
    }

    fn sample(&mut self, message: Message) -> Result<()> {
        self.by_1_10.sample(message, SAMPLE_1_10)?;
        self.by_1_9.sample(message, SAMPLE_1_9)
    }

    /// Whether the version is certain. A few violations are not enough, since samples may violate
    /// rules in the right version as well.
    fn is_clear(&self) -> bool {
        let (one, other) = (self.by_1_10.broken, self.by_1_9.broken);
        one.min(other) == 0 && one.max(other) >= ENOUGH
    }

    fn verdict(&self) -> Found {
        let is_1_8 = self.mistyped_1_9 > self.mistyped_1_8;
        // If profiles have the layout of 1.8, samples have the layout of 1.9. Otherwise the
        // criteria for samples are, in this order: fewest samples that violate rules, most
        // attributes and links that only samples refer to, fewest lists that are not packed.
        // Finally, if samples read as
        // 1.10 refer only to attributes that mappings or locations also refer to, these are
        // probably not attributes of samples.
        let broken = self.by_1_9.broken.cmp(&self.by_1_10.broken);
        let [new, old] = [&self.by_1_10, &self.by_1_9].map(|by| by.uses(&self.elsewhere));
        let no_new = new == 0 && self.by_1_10.attributes.contains(&true);
        let unpacked = self.by_1_9.unpacked.cmp(&self.by_1_10.unpacked);
        let hardly = match no_new {
            true => Ordering::Less,
            false => Ordering::Equal,
        };
        let order = broken.then(new.cmp(&old)).then(unpacked).then(hardly);
        let is_1_9 = !is_1_8 && order == Ordering::Less;
        let matters = !self.by_1_10.is_silent() || !self.by_1_9.is_silent();
        Found {
            layout: Layout {
                sample: if is_1_8 || is_1_9 {
                    SAMPLE_1_9
                } else {
                    SAMPLE_1_10
                },
                profile: if is_1_8 { PROFILE_1_8 } else { PROFILE_1_9 },
            },
            ambiguous: !is_1_8 && matters && broken.is_eq() && new == old,
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

/// The error for a version that is not supported.
pub fn older(input: &str, version: &str) -> Error {
    Error::Unsupported(message!(
        "{input} is of version {version} of OpenTelemetry's profiles or near it; versions from \
         1.8 on can be read."
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
