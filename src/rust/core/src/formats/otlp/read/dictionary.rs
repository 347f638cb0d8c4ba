//! The dictionary of a message: its tables, as rows of the model.
//!
//! Indices count from 0. The first entry of each table stands for none and must say
//! nothing; where a writer did not know that and it says something, it counts.

use super::attributes::AttributeTable;
use super::budget::Budget;
use crate::attribute_value::AnyValue;
use crate::collections::{Lists, next_row};
use crate::error::Position;
use crate::formats::otlp::proto::{
    dictionary as table, function, keys, line, link, location, mapping, stack,
};
use crate::formats::problems::{ProblemKind, Problems};
use crate::formats::string_table::{NumberField, StringTable};
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{
    Address, Attribute, FrameType, Function, FunctionId, Link, Location, LocationId, Mapping,
    MappingId, Profile, StackId, Symbols,
};
use crate::protobuf::decode::{Message, Result, error_at};
use crate::text::encoded;
use data_encoding::HEXLOWER;

const WHAT: &str = "the tables of a profile";
/// No entry of a table has a field with a higher number that is known here.
const LAST_FIELD: u32 = 5;

/// Where each entry of each table stands.
#[derive(Default)]
pub struct Outline<'a> {
    pub mappings: Vec<Message<'a>>,
    pub locations: Vec<Message<'a>>,
    pub functions: Vec<Message<'a>>,
    pub links: Vec<Message<'a>>,
    pub attributes: Vec<Message<'a>>,
    pub stacks: Vec<Message<'a>>,
}

/// The tables of a message, for its profiles to refer to.
pub struct Dictionary<'a> {
    pub texts: StringTable<'a>,
    pub attributes: AttributeTable,
    links: Vec<Option<Link>>,
    stacks: Vec<StackId>,
}

impl<'a> Outline<'a> {
    /// Adds the texts to `texts`.
    pub fn read(
        mut message: Message<'a>,
        texts: &mut StringTable<'a>,
        stop: Stop,
    ) -> Result<Outline<'a>> {
        let mut outline = Outline::default();
        let mut watch = Watch::new(stop);
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            let list = match found.number {
                table::MAPPING_TABLE => &mut outline.mappings,
                table::LOCATION_TABLE => &mut outline.locations,
                table::FUNCTION_TABLE => &mut outline.functions,
                table::LINK_TABLE => &mut outline.links,
                table::ATTRIBUTE_TABLE => &mut outline.attributes,
                table::STACK_TABLE => &mut outline.stacks,
                table::STRING_TABLE => {
                    let text = found.message()?;
                    texts.add(text.at(), text.bytes().len())?;
                    continue;
                }
                _ => continue,
            };
            list.try_push(found.message()?, WHAT)?;
        }
        Ok(outline)
    }
}

impl<'a> Dictionary<'a> {
    /// `texts`: a table without any.
    pub fn read(
        message: Option<Message<'a>>,
        mut texts: StringTable<'a>,
        profile: &mut Profile,
        problems: &mut Problems,
        budget: &mut Budget,
        stop: Stop,
    ) -> Result<Dictionary<'a>> {
        let outline = match message {
            Some(message) => Outline::read(message, &mut texts, stop)?,
            None => Outline::default(),
        };
        if texts.is_empty() {
            // Whoever has no texts may have no table of them.
            texts.add(0, 0)?;
        }
        let attributes = AttributeTable::read(
            &outline.attributes,
            &mut texts,
            &mut profile.strings,
            problems,
            stop,
        )?;
        let mut reader = Reader {
            texts,
            attributes,
            profile,
            problems,
            budget,
            stop,
        };
        for list in [&outline.mappings, &outline.locations, &outline.functions] {
            reader.note_zero(list);
        }
        reader.note_zero(&outline.stacks);
        let mappings = reader.mappings(&outline.mappings)?;
        let functions = reader.functions(&outline.functions)?;
        let locations = reader.locations(&outline.locations, mappings, functions)?;
        let links = reader.links(&outline.links)?;
        let stacks = reader.stacks(&outline.stacks, locations)?;
        Ok(Dictionary {
            texts: reader.texts,
            attributes: reader.attributes,
            links,
            stacks,
        })
    }

    pub fn link(&self, index: u64, at: usize) -> Result<Option<Link>> {
        if index == 0 {
            return Ok(None);
        }
        entry(&self.links, index, "Link", at).copied()
    }

    #[inline]
    pub fn stack(&self, index: u64, at: usize) -> Result<StackId> {
        entry(&self.stacks, index, "Stack", at).copied()
    }
}

fn entry<'t, T>(table: &'t [T], index: u64, what: &str, at: usize) -> Result<&'t T> {
    match usize::try_from(index).ok().and_then(|row| table.get(row)) {
        Some(entry) => Ok(entry),
        None => out_of_range(what, index, table.len(), at),
    }
}

