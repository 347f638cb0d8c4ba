//! Reads resources and scopes, with everything except the samples of their profiles.

use super::attributes::{keep_pairs, read_pairs};
use super::dictionary::{Dictionary, unused_mappings};
use super::file::File;
use super::profiles::Header;
use super::samples::LabelForms;
use crate::attribute_value::AnyValue;
use crate::formats::otlp::layout::SampleFields;
use crate::formats::otlp::proto::{
    entity_ref, keys, resource, resource_profiles, scope, scope_profiles,
};
use crate::formats::problems::Problems;
use crate::formats::string_table::StringTable;
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::{TryCollect, TryGrow, filled};
use crate::model::{
    Entity, PlacedMapping, Resource, ResourceId, Scope, ScopeId, StringId, Strings,
};
use crate::protobuf::decode::{DecodeError, Message, Result as WireResult};

/// Reads the resources of a message, after its dictionary.
pub struct Reader<'f, 'a> {
    pub file: &'f mut File,
    pub dictionary: Dictionary<'a>,
    pub fields: SampleFields,
    pub forms: LabelForms,
    /// The mappings to which no location refers.
    pub unused_mappings: Vec<PlacedMapping>,
    pub watch: Watch<'f>,
    pub stop: Stop<'f>,
}

/// The properties that all profiles of a scope share.
pub struct InScope {
    pub id: Option<ScopeId>,
    pub default_type: Option<String>,
    /// The indices of its profiles, in the order of the sample types of the pprof file.
    pub order: Option<Vec<usize>>,
}

