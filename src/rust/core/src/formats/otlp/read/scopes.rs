//! Reads resources and scopes, with everything except the samples of their profiles.

use super::attributes::{keep_pairs, read_pairs};
use super::dictionary::{Dictionary, unused_mappings};
use super::file::File;
use super::profiles::{Header, non_empty};
use super::samples::LabelForms;
use crate::attribute_value::AnyValue;
use crate::formats::otlp::layout::SampleFields;
use crate::formats::otlp::proto::{
    entity_ref, keys, resource, resource_profiles, scope, scope_profiles,
};
use crate::limits::cancel::{Stop, Watch};
use crate::limits::memory::{TryCollect, TryGrow, filled};
use crate::model::{Entity, PlacedMapping, Resource, ResourceId, Scope, ScopeId, StringId};
use crate::protobuf::decode::{DecodeError, Message, Result as WireResult};

/// Reads the resources of a message, after its dictionary.
pub struct ResourceReader<'f, 'a> {
    pub file: &'f mut File,
    pub dictionary: Dictionary<'a>,
    pub fields: SampleFields,
    pub forms: LabelForms,
    /// The mappings to which no location refers.
    pub unused_mappings: Vec<PlacedMapping>,
    pub watch: Watch<'f>,
    pub stop: Stop<'f>,
}

/// A scope without content. Its resource is set when it is added.
const NO_SCOPE: Scope = Scope::of(ResourceId(0));

/// The attributes of a resource or scope.
type Pairs = Vec<(String, AnyValue)>;

/// The properties that all profiles of a scope share.
#[derive(Default)]
pub struct InScope {
    pub id: Option<ScopeId>,
    pub default_type: Option<String>,
    /// The indices of its profiles, in the order of the sample types of the pprof file.
    pub order: Option<Vec<usize>>,
}

