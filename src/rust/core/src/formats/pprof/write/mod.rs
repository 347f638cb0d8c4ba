//! Writes a profile as pprof.
//!
//! Each distinct stack and set of labels is encoded once; a sample is a copy of those bytes,
//! followed by its values. The message is written in pieces, so only the encoded stacks and
//! labels are kept in memory.

mod header;
mod labels;
mod merged;
mod recorded;
mod symbols;

use crate::analysis::aggregate::{Groups, Identity, is_zero, values_of, without_zeros};
use crate::analysis::inlining::Inlining;
use crate::analysis::sample_types::{WrittenType, whole_types};
use crate::error::{Error, Result};
use crate::formats::losses::{LossKind, Losses};
use crate::formats::pprof::proto::{profile as field, sample};
use crate::formats::pprof::source_labels;
use crate::formats::write;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow};
use crate::message;
use crate::model::{Label, LocationId, Profile, SourceId, Stack, StackId};
use crate::protobuf::encode::{self, MAX_VARINT_FIELD, PACKED};
use crate::protobuf::output::Output;
use crate::protobuf::tables::{EncodedTable, StringTableBuilder};
use labels::Labels;
use merged::Merged;
use recorded::Recorded;
use std::io::Write;
use std::slice;
use symbols::Writing;

/// Writes pprof messages.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    /// Whether to sum samples of equal stacks and labels, as Go does when it merges profiles:
    /// samples with only zeros, and rows of tables that no sample refers to, are left out. If
    /// false, all tables are written as they are, with all sample types of the profile, including
    /// those whose sums have no meaning.
    pub aggregate: bool,
    /// Whether labels describe the source of each sample, so that readers can restore the
    /// sources. If false, a label only contains the number of the run.
    pub source_labels: bool,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer {
            aggregate: true,
            source_labels: false,
        }
    }
}

impl write::Writer for Writer {
    fn always_gzip(&self) -> bool {
        true
    }

    /// Profiles recorded by R's profiler are written with the sample types `samples/count`,
    /// `cpu/nanoseconds` (the default) and `alloc_space/bytes`. The names of R functions are in
    /// `name`, and `system_name` is empty: if both were equal, pprof would demangle the name as a
    /// C++ symbol and change `<Anonymous>` or `%<>%`. A mapping states that no symbols need to be
    /// looked up. Other profiles keep their sample types.
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let types = whole_types(profile, self.aggregate)?;
        let types = types.iter().try_vec()?;
        if types.is_empty() && !profile.samples.is_empty() {
            return Err(Error::Lossy(message!(
                "The samples have no values, which pprof requires."
            )));
        }
        let mut output = Output::new(out)?;
        let (mut texts, lines_without_function) = if self.aggregate {
            merged(profile, self, &types, &mut output, stop)?
        } else {
            recorded(profile, self, &types, &mut output, stop)?
        };
        let about = header::encode(profile, &types, self.aggregate, &mut texts)?;
        cancel::check(stop)?;
        for text in &texts.strings {
            output.field(field::STRING_TABLE, &[text.as_bytes()])?;
        }
        output.bytes(&about)?;
        output.flush()?;
        let mut losses = header::losses(profile, self.source_labels)?;
        if self.source_labels {
            let sources = source_labels::without_samples(profile)?;
            losses.add(LossKind::SourceWithoutSamples, sources);
        }
        let other = |label: &&Label| label.other.is_some();
        let labels = profile.labels.iter().filter(other);
        losses.add(LossKind::OtherLabel, labels.count());
        losses.add(LossKind::LineWithoutFunction, lines_without_function);
        Ok(losses)
    }
}

/// Writes the samples as they were recorded. Returns the string table so far, and the number of
/// lines without a function.
fn recorded<'a>(
    profile: &'a Profile,
    options: &Writer,
    types: &[&WrittenType<'a>],
    output: &mut Output,
    stop: Stop,
) -> Result<(StringTableBuilder<'a>, usize)> {
    let mut texts = StringTableBuilder::new(profile.strings.len())?;
    output.bytes(&header::types(types, &mut texts)?)?;
    let mut lists = Lists::new(profile, false)?;
    let mut tables = Recorded::new(profile, &lists.inlining, stop)?;
    lists.verbatim = tables.ids().are_rows();
    let mut labels = Labels::new(profile, options.aggregate, options.source_labels)?;
    let mut values = Vec::new();
    let mut scratch = Vec::new();
    for (row, stack, source) in samples(profile) {
        cancel::at_row(row, stop)?;
        let list = lists.of(stack, &mut tables, &mut texts)?;
        let set = labels.of(row, source, stack, &mut texts)?;
        values_of(types, row, source, &mut values)?;
        let parts = (lists.pieces.get(list), labels.sets.get(set));
        write_sample(parts, &values, &mut scratch, output)?;
    }
    cancel::check(stop)?;
    let lost = tables.write(&mut texts, output)?;
    Ok((texts, lost))
}

/// Samples are equal if the numbers of their encoded locations and of their encoded labels are.
type Key = (u32, u32);

impl Identity for Key {
    fn stack(&self) -> u32 {
        self.0
    }
}

