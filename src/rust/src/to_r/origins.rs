//! What OpenTelemetry says of profiles: resources, scopes, attributes.

use super::{Tables, ids};
use crate::arena::{Arena, Value};
use crate::tibble::Tibble;
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::model::{Attribute, Entity, Profile, StringId};
use profile_core::tables::{Owner, RESOURCE_ENTITIES, RESOURCES, SCOPES};

/// Adds the tables that have rows.
pub fn add<'call>(
    tables: &mut Tables<'call>,
    arena: Arena<'call>,
    profile: &Profile,
) -> Result<()> {
    if !profile.resources.is_empty() {
        tables.add(RESOURCES.name, resources(arena, profile)?)?;
    }
    if all_entities(profile).next().is_some() {
        tables.add(RESOURCE_ENTITIES.name, entities(arena, profile)?)?;
    }
    if !profile.scopes.is_empty() {
        tables.add(SCOPES.name, scopes(arena, profile)?)?;
    }
    for owner in Owner::ALL {
        if all_attributes(profile, owner).next().is_some() {
            tables.add(owner.table().name, attributes(arena, profile, owner)?)?;
        }
    }
    Ok(())
}

fn resources<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || profile.resources.iter();
    let mut table = Tibble::new(arena, all().len())?;
    table.integers("resource_id", ids(all().len()))?;
    table.strings("schema_url", all().map(|r| text(profile, r.schema_url)))?;
    table.doubles(
        "dropped_attributes_count",
        all().map(|r| f64::from(r.dropped_attributes)),
    )?;
    table.finish()
}

fn entities<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || all_entities(profile);
    let mut table = Tibble::new(arena, all().count())?;
    table.integers("resource_id", all().map(|(id, _)| id))?;
    let there = |id| Some(profile.strings.get(id)).filter(|text| !text.is_empty());
    table.strings("schema_url", all().map(|(_, e)| there(e.schema_url)))?;
    table.strings(
        "type",
        all().map(|(_, e)| Some(profile.strings.get(e.type_))),
    )?;
    let json = |keys: &[StringId]| {
        let texts = keys.iter().map(|&key| profile.strings.get(key));
        match keys.is_empty() {
            true => Ok(None),
            false => profile_core::text::json_array(texts).map(Some),
        }
    };
    let ids = all().map(|(_, e)| json(&e.id_keys));
    let ids = ids.try_vec_of("entities")?;
    table.strings("id_keys", ids.iter().map(Option::as_deref))?;
    let descriptions = all().map(|(_, e)| json(&e.description_keys));
    let descriptions = descriptions.try_vec_of("entities")?;
    table.strings(
        "description_keys",
        descriptions.iter().map(Option::as_deref),
    )?;
    table.finish()
}

fn scopes<'call>(arena: Arena<'call>, profile: &Profile) -> Result<Value<'call>> {
    let all = || profile.scopes.iter();
    let mut table = Tibble::new(arena, all().len())?;
    table.integers("scope_id", ids(all().len()))?;
    table.integers("resource_id", all().map(|s| s.resource.row() as i32 + 1))?;
    table.strings("name", all().map(|s| text(profile, s.name)))?;
    table.strings("version", all().map(|s| text(profile, s.version)))?;
    table.strings("schema_url", all().map(|s| text(profile, s.schema_url)))?;
    table.doubles(
        "dropped_attributes_count",
        all().map(|s| f64::from(s.dropped_attributes)),
    )?;
    table.finish()
}

fn attributes<'call>(arena: Arena<'call>, profile: &Profile, owner: Owner) -> Result<Value<'call>> {
    let all = || all_attributes(profile, owner);
    let mut table = Tibble::new(arena, all().count())?;
    table.integers(owner.key(), all().map(|(id, _)| id))?;
    table.strings("key", all().map(|(_, a)| Some(profile.strings.get(a.key))))?;
    table.strings("type", all().map(|(_, a)| Some(a.value.kind.name())))?;
    table.strings(
        "value",
        all().map(|(_, a)| Some(profile.strings.get(a.value.text))),
    )?;
    if owner.has_units() {
        table.strings("unit", all().map(|(_, a)| text(profile, a.unit)))?;
    }
    table.finish()
}

fn all_entities(profile: &Profile) -> impl Iterator<Item = (i32, &Entity)> {
    let resources = (1..).zip(&profile.resources);
    resources.flat_map(|(id, resource)| resource.entities.iter().map(move |entity| (id, entity)))
}

/// All attributes of a kind of owner, each with the id of its own.
fn all_attributes(
    profile: &Profile,
    owner: Owner,
) -> Box<dyn Iterator<Item = (i32, &Attribute)> + '_> {
    fn of<'a>(
        lists: impl Iterator<Item = &'a Vec<Attribute>> + 'a,
    ) -> Box<dyn Iterator<Item = (i32, &'a Attribute)> + 'a> {
        let lists = (1..).zip(lists);
        Box::new(lists.flat_map(|(id, list)| list.iter().map(move |a| (id, a))))
    }
    match owner {
        Owner::Resource => of(profile.resources.iter().map(|r| &r.attributes)),
        Owner::Scope => of(profile.scopes.iter().map(|s| &s.attributes)),
        Owner::Source => of(profile.sources.iter().map(|s| &s.attributes)),
        Owner::Mapping => {
            let all = profile.mapping_attributes.iter();
            Box::new(all.map(|(id, a)| (id.row() as i32 + 1, a)))
        }
        Owner::Location => {
            let all = profile.location_attributes.iter();
            Box::new(all.map(|(id, a)| (id.row() as i32 + 1, a)))
        }
    }
}

fn text(profile: &Profile, id: Option<StringId>) -> Option<&str> {
    id.map(|id| profile.strings.get(id))
}
