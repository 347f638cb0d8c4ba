//! The dictionary of a message: the tables of mappings, locations, functions, links, attributes,
//! stacks and strings.
//!
//! Records are added at their first use, so the tables contain no unused records. Records with
//! equal encodings are stored once. The first record of each table is empty: index 0 means "none".

use super::attributes::{AttributeList, AttributeTable};
use super::fields::{put_indices, put_unless_0};
use super::mappings::{Mappings, attributes_of_row};
use crate::analysis::aggregate::LeftOut;
use crate::analysis::inlining::{Inlining, SplitIds};
use crate::analysis::sample_types::has_r_frames;
use crate::attribute_value::AnyValue;
use crate::error::{Error, Result};
use crate::formats::losses::LossKind;
use crate::formats::otlp::proto::{dictionary, function, keys, line, link, location, stack};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, copied, owned};
use crate::message;
use crate::model::{
    Address, FunctionId, Link, LocationId, MappingId, Names, Profile, StackId, StringId, UNKNOWN,
};
use crate::protobuf::encode;
use crate::protobuf::output::Output;
use crate::protobuf::tables::EncodedTable;
use crate::text::decoded;
use data_encoding::HEXLOWER_PERMISSIVE;

/// The value of `profile.frame.type` for frames of R code: no well-known value fits, and the
/// semantic conventions allow others.
const R_FRAME: &str = "r";
/// The lengths of the ids of a link, in bytes.
const TRACE_ID: usize = 16;
const SPAN_ID: usize = 8;

/// The tables of the dictionary, and the indices of the model's rows in them.
pub struct Tables<'a> {
    profile: &'a Profile,
    pub attributes: AttributeTable<'a>,
    pub mappings: Mappings,
    locations: EncodedTable,
    functions: EncodedTable,
    links: EncodedTable,
    stacks: EncodedTable,
    inlining: &'a Inlining<'a>,
    /// For each run of locations (inlined calls at one address), function, mapping and stack, its
    /// index in the table plus 1, or 0 if it is not in the table yet.
    runs: SplitIds,
    function_indices: Vec<u32>,
    stack_indices: Vec<u32>,
    /// For each location, whether it is a frame of R code; see [`frames_of_r()`].
    of_r: Vec<bool>,
    /// Buffers, reused for each stack: its location indices, and its encoded record.
    list: Vec<u8>,
    encoded: Vec<u8>,
    /// The locations of a packed stack.
    space: Vec<LocationId>,
}