impl<'a> Reader<'_, 'a> {
    /// `alone`: whether it is the only resource of its message.
    pub fn resource(&mut self, mut message: Message<'a>, alone: bool) -> WireResult<()> {
        let at = message.at();
        self.watch.reach(at)?;
        let mut resource = Resource::default();
        let mut schema_url = None;
        let mut scopes = Vec::new();
        while let Some(found) = message.field()? {
            match found.number {
                resource_profiles::RESOURCE => self.about(found.message()?, &mut resource)?,
                resource_profiles::SCOPE_PROFILES => scopes.try_push(found.message()?)?,
                resource_profiles::SCHEMA_URL => schema_url = Some(found.message()?),
                _ => {}
            }
        }
        resource.schema_url = self.text(schema_url)?;
        // If a single resource has a single scope and no content, it needs no row in the model.
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
                resource::ATTRIBUTES => attributes.try_push(found.message()?)?,
                resource::DROPPED_ATTRIBUTES_COUNT => {
                    resource.dropped_attributes = found.uint()? as u32;
                }
                resource::ENTITY_REFS => {
                    let entity = self.entity(found.message()?)?;
                    resource.entities.try_push(entity)?;
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
            let text = |this: &mut Self| {
                let id = this.text(Some(found.message()?))?;
                Ok::<_, DecodeError>(id.unwrap_or(none))
            };
            match found.number {
                entity_ref::SCHEMA_URL => entity.schema_url = text(self)?,
                entity_ref::TYPE => entity.type_ = text(self)?,
                entity_ref::ID_KEYS => entity.id_keys.try_push(text(self)?)?,
                entity_ref::DESCRIPTION_KEYS => {
                    let key = text(self)?;
                    entity.description_keys.try_push(key)?;
                }
                _ => {}
            }
        }
        Ok(entity)
    }

    /// `resource`: its id in the model, `None` if it needs no row.
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
                            scope::NAME => name = Some(found.message()?),
                            scope::VERSION => version = Some(found.message()?),
                            scope::ATTRIBUTES => {
                                attributes.try_push(found.message()?)?;
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
                        &mut self.dictionary,
                        &self.file.profile.strings,
                        &mut self.file.problems,
                        &mut self.watch,
                    )?;
                    headers.try_push(header)?;
                }
                scope_profiles::SCHEMA_URL => schema_url = Some(found.message()?),
                _ => {}
            }
        }
        let name = self.text(name)?;
        let version = self.text(version)?;
        let schema_url = self.text(schema_url)?;
        let pairs = self.pairs(&attributes)?;
        let mut within = InScope {
            id: None,
            default_type: None,
            order: None,
        };
        // Attributes that are not stored in a field of `within`.
        let mut others = Vec::new();
        for (key, value) in pairs {
            let places = match key.as_str() {
                keys::SAMPLE_TYPE_ORDER => order(&value, headers.len())?,
                _ => None,
            };
            let unused = match (key.as_str(), &value) {
                (keys::UNUSED_MAPPINGS, AnyValue::Array(parts)) => match parts.as_slice() {
                    [AnyValue::Array(texts), AnyValue::Array(mappings)] => {
                        let size = size_of::<PlacedMapping>() * mappings.len();
                        self.file.budget.take(size, at)?;
                        unused_mappings(texts, mappings, &mut self.file.profile.strings)?
                    }
                    _ => None,
                },
                _ => None,
            };
            match value {
                AnyValue::String(text) if key == keys::DEFAULT_SAMPLE_TYPE => {
                    within.default_type = (!text.is_empty()).then_some(text);
                }
                _ if places.is_some() => within.order = places,
                _ if unused.is_some() => {
                    for mapping in unused.into_iter().flatten() {
                        self.unused_mappings.try_push(mapping)?;
                    }
                }
                value => others.try_push((key, value))?,
            }
        }
        let attributes = keep_pairs(&others, &mut self.file.profile)?;
        let texts = [name, version, schema_url];
        let silent = texts.iter().all(Option::is_none)
            && dropped_attributes == 0
            && attributes.is_empty()
            && resource.is_none();
        if !silent {
            let scope = Scope {
                resource: self.resource_of(resource, at)?,
                name,
                version,
                schema_url,
                dropped_attributes,
                attributes,
            };
            within.id = Some(self.file.profile.add_scope(scope)?);
        }
        let first = self.file.profile.sources.len();
        self.profiles(&headers, &within)?;
        // A scope without content is only needed to keep its sources together.
        if silent && self.file.profile.sources.len() > first + 1 {
            let scope = Scope {
                resource: self.resource_of(None, at)?,
                name: None,
                version: None,
                schema_url: None,
                dropped_attributes: 0,
                attributes: Vec::new(),
            };
            let id = self.file.profile.add_scope(scope)?;
            for source in self.file.profile.sources.iter_mut().skip(first) {
                source.scope = Some(id);
            }
        }
        Ok(())
    }

    /// The resource of a new scope, which is added if it has no row yet.
    fn resource_of(&mut self, id: Option<ResourceId>, at: usize) -> WireResult<ResourceId> {
        self.file.budget.take(size_of::<Scope>(), at)?;
        match id {
            Some(id) => Ok(id),
            None => Ok(self.file.profile.add_resource(Resource::default())?),
        }
    }

    fn pairs(&mut self, list: &[Message<'a>]) -> WireResult<Vec<(String, AnyValue)>> {
        read_pairs(list, &mut self.dictionary.texts, &mut self.file.problems)
    }

    /// The id of a string that is not in the string table, `None` if it is empty.
    fn text(&mut self, message: Option<Message<'a>>) -> WireResult<Option<StringId>> {
        let Some(message) = message else {
            return Ok(None);
        };
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
    texts: &StringTable,
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

/// The indices of profiles in the order of sample types. `places` has the position of each profile
/// in that order. `None` if it is not a permutation of `count` positions.
fn order(places: &AnyValue, count: usize) -> WireResult<Option<Vec<usize>>> {
    let places = match places {
        AnyValue::Array(places) if places.len() == count => places,
        _ => return Ok(None),
    };
    let mut order = filled(count, None)?;
    for (profile, place) in places.iter().enumerate() {
        let place = match place {
            AnyValue::Int(place) => usize::try_from(*place).ok(),
            _ => None,
        };
        match place.and_then(|place| order.get_mut(place)) {
            Some(slot) if slot.is_none() => *slot = Some(profile),
            _ => return Ok(None),
        }
    }
    Ok(Some(order.into_iter().flatten().try_vec()?))
}