/// Writes one sample for all that have equal stacks and labels, in the order of the first. Returns
/// the same as `recorded()`.
fn merged<'a>(
    profile: &'a Profile,
    options: &Writer,
    types: &[&WrittenType<'a>],
    output: &mut Output,
    stop: Stop,
) -> Result<(StringTableBuilder<'a>, usize)> {
    without_zeros(profile.samples.len(), |left_out| {
        let mut texts = StringTableBuilder::new(profile.strings.len())?;
        let encoded_types = header::types(types, &mut texts)?;
        let mut tables = Merged::new(profile)?;
        let mut lists = Lists::new(profile, true)?;
        let mut labels = Labels::new(profile, options.aggregate, options.source_labels)?;
        let mut groups = Groups::new(types);
        let mut values = Vec::new();
        for (row, stack, source) in samples(profile) {
            cancel::at_row(row, stop)?;
            if left_out.contains(row) {
                continue;
            }
            values_of(types, row, source, &mut values)?;
            if is_zero(&values) {
                left_out.add(row);
                continue;
            }
            let list = lists.of(stack, &mut tables, &mut texts)?;
            let set = labels.of(row, source, stack, &mut texts)?;
            groups.add(row, (list, set), &values)?;
        }
        if groups.leave_out_zeros(left_out)? {
            return Ok(None);
        }
        output.bytes(&encoded_types)?;
        let mut scratch = Vec::new();
        for (i, ((list, set), sums)) in groups.iter().enumerate() {
            cancel::at_row(i, stop)?;
            let parts = (lists.pieces.get(list), labels.sets.get(set));
            write_sample(parts, sums, &mut scratch, output)?;
        }
        cancel::check(stop)?;
        let lost = tables.write(&mut texts, output)?;
        Ok(Some((texts, lost)))
    })
}

fn samples(profile: &Profile) -> impl Iterator<Item = (usize, StackId, SourceId)> {
    let rows = profile
        .samples
        .stack
        .iter()
        .zip(profile.samples.source.iter());
    rows.enumerate()
        .map(|(row, (&stack, &source))| (row, stack, source))
}

/// `parts`: the encoded locations and labels.
fn write_sample(
    (list, labels): (&[u8], &[u8]),
    values: &[i64],
    scratch: &mut Vec<u8>,
    output: &mut Output,
) -> Result<()> {
    scratch.clear();
    let values = values.iter().map(|&value| value as u64);
    encode::put_repeated(scratch, sample::VALUE, values);
    output.field(field::SAMPLE, &[list, scratch, labels])
}

/// The encoded list of locations of each distinct stack.
struct Lists<'a> {
    profile: &'a Profile,
    inlining: Inlining<'a>,
    /// By stack: the number of its list plus 1, or 0 if it has no list yet.
    number: Vec<u32>,
    /// Whether stacks of equal locations get the same number.
    shared: bool,
    /// Whether the ids of locations are their rows, counted from 1, as in packed stacks.
    verbatim: bool,
    pieces: EncodedTable,
    /// The locations of a packed stack.
    space: Vec<LocationId>,
    ids: Vec<u64>,
    encoded: Vec<u8>,
}

impl<'a> Lists<'a> {
    fn new(profile: &'a Profile, shared: bool) -> Result<Lists<'a>> {
        let mut number = Vec::new();
        number.try_fill(profile.stacks.len(), 0)?;
        Ok(Lists {
            profile,
            inlining: Inlining::new(profile)?,
            number,
            shared,
            verbatim: false,
            pieces: EncodedTable::default(),
            space: Vec::new(),
            ids: Vec::new(),
            encoded: Vec::new(),
        })
    }

    /// The number of a stack's list.
    #[inline]
    fn of(
        &mut self,
        stack: StackId,
        tables: &mut impl Writing<'a>,
        texts: &mut StringTableBuilder<'a>,
    ) -> Result<u32> {
        let known = self.number[stack.row()];
        if known != 0 {
            return Ok(known - 1);
        }
        self.encoded.clear();
        let stack_of = self.profile.stacks.get(stack);
        match stack_of {
            Stack::Packed(list) if self.verbatim && stack_of.len() >= PACKED => {
                encode::put_bytes(&mut self.encoded, sample::LOCATION_ID, list)?;
            }
            _ => self.encode(stack_of, tables, texts)?,
        }
        let number = if self.shared {
            self.pieces.intern(&self.encoded)?
        } else {
            self.pieces.push(&self.encoded)?
        };
        self.number[stack.row()] = number + 1;
        Ok(number)
    }

    fn encode(
        &mut self,
        stack: Stack<'a>,
        tables: &mut impl Writing<'a>,
        texts: &mut StringTableBuilder<'a>,
    ) -> Result<()> {
        let mut ids = std::mem::take(&mut self.ids);
        ids.clear();
        let stack = stack.unpacked(&mut self.space)?;
        if self.inlining.any {
            for run in self.inlining.split(stack) {
                ids.try_push(tables.id(run, texts)?)?;
            }
        } else {
            for row in stack {
                let id = match tables.ids().single(*row) {
                    0 => tables.id(slice::from_ref(row), texts)?,
                    id => id,
                };
                ids.try_push(id)?;
            }
        }
        self.encoded
            .try_reserve(MAX_VARINT_FIELD * (ids.len() + 1))?;
        encode::put_repeated(&mut self.encoded, sample::LOCATION_ID, ids.iter().copied());
        self.ids = ids;
        Ok(())
    }
}
