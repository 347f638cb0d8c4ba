//! Reads messages of OpenTelemetry straight into columns.
//!
//! Which version a message is of is found out first ([`layout`]). Then come the tables
//! of its dictionary, which are rows of the model ([`Dictionary`]), and then one
//! profile after the other.

use super::attributes::{keep_pairs, read_pairs};
use super::budget::Budget;
use super::dictionary::Dictionary;
use super::json;
use super::layout::{self, Layout};
use super::profiles::{Header, SourceMaker};
use super::proto::{data, entity_ref, keys, resource, resource_profiles, scope, scope_profiles};
use super::samples::{LabelForms, SampleReader};
use crate::cancel::{self, Stop};
use crate::error::{Error, Place, Result};
use crate::formats::{self, Format};
use crate::gzip::Content;
use crate::input::{self, Origin};
use crate::memory::TryGrow;
use crate::model::{
    Any, Entity, Interner, Profile, Resource, ResourceId, SampleType, Scope, ScopeId, StringId,
    Strings, Values, next_row,
};
use crate::problems::{ProblemKind, Problems};
use crate::protobuf::load::{self, Wanted, Watch};
use crate::protobuf::texts::TextTable;
use crate::protobuf::wire::{Fault, Message, Result as WireResult, fault};
use std::io::Read;
use std::path::Path;

const WANTED: Wanted = Wanted {
    what: "an OpenTelemetry profile",
    format: Format::Otlp,
};

/// Sources between two questions whether to stop.
const SOURCES: usize = 100;
/// More sample types than any profiler has; each is a column of all samples.
const MOST_TYPES: usize = 1000;

/// Reads a file, gzip'd or not.
pub fn read_path(path: &Path, origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let (content, origin) = input::open(path, origin)?;
    decode(
        &load::load(content, &origin.name, WANTED, stop)?,
        origin,
        stop,
    )
}

/// Reads a message from anywhere, gzip'd or not: `ProfilesData` or
/// `ExportProfilesServiceRequest`, as protocol buffers or JSON, of JSON also one a line.
///
/// Each profile is a source, but profiles of one scope that have the same samples are one,
/// with several sample types.
pub fn read(input: impl Read, origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let content = Content::new(input).map_err(|e| load::damaged(&origin.name, 0, &e))?;
    decode(
        &load::load(content, &origin.name, WANTED, stop)?,
        origin,
        stop,
    )
}

fn decode(bytes: &[u8], origin: Origin, stop: Stop) -> Result<(Profile, Problems)> {
    let mut file = File {
        profile: Profile::default(),
        types: Interner::default(),
        problems: Problems::default(),
        budget: Budget::new(bytes.len()),
        is_known: false,
        origin,
    };
    if formats::is_json(bytes) {
        for text in json::messages(bytes, &file.origin.name, stop)? {
            let (known, message) = (file.problems.kept().len(), Message::new(&text.message));
            file.message(&text.message, message, Some(Layout::CURRENT), stop)
                .map_err(|fault| in_json(fault, &text, &file.origin.name))?;
            file.problems.move_places(known, |bytes| text.paths(bytes));
        }
        return file.finish(bytes);
    }
    for message in framed(bytes, &file.origin.name)? {
        file.message(bytes, message, None, stop)
            .map_err(|fault| foreign_or(fault, bytes, &file.origin.name))?;
    }
    file.finish(bytes)
}

/// The messages of a file in which the length of each stands before it, in four bytes, as
/// OpenTelemetry's collector writes several into one; else the file is one message.
fn framed<'a>(bytes: &'a [u8], name: &str) -> Result<Vec<Message<'a>>> {
    let mut messages = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let length = length.map_or(0, |length| u32::from_be_bytes(*length) as usize);
        // Nobody writes empty ones: a row of zeros is what a crash leaves of a file.
        let message = Message::part(bytes, at + 4, length).filter(|_| length > 0);
        let Some(message) = message else {
            // No field has the number 0, so that only a length starts with it.
            let starts = formats::of(bytes) == Some(Format::Otlp) && bytes.first() == Some(&0);
            return match starts {
                true => Err(Error::Parse {
                    input: name.to_owned(),
                    place: Place::Byte(at as u64),
                    message: "No whole message starts here, behind its length in four bytes. Is \
                              the file cut off?"
                        .to_owned(),
                }),
                false => Ok(vec![Message::new(bytes)]),
            };
        };
        messages.try_push(message, "messages")?;
        at += 4 + length;
    }
    Ok(messages)
}