impl<'a> Tables<'a> {
    /// `left_out`: the samples that are not written.
    pub fn new(
        profile: &'a Profile,
        inlining: &'a Inlining<'a>,
        left_out: &LeftOut,
    ) -> Result<Tables<'a>> {
        let indices = |count: usize| {
            let mut indices = Vec::new();
            indices.try_fill(count, 0).map(|()| indices)
        };
        let mut tables = Tables {
            profile,
            attributes: AttributeTable::new(profile)?,
            mappings: Mappings::new(profile)?,
            locations: EncodedTable::default(),
            functions: EncodedTable::default(),
            links: EncodedTable::default(),
            stacks: EncodedTable::default(),
            inlining,
            runs: SplitIds::new(profile)?,
            function_indices: indices(profile.functions.len())?,
            stack_indices: indices(profile.stacks.len())?,
            of_r: frames_of_r(profile)?,
            list: Vec::new(),
            encoded: Vec::new(),
            space: Vec::new(),
        };
        for table in [
            &mut tables.locations,
            &mut tables.functions,
            &mut tables.stacks,
        ] {
            table.intern(&[])?;
        }
        // Ids of zeros instead of empty ids, for readers that check the length.
        let zeros = ids_of_link(&[0; TRACE_ID], &[0; SPAN_ID]);
        tables.links.intern(&zeros?)?;
        tables
            .mappings
            .add_all(profile, left_out, &mut tables.attributes)?;
        Ok(tables)
    }

    /// Returns the index of a stack, and adds the stack if it is new.
    #[inline]
    pub fn stack(&mut self, id: StackId) -> Result<u32> {
        match self.stack_indices[id.row()] {
            0 => self.new_stack(id),
            known => Ok(known - 1),
        }
    }

    fn new_stack(&mut self, id: StackId) -> Result<u32> {
        let profile = self.profile;
        let mut space = std::mem::take(&mut self.space);
        let stack = profile.stacks.get(id).unpacked(&mut space)?;
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        list.try_reserve(encode::MAX_VARINT_FIELD * stack.len())?;
        if self.inlining.any {
            for run in self.inlining.split(stack) {
                encode::put_varint(&mut list, u64::from(self.location(run)?));
            }
        } else {
            for &row in stack {
                let index = match self.runs.single(row) {
                    0 => u64::from(self.location(&[row])?),
                    known => known - 1,
                };
                encode::put_varint(&mut list, index);
            }
        }
        let mut encoded = std::mem::take(&mut self.encoded);
        encoded.clear();
        if !list.is_empty() {
            encode::put_length_header(&mut encoded, stack::LOCATION_INDICES, list.len());
            encoded.try_extend(&list)?;
        }
        let index = self.stacks.intern(&encoded)?;
        self.stack_indices[id.row()] = index + 1;
        (self.list, self.encoded, self.space) = (list, encoded, space);
        Ok(index)
    }

    #[inline]
    fn location(&mut self, run: &[LocationId]) -> Result<u32> {
        let known = self.runs.get(run)?;
        if known != 0 {
            return Ok(known as u32 - 1);
        }
        let index = self.new_location(run)?;
        self.runs.set(run, u64::from(index) + 1)?;
        Ok(index)
    }

    fn new_location(&mut self, run: &[LocationId]) -> Result<u32> {
        let profile = self.profile;
        let Some(&first) = run.first() else {
            return Ok(0);
        };
        let address = profile.address_of(&profile.locations.get(first));
        let mut out = Vec::new();
        let mapping = match address.mapping {
            Some(id) => self.mapping(id)?,
            None => 0,
        };
        put_unless_0(&mut out, location::MAPPING_INDEX, u64::from(mapping));
        put_unless_0(&mut out, location::ADDRESS, address.address);
        let mut inner = Vec::new();
        for &id in run {
            let row = profile.locations.get(id);
            // A location without a function and a line is an address that was not symbolized. One with an empty line
            // means the same.
            let is_empty = row.function.is_none() && row.line.unwrap_or(0) == 0 && row.column == 0;
            if is_empty && run.len() == 1 {
                continue;
            }
            inner.clear();
            let function = match row.function {
                Some(id) => self.function(id)?,
                None => 0,
            };
            put_unless_0(&mut inner, line::FUNCTION_INDEX, u64::from(function));
            put_unless_0(&mut inner, line::LINE, row.line.unwrap_or(0) as u64);
            put_unless_0(&mut inner, line::COLUMN, row.column as u64);
            encode::put_bytes(&mut out, location::LINES, &inner)?;
        }
        let attributes = self.location_attributes(run, address)?;
        put_indices(&mut out, location::ATTRIBUTE_INDICES, &attributes)?;
        self.locations.intern(&out)
    }

    fn location_attributes(&mut self, run: &[LocationId], address: Address) -> Result<Vec<u64>> {
        let profile = self.profile;
        let mut list = AttributeList::default();
        // OpenTelemetry stores one frame type for all calls at a location. The outermost call that
        // has a recorded type or is a frame of R code determines it.
        let frame_type = run.iter().rev().find_map(|&id| {
            let said = profile.locations.get(id).frame_type;
            (said.is_some() || self.of_r[id.row()]).then_some(said)
        });
        let others = run.iter().filter(|&&id| {
            let said = profile.locations.get(id).frame_type;
            said.is_some() && Some(said) != frame_type
        });
        self.attributes
            .losses
            .add(LossKind::FrameType, others.count());
        match frame_type {
            Some(Some(type_)) => {
                list.add_text(&mut self.attributes, keys::FRAME_TYPE, type_.text())?
            }
            Some(None) => list.add(
                &mut self.attributes,
                keys::FRAME_TYPE,
                &AnyValue::String(owned(R_FRAME)?),
            )?,
            None => {}
        }
        if address.is_folded {
            list.add(&mut self.attributes, keys::IS_FOLDED, &AnyValue::Bool(true))?;
        }
        for &id in run {
            for (_, attribute) in attributes_of_row(&profile.location_attributes, id) {
                list.add_of_model(&mut self.attributes, attribute)?;
            }
        }
        Ok(list.indices)
    }

    fn mapping(&mut self, id: MappingId) -> Result<u32> {
        self.mappings
            .use_for_location(self.profile, id, &mut self.attributes)
    }

    fn function(&mut self, id: FunctionId) -> Result<u32> {
        let known = self.function_indices[id.row()];
        if known != 0 {
            return Ok(known - 1);
        }
        let row = self.profile.functions.get(id);
        let mut out = Vec::new();
        let filename = self.text(row.filename)?;
        if matches!(row.recorded, Names::Name | Names::Both) {
            put_unless_0(&mut out, function::NAME_STRINDEX, self.text(row.name)?);
        }
        // R has no system names; see the pprof writer.
        if matches!(row.recorded, Names::SystemName | Names::Both) {
            let name = self.text(row.system_name)?;
            put_unless_0(&mut out, function::SYSTEM_NAME_STRINDEX, name);
        }
        if out.is_empty() && filename == 0 {
            // The specification requires a function to have at least one non-empty string.
            put_unless_0(
                &mut out,
                function::NAME_STRINDEX,
                self.attributes.texts.index(UNKNOWN)?,
            );
        }
        put_unless_0(&mut out, function::FILENAME_STRINDEX, filename);
        put_unless_0(&mut out, function::START_LINE, row.start_line as u64);
        let index = self.functions.intern(&out)?;
        self.function_indices[id.row()] = index + 1;
        Ok(index)
    }

    /// Returns the index of a link, and adds the link if it is new.
    pub fn link(&mut self, of: Link) -> Result<u32> {
        let bytes = |id| {
            let digits = self.profile.strings.get(id).as_bytes();
            let bytes = decoded(&HEXLOWER_PERMISSIVE, digits)?;
            Ok::<_, Error>(bytes.unwrap_or_default())
        };
        let (trace, span) = (bytes(of.trace_id)?, bytes(of.span_id)?);
        if trace.len() != TRACE_ID || span.len() != SPAN_ID {
            return Err(Error::Lossy(message!(
                "A sample belongs to the trace `{}` and the span `{}`; OpenTelemetry has ids of \
                 {TRACE_ID} and {SPAN_ID} bytes.",
                self.profile.strings.get(of.trace_id),
                self.profile.strings.get(of.span_id),
            )));
        }
        self.links.intern(&ids_of_link(&trace, &span)?)
    }

    pub fn text(&mut self, id: StringId) -> Result<u64> {
        self.attributes.text(id)
    }

    /// The number of bytes that [`Tables::write()`] writes.
    pub fn size(&self) -> usize {
        let pieces = self.all().into_iter().flat_map(|(_, table)| table.iter());
        let texts = self.attributes.texts.strings.iter().map(|text| text.len());
        let lengths = pieces.map(<[u8]>::len).chain(texts);
        lengths.map(encode::bytes_field_len).sum()
    }

    pub fn write(&self, output: &mut Output, stop: Stop) -> Result<()> {
        for (number, table) in self.all() {
            for (i, piece) in table.iter().enumerate() {
                cancel::at_row(i, stop)?;
                output.field(number, &[piece])?;
            }
        }
        for text in &self.attributes.texts.strings {
            output.field(dictionary::STRING_TABLE, &[text.as_bytes()])?;
        }
        Ok(())
    }

    fn all(&self) -> [(u32, &EncodedTable); 6] {
        [
            (dictionary::MAPPING_TABLE, &self.mappings.entries),
            (dictionary::LOCATION_TABLE, &self.locations),
            (dictionary::FUNCTION_TABLE, &self.functions),
            (dictionary::LINK_TABLE, &self.links),
            (dictionary::ATTRIBUTE_TABLE, &self.attributes.entries),
            (dictionary::STACK_TABLE, &self.stacks),
        ]
    }
}