#[cold]
fn out_of_range<T>(what: &str, index: u64, count: usize, at: usize) -> Result<T> {
    let index = index as i64;
    error_at(
        at,
        message!("{what} {index} is asked for, but there are only {count}."),
    )
}

/// The rows of a table of the model that are entries of a dictionary.
#[derive(Clone, Copy)]
struct Rows {
    what: &'static str,
    before: u32,
    entries: u64,
    /// The first entry has no row, as it says nothing.
    skipped: u64,
}

impl Rows {
    /// `before`: how many rows there are from other messages.
    fn of(what: &'static str, before: usize, list: &[Message]) -> Result<Rows> {
        Ok(Rows {
            what,
            before: next_row(before, "rows")?,
            entries: list.len().max(1) as u64,
            skipped: u64::from(list.first().is_none_or(says_nothing)),
        })
    }

    /// The entries that have a row.
    fn entries<'l, 'a>(self, list: &'l [Message<'a>]) -> impl Iterator<Item = Message<'a>> + 'l {
        list.iter().skip(self.skipped as usize).copied()
    }

    /// `None` for an entry that says nothing.
    #[inline]
    fn row(self, index: u64, at: usize) -> Result<Option<u32>> {
        if index >= self.entries {
            return out_of_range(self.what, index, self.entries as usize, at);
        }
        Ok(index
            .checked_sub(self.skipped)
            .map(|row| self.before + row as u32))
    }
}

/// The locations of a message: each is a run of rows, one for each inlined call,
/// innermost first.
struct Runs {
    rows: Rows,
    frames: Lists<LocationId>,
    /// Each entry is one row, the one after that of the entry before.
    plain: bool,
}

impl Runs {
    fn of(&self, index: u64, at: usize) -> Result<&[LocationId]> {
        let count = self.frames.len();
        match usize::try_from(index).ok().filter(|row| *row < count) {
            Some(row) => Ok(self.frames.get(row)),
            None => out_of_range(self.rows.what, index, count, at),
        }
    }
}

struct Reader<'a, 'p> {
    texts: StringTable<'a>,
    attributes: AttributeTable,
    profile: &'p mut Profile,
    problems: &'p mut Problems,
    budget: &'p mut Budget,
    stop: Stop<'p>,
}

impl Reader<'_, '_> {
    /// Notes it where an entry that should stand for none says something.
    fn note_zero(&mut self, list: &[Message]) {
        if let Some(first) = list.first().filter(|first| !says_nothing(first)) {
            let position = Position::Byte(first.at() as u64);
            self.problems.note(ProblemKind::ZeroEntry, position, b"");
        }
    }

    fn mappings(&mut self, list: &[Message]) -> Result<Rows> {
        let rows = Rows::of("Mapping", self.profile.mappings.len(), list)?;
        let mut watch = Watch::new(self.stop);
        for mut message in rows.entries(list) {
            let at = message.at();
            watch.reach(at)?;
            let mut filename = NumberField { value: 0, at };
            let empty = self.profile.strings.intern("")?;
            let mut mapping = Mapping {
                start: 0,
                limit: 0,
                offset: 0,
                filename: empty,
                build_id: empty,
                symbols: Symbols::default(),
                native_id: None,
            };
            let id = MappingId(next_row(self.profile.mappings.len(), "mappings")?);
            while let Some(found) = message.field()? {
                match found.number {
                    mapping::MEMORY_START => mapping.start = found.uint()?,
                    mapping::MEMORY_LIMIT => mapping.limit = found.uint()?,
                    mapping::FILE_OFFSET => mapping.offset = found.uint()?,
                    mapping::FILENAME_STRINDEX => filename = NumberField::of(&found)?,
                    mapping::ATTRIBUTE_INDICES => {
                        for (index, at) in indices(&found)? {
                            if let Some(kept) = self.of_mapping(index, at, &mut mapping)? {
                                let all = &mut self.profile.mapping_attributes;
                                all.try_push((id, kept), WHAT)?;
                            }
                        }
                    }
                    _ => {}
                }
            }
            mapping.filename = self
                .texts
                .id(filename, &mut self.profile.strings, self.problems)?;
            self.profile.add_mapping(mapping)?;
        }
        Ok(rows)
    }