fn foreign_or(fault: Fault, bytes: &[u8], name: &str) -> Error {
    let foreign = || load::foreign(name, WANTED, bytes);
    match fault {
        // The letters of a text look like fields of an old version.
        Fault::Other(error @ Error::Unsupported(_)) if formats::is_text(bytes) => {
            foreign().unwrap_or(error)
        }
        Fault::Other(error) => error,
        Fault::At { at, message } => foreign().unwrap_or_else(|| Error::Parse {
            input: name.to_owned(),
            place: Place::Byte(at as u64),
            message,
        }),
    }
}

/// The place in the JSON that a message was made of.
fn in_json(fault: Fault, text: &json::Text, name: &str) -> Error {
    match fault {
        Fault::Other(error) => error,
        Fault::At { at, message } => Error::Parse {
            input: name.to_owned(),
            place: Place::Field(text.path(at)),
            message,
        },
    }
}

/// A file that is read, of one message or several.
struct File {
    profile: Profile,
    /// Finds the columns of sample types.
    types: Interner,
    problems: Problems,
    budget: Budget,
    /// Whether there was a field that such messages have.
    is_known: bool,
    origin: Origin,
}

impl File {
    /// `layout`: the version, where it is known.
    fn message(
        &mut self,
        bytes: &[u8],
        mut message: Message,
        layout: Option<Layout>,
        stop: Stop,
    ) -> WireResult<()> {
        let layout = match layout {
            Some(layout) => layout,
            None => {
                let found = layout::detect(message, &self.origin.name, stop)?;
                if found.ambiguous {
                    let place = Place::Byte(message.at() as u64);
                    self.problems.note(ProblemKind::AmbiguousLayout, place, b"");
                }
                found.layout
            }
        };
        cancel::check(stop)?;
        let size = message.bytes().len();
        let mut resources = Vec::new();
        let mut tables = None;
        let mut watch = Watch::new(stop);
        while let Some(found) = message.field()? {
            watch.reach(found.at)?;
            match found.number {
                data::RESOURCE_PROFILES => {
                    self.is_known = true;
                    resources.try_push(found.message()?, "resources")?;
                }
                data::DICTIONARY if tables.is_some() => {
                    return fault(
                        found.at,
                        "A second dictionary. Are these several messages in one file?",
                    );
                }
                data::DICTIONARY => {
                    self.is_known = true;
                    tables = Some(found.message()?);
                }
                _ => {}
            }
        }
        let dictionary = Dictionary::read(
            tables,
            TextTable::new(bytes, size),
            &mut self.profile,
            &mut self.problems,
            &mut self.budget,
            stop,
        )?;
        let mut reader = Reader {
            file: self,
            dictionary,
            layout,
            forms: LabelForms::default(),
            watch: Watch::new(stop),
            stop,
        };
        let alone = resources.len() == 1;
        resources
            .into_iter()
            .try_for_each(|message| reader.resource(message, alone))
    }

