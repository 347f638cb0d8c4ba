//! The first pass over a message: collects the rows of its tables, and all fields that occur once.

use crate::formats::pprof::proto::{ValueType, profile as field};
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::protobuf::decode::{Message, Result, error_at};

/// The name and unit of a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named {
    pub type_: NumberField,
    pub unit: NumberField,
}

pub struct Outline<'a> {
    pub texts: StringTable<'a>,
    pub types: Vec<Named>,
    pub mappings: Vec<Message<'a>>,
    pub functions: Vec<Message<'a>>,
    pub locations: Vec<Message<'a>>,
    pub comments: Vec<NumberField>,
    /// The number of samples, and the offset of the first.
    pub samples: usize,
    pub first_sample: usize,
    pub time: i64,
    pub duration: i64,
    pub period_type: Option<Named>,
    pub period: i64,
    pub period_at: usize,
    pub default_type: NumberField,
    pub drop_frames: NumberField,
    pub keep_frames: NumberField,
    pub doc_url: NumberField,
}

impl<'a> Outline<'a> {
    pub fn read(bytes: &'a [u8], stop: Stop) -> Result<Outline<'a>> {
        let mut outline = Outline {
            texts: StringTable::new(bytes, bytes.len()),
            types: Vec::new(),
            mappings: Vec::new(),
            functions: Vec::new(),
            locations: Vec::new(),
            comments: Vec::new(),
            samples: 0,
            first_sample: 0,
            time: 0,
            duration: 0,
            period_type: None,
            period: 0,
            period_at: 0,
            default_type: NumberField::default(),
            drop_frames: NumberField::default(),
            keep_frames: NumberField::default(),
            doc_url: NumberField::default(),
        };
        let mut message = Message::new(bytes);
        let mut watch = Watch::new(stop);
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            let at = found.at;
            match found.number {
                field::SAMPLE_TYPE => {
                    outline.types.try_push(named(found.message()?)?)?;
                }
                field::SAMPLE => {
                    found.message()?;
                    if outline.samples == 0 {
                        outline.first_sample = at;
                    }
                    outline.samples += 1;
                }
                field::MAPPING => outline.mappings.try_push(found.message()?)?,
                field::LOCATION => outline.locations.try_push(found.message()?)?,
                field::FUNCTION => outline.functions.try_push(found.message()?)?,
                field::STRING_TABLE => {
                    let text = found.message()?;
                    outline.texts.add(text.at(), text.bytes().len())?;
                }
                field::TIME_NANOS => {
                    // Go rejects this as concatenated profiles, too.
                    if outline.time != 0 {
                        return error_at(
                            at,
                            "A second time of recording. Are these several profiles in one file?",
                        );
                    }
                    outline.time = found.int()?;
                }
                field::DURATION_NANOS => outline.duration = found.int()?,
                field::PERIOD_TYPE => outline.period_type = Some(named(found.message()?)?),
                field::PERIOD => {
                    outline.period = found.int()?;
                    outline.period_at = at;
                }
                field::COMMENT => found
                    .each(|index| outline.comments.try_push(NumberField { value: index, at }))?,
                field::DEFAULT_SAMPLE_TYPE => {
                    outline.default_type = NumberField::from_field(&found)?
                }
                field::DROP_FRAMES => outline.drop_frames = NumberField::from_field(&found)?,
                field::KEEP_FRAMES => outline.keep_frames = NumberField::from_field(&found)?,
                field::DOC_URL => outline.doc_url = NumberField::from_field(&found)?,
                _ => {}
            }
        }
        outline.texts.check()?;
        Ok(outline)
    }
}

fn named(mut message: Message) -> Result<Named> {
    let mut named = Named::default();
    while let Some(found) = message.field()? {
        match found.number {
            ValueType::TYPE => named.type_ = NumberField::from_field(&found)?,
            ValueType::UNIT => named.unit = NumberField::from_field(&found)?,
            _ => {}
        }
    }
    Ok(named)
}