impl<'a> ResourceReader<'_, 'a> {
    /// `alone`: whether it is the only resource of its message.
    pub fn resource(&mut self, mut message: Message<'a>, alone: bool) -> WireResult<()> {
        let at = message.at();
        self.watch.reach(at)?;
        let mut resource = Resource::default();
        let mut scopes = Vec::new();
        while let Some(found) = message.field()? {
            match found.number {
                resource_profiles::RESOURCE => self.about(found.message()?, &mut resource)?,
                resource_profiles::SCOPE_PROFILES => scopes.try_push(found.message()?)?,
                resource_profiles::SCHEMA_URL => {
                    resource.schema_url = self.text(found.message()?)?
                }
                _ => {}
            }
        }
        // If a single resource has a single scope and no content, it needs no row in the model.
        let id = if alone && scopes.len() == 1 && resource == Resource::default() {
            None
        } else {
            self.file.budget.take(size_of::<Resource>(), at)?;
            Some(self.file.profile.add_resource(resource)?)
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
                let id = this.text(found.message()?)?;
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
        let mut scope = NO_SCOPE;
        let mut attributes = Vec::new();
        let mut headers = Vec::new();
        while let Some(found) = message.field()? {
            match found.number {
                scope_profiles::SCOPE => {
                    self.about_scope(found.message()?, &mut scope, &mut attributes)?;
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
                scope_profiles::SCHEMA_URL => scope.schema_url = self.text(found.message()?)?,
                _ => {}
            }
        }
        let pairs = self.pairs(&attributes)?;
        let (mut within, others) = self.take_known(pairs, headers.len(), at)?;
        scope.attributes = keep_pairs(&others, &mut self.file.profile)?;
        if resource.is_some() || scope != NO_SCOPE {
            within.id = Some(self.add_scope(scope, resource, at)?);
            return self.profiles(&headers, &within);
        }
        let first = self.file.profile.sources.len();
        self.profiles(&headers, &within)?;
        // A scope without content is only needed to keep its sources together.
        if self.file.profile.sources.len() > first + 1 {
            let id = self.add_scope(scope, None, at)?;
            for source in self.file.profile.sources.iter_mut().skip(first) {
                source.scope = Some(id);
            }
        }
        Ok(())
    }

    fn about_scope(
        &mut self,
        mut message: Message<'a>,
        scope: &mut Scope,
        attributes: &mut Vec<Message<'a>>,
    ) -> WireResult<()> {
        while let Some(found) = message.field()? {
            match found.number {
                scope::NAME => scope.name = self.text(found.message()?)?,
                scope::VERSION => scope.version = self.text(found.message()?)?,
                scope::ATTRIBUTES => attributes.try_push(found.message()?)?,
                scope::DROPPED_ATTRIBUTES_COUNT => {
                    scope.dropped_attributes = found.uint()? as u32;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the attributes that describe the profiles of a scope, and returns the others as well.
    /// `profiles`: the number of its profiles; `at`: its byte offset.
    fn take_known(
        &mut self,
        pairs: Pairs,
        profiles: usize,
        at: usize,
    ) -> WireResult<(InScope, Pairs)> {
        let mut within = InScope::default();
        let mut others = Vec::new();
        for (key, value) in pairs {
            let is_taken = match (key.as_str(), &value) {
                (keys::DEFAULT_SAMPLE_TYPE, AnyValue::String(text)) => {
                    within.default_type = non_empty(text)?;
                    true
                }
                (keys::SAMPLE_TYPE_ORDER, AnyValue::Array(places)) => {
                    let order = order(places, profiles)?;
                    let is_order = order.is_some();
                    within.order = order.or(within.order);
                    is_order
                }
                (keys::UNUSED_MAPPINGS, AnyValue::Array(parts)) => self.take_mappings(parts, at)?,
                _ => false,
            };
            if !is_taken {
                others.try_push((key, value))?;
            }
        }
        Ok((within, others))
    }

    /// Takes the mappings to which no location refers. Returns whether these are mappings.
    fn take_mappings(&mut self, parts: &[AnyValue], at: usize) -> WireResult<bool> {
        let [AnyValue::Array(texts), AnyValue::Array(mappings)] = parts else {
            return Ok(false);
        };
        let size = size_of::<PlacedMapping>() * mappings.len();
        self.file.budget.take(size, at)?;
        let strings = &mut self.file.profile.strings;
        let Some(unused) = unused_mappings(texts, mappings, strings)? else {
            return Ok(false);
        };
        self.unused_mappings.try_extend_from(unused.into_iter())?;
        Ok(true)
    }

    /// Adds a scope, and its resource if that has no row yet.
    fn add_scope(
        &mut self,
        scope: Scope,
        resource: Option<ResourceId>,
        at: usize,
    ) -> WireResult<ScopeId> {
        self.file.budget.take(size_of::<Scope>(), at)?;
        let profile = &mut self.file.profile;
        let resource = match resource {
            Some(id) => id,
            None => profile.add_resource(Resource::default())?,
        };
        Ok(profile.add_scope(Scope { resource, ..scope })?)
    }

    fn pairs(&mut self, list: &[Message<'a>]) -> WireResult<Pairs> {
        read_pairs(list, &mut self.dictionary.texts, &mut self.file.problems)
    }

    /// The id of a string that is not in the string table, `None` if it is empty.
    fn text(&mut self, message: Message<'a>) -> WireResult<Option<StringId>> {
        let text = self
            .dictionary
            .texts
            .decode(message, &mut self.file.problems)?;
        Ok(if text.is_empty() {
            None
        } else {
            Some(self.file.profile.strings.intern(&text)?)
        })
    }
}

/// The indices of profiles in the order of sample types. `places` has the position of each profile
/// in that order. `None` if it is not a permutation of `count` positions.
fn order(places: &[AnyValue], count: usize) -> WireResult<Option<Vec<usize>>> {
    if places.len() != count {
        return Ok(None);
    }
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
