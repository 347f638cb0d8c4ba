//! What OpenTelemetry says of profiles: resources, scopes, attributes.

use super::{COLUMNS, ids};
use crate::columns::Tibble;
use crate::slots::Slots;
use profile_core::error::Result;
use profile_core::limits::memory::TryCollect;
use profile_core::model::{Attribute, Entity, Profile, StringId};
use profile_core::tables::{Owner, RESOURCE_ENTITIES, RESOURCES, SCOPES, Table};
use std::ffi::{CStr, CString};

/// The tables that have rows.
#[expect(clippy::disallowed_methods, reason = "one for each table")]
pub fn tables(profile: &Profile) -> Vec<CString> {
    let mut tables = Vec::new();
    let mut add = |there: bool, table: Table| {
        if there {
            tables.extend(CString::new(table.name).ok());
        }
    };
    add(!profile.resources.is_empty(), RESOURCES);
    add(entities(profile).next().is_some(), RESOURCE_ENTITIES);
    add(!profile.scopes.is_empty(), SCOPES);
    for owner in Owner::ALL {
        add(attributes(profile, owner).next().is_some(), owner.table());
    }
    tables
}

/// The table that is called so, one of [`tables()`].
pub fn put(parent: Slots, slot: usize, name: &CStr, profile: &Profile) -> Result<()> {
    let is = |table: Table| table.name.as_bytes() == name.to_bytes();
    if is(RESOURCES) {
        return put_resources(parent, slot, profile);
    }
    if is(RESOURCE_ENTITIES) {
        return put_entities(parent, slot, profile);
    }
    match Owner::ALL.into_iter().find(|owner| is(owner.table())) {
        Some(owner) => put_attributes(parent, slot, profile, owner),
        None => put_scopes(parent, slot, profile),
    }
}

fn put_resources(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || profile.resources.iter();
    let mut table = start(parent, slot, RESOURCES, all().len())?;
    table.integers(ids(all().len()))?;
    table.strings(all().map(|r| text(profile, r.schema_url)))?;
    table.doubles(all().map(|r| f64::from(r.dropped_attributes)))?;
    table.finish()
}

fn put_entities(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || entities(profile);
    let mut table = start(parent, slot, RESOURCE_ENTITIES, all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    let there = |id| Some(profile.strings.get(id)).filter(|text| !text.is_empty());
    table.strings(all().map(|(_, e)| there(e.schema_url)))?;
    table.strings(all().map(|(_, e)| Some(profile.strings.get(e.type_))))?;
    let json = |keys: &[StringId]| {
        let texts = keys.iter().map(|&key| profile.strings.get(key));
        match keys.is_empty() {
            true => Ok(None),
            false => profile_core::text::json_array(texts).map(Some),
        }
    };
    let ids = all().map(|(_, e)| json(&e.id_keys));
    let ids = ids.try_vec_of("entities")?;
    table.strings(ids.iter().map(Option::as_deref))?;
    let descriptions = all().map(|(_, e)| json(&e.description_keys));
    let descriptions = descriptions.try_vec_of("entities")?;
    table.strings(descriptions.iter().map(Option::as_deref))?;
    table.finish()
}

fn put_scopes(parent: Slots, slot: usize, profile: &Profile) -> Result<()> {
    let all = || profile.scopes.iter();
    let mut table = start(parent, slot, SCOPES, all().len())?;
    table.integers(ids(all().len()))?;
    table.integers(all().map(|s| s.resource.row() as i32 + 1))?;
    table.strings(all().map(|s| text(profile, s.name)))?;
    table.strings(all().map(|s| text(profile, s.version)))?;
    table.strings(all().map(|s| text(profile, s.schema_url)))?;
    table.doubles(all().map(|s| f64::from(s.dropped_attributes)))?;
    table.finish()
}

fn put_attributes(parent: Slots, slot: usize, profile: &Profile, owner: Owner) -> Result<()> {
    let all = || attributes(profile, owner);
    let mut table = start(parent, slot, owner.table(), all().count())?;
    table.integers(all().map(|(id, _)| id))?;
    table.strings(all().map(|(_, a)| Some(profile.strings.get(a.key))))?;
    table.strings(all().map(|(_, a)| Some(a.value.kind.name())))?;
    table.strings(all().map(|(_, a)| Some(profile.strings.get(a.value.text))))?;
    if owner.has_units() {
        table.strings(all().map(|(_, a)| text(profile, a.unit)))?;
    }
    table.finish()
}

fn entities(profile: &Profile) -> impl Iterator<Item = (i32, &Entity)> {
    let resources = (1..).zip(&profile.resources);
    resources.flat_map(|(id, resource)| resource.entities.iter().map(move |entity| (id, entity)))
}

/// All attributes of a kind of owner, each with the id of its own.
fn attributes(profile: &Profile, owner: Owner) -> Box<dyn Iterator<Item = (i32, &Attribute)> + '_> {
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

/// A tibble with the columns of the schema.
fn start<'call>(
    parent: Slots<'call>,
    slot: usize,
    table: Table,
    rows: usize,
) -> Result<Tibble<'call>> {
    let names = table.columns.iter();
    let names = names.filter_map(|c| CString::new(c.name).ok());
    let names = names.try_vec(COLUMNS)?;
    let names = names.iter().map(CString::as_c_str).try_vec(COLUMNS)?;
    Tibble::new(parent, slot, &names, rows)
}