    /// An attribute that no column of mappings holds.
    fn of_mapping(
        &mut self,
        index: u64,
        at: usize,
        mapping: &mut Mapping,
    ) -> Result<Option<Attribute>> {
        let Some(entry) = self.attributes.get(index, at)? else {
            return Ok(None);
        };
        let symbols = &mut mapping.symbols;
        match (self.profile.strings.get(entry.kept.key), &entry.value) {
            (keys::BUILD_ID, AnyValue::String(_)) => mapping.build_id = entry.kept.value.text,
            (keys::HAS_FUNCTIONS, AnyValue::Bool(has)) => symbols.functions = *has,
            (keys::HAS_FILENAMES, AnyValue::Bool(has)) => symbols.filenames = *has,
            (keys::HAS_LINE_NUMBERS, AnyValue::Bool(has)) => symbols.line_numbers = *has,
            (keys::HAS_INLINE_FRAMES, AnyValue::Bool(has)) => symbols.inline_frames = *has,
            _ => return Ok(Some(entry.kept)),
        }
        Ok(None)
    }

    fn functions(&mut self, list: &[Message]) -> Result<Rows> {
        let rows = Rows::of("Function", self.profile.functions.len(), list)?;
        let mut watch = Watch::new(self.stop);
        for mut message in rows.entries(list) {
            let at = message.at();
            watch.reach(at)?;
            let [mut name, mut system_name, mut filename, mut start_line] =
                [NumberField { value: 0, at }; 4];
            while let Some(found) = message.field()? {
                match found.number {
                    function::NAME_STRINDEX => name = NumberField::of(&found)?,
                    function::SYSTEM_NAME_STRINDEX => system_name = NumberField::of(&found)?,
                    function::FILENAME_STRINDEX => filename = NumberField::of(&found)?,
                    function::START_LINE => start_line = NumberField::of(&found)?,
                    _ => {}
                }
            }
            let number = start_line.value as i64;
            let start_line = self.problems.line_number(number, start_line.at);
            let strings = &mut self.profile.strings;
            let mut text = |index| self.texts.id(index, strings, self.problems);
            let names = [text(name)?, text(system_name)?];
            let filename = text(filename)?;
            let function = Function::recorded(names, filename, start_line, strings)?;
            self.profile.functions.push(function)?;
        }
        Ok(rows)
    }

    fn locations(&mut self, list: &[Message], mappings: Rows, functions: Rows) -> Result<Runs> {
        let before = self.profile.locations.len();
        let mut runs = Runs {
            rows: Rows::of("Location", before, list)?,
            frames: Lists::default(),
            plain: true,
        };
        if runs.rows.skipped > 0 {
            // A frame of which nothing is known gets a row where there is one.
            runs.frames.close(WHAT)?;
        }
        let mut lines = Vec::new();
        let mut watch = Watch::new(self.stop);
        for message in runs.rows.entries(list) {
            watch.reach(message.at())?;
            lines.clear();
            self.location(message, mappings, functions, &mut lines)?;
            for &line in &lines {
                let row = self.profile.locations.push(line)?;
                runs.frames.push_item(row, WHAT)?;
            }
            runs.plain &= lines.len() == 1;
            runs.frames.close(WHAT)?;
        }
        Ok(runs)
    }

    /// The rows of a location, which are going to be pushed.
    fn location(
        &mut self,
        mut message: Message,
        mappings: Rows,
        functions: Rows,
        lines: &mut Vec<Location>,
    ) -> Result<()> {
        let mut address = Address::default();
        let mut mapping = None;
        let mut frame_type = None;
        let first = self.profile.location_attributes.len();
        while let Some(found) = message.field()? {
            match found.number {
                location::MAPPING_INDEX => mapping = Some(NumberField::of(&found)?),
                location::ADDRESS => address.address = found.uint()?,
                location::LINES => {
                    let line = line(found.message()?, functions, self.problems)?;
                    lines.try_push(line, "locations")?;
                }
                location::ATTRIBUTE_INDICES => {
                    for (index, at) in indices(&found)? {
                        self.of_location(index, at, &mut address, &mut frame_type)?;
                    }
                }
                _ => {}
            }
        }
        if let Some(NumberField { value: index, at }) = mapping {
            address.mapping = mappings.row(index, at)?.map(MappingId);
        }
        if lines.is_empty() {
            // An address without a symbol.
            lines.try_push(Location::default(), "locations")?;
        }
        let outermost = lines.len() - 1;
        // What is said of the whole is said of the function that the others are
        // inlined into.
        let own = next_row(self.profile.locations.len() + outermost, "locations")?;
        for (id, _) in &mut self.profile.location_attributes[first..] {
            *id = LocationId(own);
        }
        let address = self.profile.intern_address(address)?;
        for (i, line) in lines.iter_mut().enumerate() {
            line.address = address;
            line.inlined = i < outermost;
            line.frame_type = frame_type;
        }
        Ok(())
    }