    /// The columns of these types, as long as there are rows, for a profile at byte `at`.
    fn columns(&mut self, types: &[SampleType], at: usize) -> WireResult<Vec<usize>> {
        let all = &mut self.profile.values;
        let rows = self.profile.samples.len();
        let mut columns = Vec::new();
        for SampleType { type_, .. } in types {
            let hash = self.types.hash((&type_.name, &type_.unit));
            let known = self.types.find(hash, |i| all[i as usize].type_ == *type_);
            let column = match known {
                Some(column) => {
                    let values = &mut all[column as usize].column;
                    values.try_fill(rows, f64::NAN, "sample values")?;
                    column
                }
                None if all.len() >= MOST_TYPES => {
                    let message = format!("There are more than {MOST_TYPES} sample types.");
                    return Err(Error::Unsupported(message).into());
                }
                None => {
                    let column = next_row(all.len(), "sample types")?;
                    self.budget.take(size_of::<f64>() * rows, at)?;
                    let values = Values::absent(&type_.name, &type_.unit, rows)?;
                    all.try_push(values, "sample types")?;
                    self.types.insert(hash, column)?;
                    column
                }
            };
            columns.try_push(column as usize, "sample types")?;
        }
        Ok(columns)
    }

    /// `bytes`: the whole file. An empty message is a message, but what has only fields
    /// that nobody knows is none of these.
    fn finish(mut self, bytes: &[u8]) -> Result<(Profile, Problems)> {
        if !self.is_known && formats::of(bytes) != Some(Format::Otlp) {
            let name = &self.origin.name;
            return Err(load::foreign(name, WANTED, bytes)
                .unwrap_or_else(|| load::no_message(name, WANTED)));
        }
        let rows = self.profile.samples.len();
        for values in &mut self.profile.values {
            values.column.try_fill(rows, f64::NAN, "sample values")?;
        }
        Ok((self.profile, self.problems))
    }
}

/// A message that is read.
struct Reader<'f, 'a> {
    file: &'f mut File,
    dictionary: Dictionary<'a>,
    layout: Layout,
    forms: LabelForms,
    watch: Watch<'f>,
    stop: Stop<'f>,
}

/// What profiles of a scope share.
struct InScope {
    id: Option<ScopeId>,
    default_type: Option<String>,
    /// The places of its profiles among the sample types of a pprof file.
    order: Option<Vec<usize>>,
}