/// Returns for each location whether it is a frame of R code: `Rprof()` and readers of R's memory do
/// not record a type. These are the locations that have a function and no address, and that occur
/// only in stacks that they recorded.
fn frames_of_r(profile: &Profile) -> Result<Vec<bool>> {
    let mut of_r = Vec::new();
    of_r.try_fill(profile.locations.len(), false)?;
    if !profile.sources.iter().any(has_r_frames) {
        return Ok(of_r);
    }
    let mut by_others = copied(&of_r)?;
    let mut seen = Vec::new();
    seen.try_fill(profile.stacks.len(), [false; 2])?;
    let mut space = Vec::new();
    let samples = profile
        .samples
        .stack
        .iter()
        .zip(profile.samples.source.iter());
    for (stack, source) in samples {
        let by_r = has_r_frames(&profile.sources[source.row()]);
        if std::mem::replace(&mut seen[stack.row()][usize::from(by_r)], true) {
            continue;
        }
        let marks = if by_r { &mut of_r } else { &mut by_others };
        for frame in profile.stacks.get(*stack).unpacked(&mut space)? {
            marks[frame.row()] = true;
        }
    }
    for ((of_r, by_others), location) in
        of_r.iter_mut().zip(by_others).zip(profile.locations.iter())
    {
        *of_r &= !by_others && location.address.is_none() && location.function.is_some();
    }
    Ok(of_r)
}

fn ids_of_link(trace: &[u8], span: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (number, id) in [(link::TRACE_ID, trace), (link::SPAN_ID, span)] {
        encode::put_bytes(&mut out, number, id)?;
    }
    Ok(out)
}