    fn of_location(
        &mut self,
        index: u64,
        at: usize,
        address: &mut Address,
        frame_type: &mut Option<FrameType>,
    ) -> Result<()> {
        let Some(entry) = self.attributes.get(index, at)? else {
            return Ok(());
        };
        let profile = &mut self.profile;
        match (profile.strings.get(entry.kept.key), &entry.value) {
            (keys::IS_FOLDED, AnyValue::Bool(is_folded)) => address.is_folded = *is_folded,
            (keys::FRAME_TYPE, AnyValue::String(type_)) if !type_.is_empty() => {
                *frame_type = profile.frame_type_of_text(entry.kept.value.text);
            }
            _ => {
                let all = &mut profile.location_attributes;
                all.try_push((LocationId(0), entry.kept), WHAT)?;
            }
        }
        Ok(())
    }

    fn links(&mut self, list: &[Message]) -> Result<Vec<Option<Link>>> {
        let mut links = Vec::new();
        let mut watch = Watch::new(self.stop);
        for &(mut message) in list {
            watch.reach(message.at())?;
            let [mut trace, mut span] = [&[][..]; 2];
            while let Some(found) = message.field()? {
                match found.number {
                    link::TRACE_ID => trace = found.message()?.bytes(),
                    link::SPAN_ID => span = found.message()?.bytes(),
                    _ => {}
                }
            }
            let strings = &mut self.profile.strings;
            let link = match is_none(trace) && is_none(span) {
                true => None,
                false => Some(Link {
                    trace_id: strings.intern(&encoded(&HEXLOWER, trace)?)?,
                    span_id: strings.intern(&encoded(&HEXLOWER, span)?)?,
                }),
            };
            links.try_push(link, WHAT)?;
        }
        Ok(links)
    }

    fn stacks(&mut self, list: &[Message], runs: Runs) -> Result<Vec<StackId>> {
        let mut stacks = Vec::new();
        let mut frames = Vec::new();
        if list.is_empty() {
            stacks.try_push(self.profile.stacks.intern(&[])?, WHAT)?;
        }
        let mut unset = None;
        let mut watch = Watch::new(self.stop);
        // Inlined calls make a long stack of a few bytes.
        let (mut written, mut frames_watch) = (0, Watch::new(self.stop));
        for &(mut message) in list {
            watch.reach(message.at())?;
            frames.clear();
            while let Some(found) = message.field()? {
                if found.number != stack::LOCATION_INDICES {
                    continue;
                }
                let mut located = |index: u64, at: usize| -> Result<()> {
                    if runs.plain {
                        if let Some(row) = runs.rows.row(index, at)? {
                            return Ok(frames.try_push(LocationId(row), "a stack")?);
                        }
                    }
                    if index < runs.rows.skipped {
                        let row = match unset {
                            Some(row) => row,
                            None => self.profile.locations.push(Location::default())?,
                        };
                        unset = Some(row);
                        return Ok(frames.try_push(row, "a stack")?);
                    }
                    let run = runs.of(index, at)?;
                    self.budget.take(size_of_val(run), at)?;
                    written += size_of_val(run);
                    frames_watch.reach(written)?;
                    Ok(frames.try_extend(run, "a stack")?)
                };
                match found.packed() {
                    Some(list) => list.for_each_varint(located)?,
                    // Of one that stands alone the last byte, which no other field has.
                    None => located(found.uint()?, message.at() - 1)?,
                }
            }
            stacks.try_push(self.profile.stacks.push(&frames)?, WHAT)?;
        }
        Ok(stacks)
    }
}

/// Whether all fields are what they would be if they were not there.
fn says_nothing(message: &Message) -> bool {
    let mut message = *message;
    loop {
        match message.field() {
            Ok(None) => return true,
            Ok(Some(found)) if found.is_zero() || found.number > LAST_FIELD => {}
            _ => return false,
        }
    }
}

/// Zeros are no id of a trace or span.
fn is_none(id: &[u8]) -> bool {
    id.iter().all(|&byte| byte == 0)
}

/// The numbers of a repeated field that holds few, each with its place.
pub fn indices(found: &crate::protobuf::decode::Field) -> Result<Vec<(u64, usize)>> {
    let mut indices = Vec::new();
    let at = found.at;
    found.each(|index| indices.try_push((index, at), WHAT))?;
    Ok(indices)
}

fn line(mut message: Message, functions: Rows, problems: &mut Problems) -> Result<Location> {
    let [mut function, mut line, mut column] = [NumberField::default(); 3];
    while let Some(found) = message.field()? {
        match found.number {
            line::FUNCTION_INDEX => function = NumberField::of(&found)?,
            line::LINE => line = NumberField::of(&found)?,
            line::COLUMN => column = NumberField::of(&found)?,
            _ => {}
        }
    }
    let mut number = |number: NumberField| problems.line_number(number.value as i64, number.at);
    Ok(Location {
        function: functions.row(function.value, function.at)?.map(FunctionId),
        line: Some(number(line)),
        column: number(column),
        ..Location::default()
    })
}