impl<'a> Reader<'_, 'a> {
    /// `alone`: the only one of its message.
    fn resource(&mut self, mut message: Message<'a>, alone: bool) -> WireResult<()> {
        let at = message.at();
        self.watch.reach(at)?;
        let mut resource = Resource::default();
        let mut scopes = Vec::new();
        while let Some(found) = message.field()? {
            match found.number {
                resource_profiles::RESOURCE => self.about(found.message()?, &mut resource)?,
                resource_profiles::SCOPE_PROFILES => scopes.try_push(found.message()?, "scopes")?,
                resource_profiles::SCHEMA_URL => {
                    resource.schema_url = self.text(found.message()?)?
                }
                _ => {}
            }
        }
        // Where there is nothing to group and nothing is said, no tables are needed.
        let id = match alone && scopes.len() == 1 && resource == Resource::default() {
            true => None,
            false => {
                self.file.budget.take(size_of::<Resource>(), at)?;
                Some(self.file.profile.add_resource(resource)?)
            }
        };
        scopes
            .into_iter()
            .try_for_each(|message| self.scope(message, id))
    }

    fn about(&mut self, mut message: Message<'a>, resource: &mut Resource) -> WireResult<()> {
        let mut attributes = Vec::new();
        while let Some(found) = message.field()? {
            match found.number {
                resource::ATTRIBUTES => attributes.try_push(found.message()?, "attributes")?,
                resource::DROPPED_ATTRIBUTES_COUNT => {
                    resource.dropped_attributes = found.uint()? as u32;
                }
                resource::ENTITY_REFS => {
                    let entity = self.entity(found.message()?)?;
                    resource.entities.try_push(entity, "entities")?;
                }
                _ => {}
            }
        }
        let pairs = self.pairs(&attributes)?;
        resource.attributes = keep_pairs(&pairs, &mut self.file.profile)?;
        Ok(())
    }

    fn entity(&mut self, mut message: Message<'a>) -> WireResult<Entity> {
        let none = self.file.profile.strings.intern("")?;
        let mut entity = Entity {
            schema_url: none,
            type_: none,
            id_keys: Vec::new(),
            description_keys: Vec::new(),
        };
        while let Some(found) = message.field()? {
            let text = |this: &mut Self| this.text(found.message()?).map(|id| id.unwrap_or(none));
            match found.number {
                entity_ref::SCHEMA_URL => entity.schema_url = text(self)?,
                entity_ref::TYPE => entity.type_ = text(self)?,
                entity_ref::ID_KEYS => entity.id_keys.try_push(text(self)?, "entities")?,
                entity_ref::DESCRIPTION_KEYS => {
                    let key = text(self)?;
                    entity.description_keys.try_push(key, "entities")?;
                }
                _ => {}
            }
        }
        Ok(entity)
    }

    /// `resource`: where it is in the model, `None` for one that is not needed there.
    fn scope(&mut self, mut message: Message<'a>, resource: Option<ResourceId>) -> WireResult<()> {
        let at = message.at();
        self.watch.reach(at)?;
        let [mut name, mut version, mut schema_url] = [None; 3];
        let mut dropped_attributes = 0;
        let mut attributes = Vec::new();
        let mut headers = Vec::new();
        while let Some(found) = message.field()? {
            match found.number {
                scope_profiles::SCOPE => {
                    let mut scope = found.message()?;
                    while let Some(found) = scope.field()? {
                        match found.number {
                            scope::NAME => name = self.text(found.message()?)?,
                            scope::VERSION => version = self.text(found.message()?)?,
                            scope::ATTRIBUTES => {
                                attributes.try_push(found.message()?, "attributes")?;
                            }
                            scope::DROPPED_ATTRIBUTES_COUNT => {
                                dropped_attributes = found.uint()? as u32;
                            }
                            _ => {}
                        }
                    }
                }
                scope_profiles::PROFILES => {
                    let header = Header::read(
                        found.message()?,
                        self.layout.profile,
                        &self.dictionary,
                        &mut self.file.problems,
                        &mut self.watch,
                    )?;
                    headers.try_push(header, "profiles")?;
                }
                scope_profiles::SCHEMA_URL => schema_url = self.text(found.message()?)?,
                _ => {}
            }
        }
        let pairs = self.pairs(&attributes)?;
        let (known_pairs, others): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .partition(|(key, value)| is_of_pprof(key, value, headers.len()));
        let mut within = InScope {
            id: None,
            default_type: None,
            order: None,
        };
        for (_, value) in known_pairs {
            match value {
                Any::String(text) => within.default_type = (!text.is_empty()).then_some(text),
                other => within.order = order(&other, headers.len()),
            }
        }
        let attributes = keep_pairs(&others, &mut self.file.profile)?;
        let texts = [name, version, schema_url];
        let silent = texts.iter().all(Option::is_none)
            && dropped_attributes == 0
            && attributes.is_empty()
            && resource.is_none();
        if !silent {
            self.file.budget.take(size_of::<Scope>(), at)?;
            let profile = &mut self.file.profile;
            let resource = match resource {
                Some(id) => id,
                None => profile.add_resource(Resource::default())?,
            };
            within.id = Some(profile.add_scope(Scope {
                resource,
                name,
                version,
                schema_url,
                dropped_attributes,
                attributes,
            })?);
        }
        self.profiles(&headers, &within)
    }

    /// Puts profiles of the same samples together, in the order that their scope tells.
    fn profiles(&mut self, headers: &[Header<'a>], within: &InScope) -> WireResult<()> {
        let all: Vec<&Header> = match &within.order {
            Some(order) => order.iter().map(|&at| &headers[at]).collect(),
            None => headers.iter().collect(),
        };
        let mut left = all.as_slice();
        if within.order.is_some() && self.source(left, within, true)? > 0 {
            return Ok(());
        }
        while !left.is_empty() {
            if self.file.profile.sources.len() % SOURCES == 0 {
                cancel::check(self.stop)?;
            }
            let taken = self.source(left, within, false)?;
            left = left.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Adds a source of the first profile and those after it that have the same samples,
    /// or, if it must be, of all or none. Gives how many there were.
    fn source(
        &mut self,
        headers: &[&Header<'a>],
        within: &InScope,
        all: bool,
    ) -> WireResult<usize> {
        let Some((&first, others)) = headers.split_first() else {
            return Ok(0);
        };
        let reader = self.samples();
        let mut values = Vec::new();
        for (i, other) in others.iter().take(MOST_TYPES).enumerate() {
            let types = &headers[..=i];
            if !first.agrees(other) || !all && types.iter().any(|t| t.type_ == other.type_) {
                break;
            }
            // Without a sample nothing but the word of the scope says that they are one.
            match reader.aligned(first.message, other.message)? {
                Some(found) if all || !found.is_empty() => values.push(found),
                _ => break,
            }
        }
        let count = 1 + values.len();
        if all && count < headers.len() {
            return Ok(0);
        }
        let mut maker = self.maker();
        let is_silent = count == 1 && first.is_silent()?;
        let types = match is_silent {
            true => Vec::new(),
            false => maker.types(&headers[..count])?,
        };
        let columns = self.file.columns(&types, first.message.at())?;
        let uri = self.file.origin.uri.clone();
        let mut maker = self.maker();
        let source = maker.source(first, types, uri, within.id, within.default_type.clone())?;
        let id = maker.profile.add_source(source)?;
        let mut reader = self.samples();
        let Some((&column, columns)) = columns.split_first() else {
            return Ok(count);
        };
        reader.read(first.message, id, column)?;
        for (column, values) in columns.iter().zip(&values) {
            reader.add_values(*column, values)?;
        }
        Ok(count)
    }

    fn maker(&mut self) -> SourceMaker<'_, 'a> {
        SourceMaker {
            dictionary: &mut self.dictionary,
            profile: &mut self.file.profile,
            problems: &mut self.file.problems,
            budget: &mut self.file.budget,
        }
    }

    fn samples(&mut self) -> SampleReader<'_, 'a> {
        SampleReader {
            dictionary: &self.dictionary,
            fields: self.layout.sample,
            forms: &mut self.forms,
            budget: &mut self.file.budget,
            profile: &mut self.file.profile,
            problems: &mut self.file.problems,
            stop: self.stop,
        }
    }

    fn pairs(&mut self, list: &[Message<'a>]) -> WireResult<Vec<(String, Any)>> {
        read_pairs(list, &mut self.dictionary.texts, &mut self.file.problems)
    }

    /// A text that stands by itself; an empty one is none.
    fn text(&mut self, message: Message<'a>) -> WireResult<Option<StringId>> {
        let strings = &mut self.file.profile.strings;
        intern(
            &self.dictionary.texts,
            message,
            strings,
            &mut self.file.problems,
        )
    }
}

fn intern(
    texts: &TextTable,
    message: Message,
    strings: &mut Strings,
    problems: &mut Problems,
) -> WireResult<Option<StringId>> {
    let text = texts.decode(message, problems)?;
    Ok(match text.is_empty() {
        true => None,
        false => Some(strings.intern(&text)?),
    })
}

/// Whether it is an attribute of a scope of so many profiles that has its place elsewhere.
fn is_of_pprof(key: &str, value: &Any, count: usize) -> bool {
    match (key, value) {
        (keys::DEFAULT_SAMPLE_TYPE, Any::String(_)) => true,
        (keys::SAMPLE_TYPE_ORDER, places) => order(places, count).is_some(),
        _ => false,
    }
}

/// Which profile is the first sample type, which the second, and so on, from the place
/// of each profile among them; `None` where that is no order of so many.
fn order(places: &Any, count: usize) -> Option<Vec<usize>> {
    let Any::Array(places) = places else {
        return None;
    };
    if places.len() != count {
        return None;
    }
    let mut order = vec![None; count];
    for (profile, place) in places.iter().enumerate() {
        let Any::Int(place) = place else { return None };
        let slot = order.get_mut(usize::try_from(*place).ok()?)?;
        if slot.replace(profile).is_some() {
            return None;
        }
    }
    order.into_iter().collect()
}
