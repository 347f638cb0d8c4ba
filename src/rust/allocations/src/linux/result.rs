//! The profile of a recording: a sample for each stack that has allocated vectors, and a source for each process.

use super::counts::{Counted, Counter, Read, VALUES};
use super::record::{self, About};
use crate::Whose;
use profile_core::analysis::recorded::MEMORY_TIME;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, owned};
use profile_core::message;
use profile_core::model::known_types::{
    ALLOC_OBJECTS, ALLOC_SPACE, COPY_OBJECTS, COPY_SPACE, GC_SHARE, INUSE_OBJECTS, INUSE_SPACE,
    KnownType, PEAK_OBJECTS, PEAK_SPACE,
};
use profile_core::model::{
    PROCESS_ROLE, Profile, SampleType, SourceId, Strings, Toplevel, ValueKind, Values,
};
use profile_reader::record::role::fork_of;
use profile_reader::record::samples::{Stacks, add_label, link_of};
use profile_reader::recorded::source::{add_numbers, attribute, bare_source};
use profile_reader::stack::frames::Stack;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// The types of [`Counted::values`]. Those at [`IN_USE`] are known only if the process has ended the recording, after a
/// garbage collection.
const TYPES: [KnownType; VALUES] = [
    ALLOC_SPACE,
    ALLOC_OBJECTS,
    COPY_SPACE,
    COPY_OBJECTS,
    INUSE_SPACE,
    INUSE_OBJECTS,
    GC_SHARE,
    PEAK_SPACE,
    PEAK_OBJECTS,
];
const OBJECTS: usize = 1;
const IN_USE: Range<usize> = 4..6;
const AT_PEAK: Range<usize> = 7..9;

/// Attributes of a source: the most bytes of vectors in use right after a garbage collection, and when there was the peak, in
/// nanoseconds since the process was first counted.
const PEAK_REACHED: &str = "profile.peak.collected";
const PEAK_AFTER: &str = "profile.peak.after";

/// The label of vectors that were allocated to convert others, and of those by which an object is extended step by step.
const ALLOCATION: &str = "allocation";
const CONVERSION: &str = "conversion";
const GROWTH: &str = "growth";
/// The label with the reason why copies were made.
const REASON: &str = "copy.reason";
/// The label of the mark with which vectors were allocated.
const MARK: &str = "profile.mark";

/// What a recording has found.
#[derive(Debug)]
pub struct Found {
    /// Frames of this package are part of it.
    pub profile: Profile,
    /// The number of vectors of all processes that could not be recorded.
    pub lost: u64,
}

/// Reads the file of a recording.
pub fn read(file: &Path, whose: Whose) -> Result<Found> {
    let counts = Read::open(file)?;
    let mut builder = Builder::default();
    for known in &TYPES {
        let values = Values::absent_known(known, 0)?;
        builder.profile.values.try_push(values)?;
    }
    if let (Whose::Own, Some(own)) = (whose, counts.processes.first()) {
        builder.add_source(0, own)?;
    }
    for slot in &counts.slots {
        let is_own = slot.process == 0;
        let Some(process) = counts.processes.get(slot.process) else {
            continue;
        };
        if slot.values[OBJECTS] == 0 || is_own != (whose == Whose::Own) {
            continue;
        }
        // A process that was killed may have left a slot without a stack.
        let record = counts.stack(slot)?.unwrap_or_default();
        if let Some((about, stack)) = record::read(&record, &mut builder.texts)? {
            let source = match builder.sources.get(&slot.process) {
                Some(&source) => source,
                None => builder.add_source(slot.process, process)?,
            };
            let values = values_of(slot, process);
            let reason = counts.reason(slot)?;
            builder.add(source, slot.grows, values, about, &stack, reason.as_deref())?;
        }
    }
    Ok(Found {
        profile: builder.profile,
        lost: counts.lost,
    })
}

/// The values of a slot; `None` for those that are not known.
fn values_of(slot: &Counted, process: &Counter) -> [Option<u64>; VALUES] {
    let mut values = slot.values;
    if slot.peak != process.peak.number {
        // There was another peak, and nothing has changed for this stack since.
        values.copy_within(IN_USE, AT_PEAK.start);
    }
    let mut values = values.map(Some);
    if !slot.is_complete {
        values[IN_USE].fill(None);
    }
    values
}

#[derive(Default)]
struct Builder {
    profile: Profile,
    texts: Strings,
    stacks: Stacks,
    /// The sources of processes, by the numbers of these.
    sources: HashMap<usize, SourceId, foldhash::fast::RandomState>,
}

impl Builder {
    /// Adds a process. All but the first one are forks.
    fn add_source(&mut self, number: usize, process: &Counter) -> Result<SourceId> {
        let profile = &mut self.profile;
        let mut source = bare_source(i32::try_from(process.pid).unwrap_or(0), profile)?;
        source.timestamp = Some(process.date as f64 / 1e9);
        source.default_type = Some(owned(ALLOC_SPACE.name)?);
        for known in &TYPES {
            let type_ = SampleType::new(owned(known.name)?, owned(known.unit)?, &source.types)?;
            source.types.try_push(type_)?;
        }
        if number > 0 {
            let role = fork_of(process.parent);
            let role = attribute(PROCESS_ROLE, ValueKind::String, &role, profile)?;
            source.attributes.try_push(role)?;
        }
        let peak = process.peak;
        let after = peak.at.saturating_sub(process.date);
        let figures = [
            (PEAK_REACHED, peak.reached),
            (PEAK_AFTER, after),
            (MEMORY_TIME, process.time),
        ];
        add_numbers(&mut source, &figures, profile)?;
        let source = profile.add_source(source)?;
        self.sources.try_put(number, source)?;
        Ok(source)
    }

    fn add(
        &mut self,
        source: SourceId,
        grows: bool,
        values: [Option<u64>; VALUES],
        about: About,
        stack: &Stack,
        reason: Option<&str>,
    ) -> Result<()> {
        let (profile, texts) = (&mut self.profile, &self.texts);
        let sample = profile.samples.len();
        let (id, _) = self.stacks.intern(stack, texts, profile)?;
        profile.samples.source.try_push(source)?;
        profile.samples.stack.try_push(id)?;
        for (column, value) in profile.values.iter_mut().zip(values) {
            match value {
                Some(value) => {
                    column.push(i64::try_from(value).unwrap_or(i64::MAX))?;
                }
                None => column.column.try_push(f64::NAN)?,
            }
        }
        if let Some(place) = stack.toplevel {
            let filename = profile.strings.intern(texts.get(place.file))?;
            profile.samples.toplevel.try_push(Toplevel {
                sample,
                filename,
                line: place.line,
            })?;
        }
        if let Some(span) = stack.span {
            let link = link_of(span.ids, profile)?;
            profile.samples.links.try_push((sample, link))?;
            if let Some((key, text)) = span.label {
                add_label(sample, key, texts.get(text), profile)?;
            }
        }
        if about.mark > 0 {
            add_label(sample, MARK, &message!("{}", about.mark), profile)?;
        }
        if let Some(reason) = reason {
            add_label(sample, REASON, reason, profile)?;
        }
        if about.is_conversion {
            add_label(sample, ALLOCATION, CONVERSION, profile)?;
        } else if grows {
            add_label(sample, ALLOCATION, GROWTH, profile)?;
        }
        Ok(())
    }
}
