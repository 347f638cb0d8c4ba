//! Which version of the messages some bytes are.
//!
//! The format is in development, and fields got other numbers without any mark:
//! version 1.10 renumbered `Sample`, 1.9 the end of `Profile`. So all samples are looked
//! at: read with the numbers of another version they break rules, such as that an
//! index must be in its table.

use super::proto::{data, dictionary, profile, resource_profiles, scope_profiles};
use crate::cancel::{self, Stop};
use crate::error::Error;
use crate::protobuf::wire::{Field, Message, Result};

/// The numbers of the fields that moved.
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
/// A number that no message has; in JSON, where names tell, comments get it.
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

/// So many samples that break a rule in one version and not in the other decide.
const ENOUGH: u64 = 100;

/// What a whole message has shown so far.
#[derive(Debug, Default)]
struct Evidence {
    attributes: u64,
    links: u64,
    /// Rules that samples break by the numbers of 1.10 and of 1.9.
    broken_1_10: u64,
    broken_1_9: u64,
    /// Fields of profiles that are not of the type that they have in 1.9 and in 1.8.
    mistyped_1_9: u64,
    mistyped_1_8: u64,
    /// The two ways to read the samples differ.
    matters: bool,
}

/// What was found, and whether it could be the other one as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub layout: Layout,
    pub ambiguous: bool,
}

/// The layout of a whole message.
pub fn detect(mut message: Message, input: &str, stop: Stop) -> Result<Found> {
    let mut evidence = Evidence::default();
    let mut profiles = Vec::new();
    let mut has_dictionary = false;
    while let Some(found) = message.field()? {
        match found.number {
            data::RESOURCE_PROFILES => collect(found.message()?, &mut profiles)?,
            data::DICTIONARY => {
                has_dictionary = true;
                evidence.tables(found.message()?, input)?;
            }
            // The tables of 1.6 stood here.
            3..=8 => return Err(older(input, "1.6")),
            _ => {}
        }
    }
    for &(mut message) in &profiles {
        while let Some(found) = message.field()? {
            evidence.profile(&found, has_dictionary, input)?;
        }
    }
    for &(mut message) in &profiles {
        cancel::check(stop)?;
        while let Some(found) = message.field()? {
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
fn collect<'a>(mut resource: Message<'a>, profiles: &mut Vec<Message<'a>>) -> Result<()> {
    while let Some(found) = resource.field()? {
        if found.number != resource_profiles::SCOPE_PROFILES {
            continue;
        }
        let mut scope = found.message()?;
        while let Some(found) = scope.field()? {
            if found.number == scope_profiles::PROFILES {
                profiles.push(found.message()?);
            }
        }
    }
    Ok(())
}

impl Evidence {
    fn tables(&mut self, mut tables: Message, input: &str) -> Result<()> {
        while let Some(found) = tables.field()? {
            match found.number {
                dictionary::ATTRIBUTE_TABLE => self.attributes += 1,
                dictionary::LINK_TABLE => self.links += 1,
                dictionary::STACK_TABLE => {
                    // Units of attributes in 1.7: two numbers, where a stack has a list.
                    let first = found.message()?.field()?;
                    if first.is_some_and(|first| first.number == 2) {
                        return Err(older(input, "1.7"));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn profile(&mut self, found: &Field, has_dictionary: bool, input: &str) -> Result<()> {
        let (list, number) = (found.has_bytes(), found.is_number());
        // Before 1.8 a time was no number of eight bytes, nor a period type behind it.
        let is_old = match found.number {
            profile::TIME_UNIX_NANO => found.fixed64().is_err(),
            profile::PERIOD_TYPE => number,
            profile::PERIOD => list,
            13.. => found.number != COMMENTS_OF_JSON,
            _ => false,
        };
        if is_old {
            return Err(older(input, if has_dictionary { "1.7" } else { "1.5" }));
        }
        let wrong_1_9 = match found.number {
            7 => {
                found
                    .message()
                    .is_ok_and(|id| ![0, 16].contains(&id.bytes().len()))
                    || number
            }
            8 => list,
            9 => number,
            12 => true,
            _ => false,
        };
        let wrong_1_8 = match found.number {
            8 => number,
            9 => list,
            11 => number,
            _ => false,
        };
        self.mistyped_1_9 += u64::from(wrong_1_9);
        self.mistyped_1_8 += u64::from(wrong_1_8);
        Ok(())
    }

    fn sample(&mut self, message: Message) -> Result<()> {
        self.broken_1_10 += u64::from(self.breaks(message, SAMPLE_1_10)?);
        self.broken_1_9 += u64::from(self.breaks(message, SAMPLE_1_9)?);
        Ok(())
    }

    /// Whether a sample breaks a rule when it is read with these numbers.
    fn breaks(&mut self, mut message: Message, fields: SampleFields) -> Result<bool> {
        let (mut values, mut timestamps, mut broken) = (0, 0, false);
        while let Some(found) = message.field()? {
            let number = found.number;
            if number == fields.values {
                self.matters = true;
                broken |= found
                    .each(|_| {
                        values += 1;
                        Ok(())
                    })
                    .is_err();
            } else if number == fields.attribute_indices {
                let in_table = |index| index < self.attributes.max(1);
                broken |= found
                    .each(|index| {
                        broken |= !in_table(index);
                        Ok(())
                    })
                    .is_err();
            } else if number == fields.link_index {
                broken |= found
                    .uint()
                    .map_or(true, |index| index >= self.links.max(1));
            } else if number == fields.timestamps {
                broken |= found
                    .each_fixed64(|_| {
                        timestamps += 1;
                        Ok(())
                    })
                    .is_err();
            }
        }
        let none = values == 0 && timestamps == 0;
        let unequal = values != timestamps && values > 0 && timestamps > 0;
        Ok(broken || none || unequal)
    }

    /// A few samples may break rules in the right version as well.
    fn is_clear(&self) -> bool {
        let (one, other) = (self.broken_1_10, self.broken_1_9);
        one.min(other) == 0 && one.max(other) >= ENOUGH
    }

    fn verdict(&self) -> Found {
        let is_1_8 = self.mistyped_1_9 > self.mistyped_1_8;
        // Nothing but samples tells 1.9 from 1.10; that a profile is of 1.8 tells it.
        let is_older = is_1_8 || self.broken_1_9 < self.broken_1_10;
        Found {
            layout: Layout {
                sample: if is_older { SAMPLE_1_9 } else { SAMPLE_1_10 },
                profile: if is_1_8 { PROFILE_1_8 } else { PROFILE_1_9 },
            },
            ambiguous: !is_1_8 && self.matters && self.broken_1_9 == self.broken_1_10,
        }
    }
}

fn older(input: &str, version: &str) -> crate::protobuf::wire::Fault {
    Error::Unsupported(format!(
        "{input} is of version {version} of OpenTelemetry's profiles or near it; versions from \
         1.8 on can be read."
    ))
    .into()
}
