//! The profile of a recording: a sample for each stack that has allocated vectors.

use super::sums::{Amount, Row, Sums};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_core::model::known_types::{
    ALLOC_OBJECTS, ALLOC_SPACE, COPY_OBJECTS, COPY_SPACE, GC_SHARE, INUSE_OBJECTS, INUSE_SPACE,
    KnownType,
};
use profile_core::model::{
    Label, Profile, SampleType, Source, SourceId, SourceKind, Strings, Toplevel, Values,
};
use profile_reader::record::samples::{add_label, link_of};

const TYPES: [KnownType; 7] = [
    ALLOC_SPACE,
    ALLOC_OBJECTS,
    COPY_SPACE,
    COPY_OBJECTS,
    INUSE_SPACE,
    INUSE_OBJECTS,
    GC_SHARE,
];

/// The label of vectors that were allocated to convert others, and of those by which an object is extended step by step.
const ALLOCATION: &str = "allocation";
const CONVERSION: &str = "conversion";
const GROWTH: &str = "growth";
/// The label with the reason why copies were made.
const REASON: &str = "copy.reason";
/// The label of the mark with which vectors were allocated.
const MARK: &str = "profile.mark";

/// A recording that was stopped.
#[derive(Debug)]
pub struct Stopped {
    sums: Sums,
    profile: Profile,
    texts: Strings,
    lost: u64,
    time: u64,
}

impl Stopped {
    pub(super) fn new(
        sums: Sums,
        profile: Profile,
        texts: Strings,
        lost: u64,
        time: u64,
    ) -> Stopped {
        Stopped {
            sums,
            profile,
            texts,
            lost,
            time,
        }
    }

    /// About how much time the recording itself has taken, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The number of vectors that could not be recorded.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The profile. Frames of this package are part of it.
    pub fn profile(self) -> Result<Profile> {
        let Stopped {
            sums,
            mut profile,
            texts,
            ..
        } = self;
        let mut source = Source {
            kind: SourceKind::PROCESS,
            default_type: Some(owned(ALLOC_SPACE.name)?),
            ..Source::default()
        };
        for known in &TYPES {
            let type_ = SampleType::new(owned(known.name)?, owned(known.unit)?, &source.types)?;
            source.types.try_push(type_)?;
            profile.values.try_push(Values::absent_known(known, 0)?)?;
        }
        let source = profile.add_source(source)?;
        for row in sums.rows().iter().filter(|row| row.allocated.objects > 0) {
            add(row, source, &texts, &mut profile)?;
        }
        Ok(profile)
    }
}

fn add(row: &Row, source: SourceId, texts: &Strings, profile: &mut Profile) -> Result<()> {
    let sample = profile.samples.len();
    profile.samples.source.try_push(source)?;
    profile.samples.stack.try_push(row.key.stack)?;
    let amounts = [row.allocated, row.copied, row.in_use];
    let numbers = amounts
        .iter()
        .flat_map(|Amount { bytes, objects }| [*bytes, *objects])
        .chain([row.collecting]);
    for (column, number) in profile.values.iter_mut().zip(numbers) {
        column.push(i64::try_from(number).unwrap_or(i64::MAX))?;
    }
    if let Some(place) = row.key.toplevel {
        let filename = profile.strings.intern(texts.get(place.file))?;
        profile.samples.toplevel.try_push(Toplevel {
            sample,
            filename,
            line: place.line,
        })?;
    }
    if let Some(span) = row.key.span {
        let link = link_of(span.ids, profile)?;
        profile.samples.links.try_push((sample, link))?;
        if let Some((key, text)) = span.label {
            add_label(sample, key, texts.get(text), profile)?;
        }
    }
    if row.key.mark > 0 {
        add_label(sample, MARK, &message!("{}", row.key.mark), profile)?;
    }
    if let Some((reason, _)) = row.reason {
        let label = Label {
            str: Some(reason),
            ..Label::new(sample, profile.strings.intern(REASON)?)
        };
        profile.labels.try_push(label)?;
    }
    if row.key.is_conversion {
        add_label(sample, ALLOCATION, CONVERSION, profile)?;
    } else if row.grows() {
        add_label(sample, ALLOCATION, GROWTH, profile)?;
    }
    Ok(())
}
