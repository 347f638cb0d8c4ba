//! What OpenTelemetry says of profiles: resources, scopes, and attributes of all kinds.

use super::TablesV2;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, TryText, ensure, sort_by_key};
use crate::message;
use crate::model::{
    Any, Attribute, Entity, LocationId, MappingId, Profile, Resource, ResourceId, Scope, ScopeId,
    StringId, Strings, Value, ValueKind, next_row,
};
use crate::tables::checks::{dangling, invalid};
use crate::tables::ids::Ids;
use crate::tables::{NA, Owner, Text};

const WHAT: &str = "attributes";

/// `.resources`.
#[derive(Debug)]
pub struct Resources<'a> {
    pub resource_id: &'a [i32],
    pub schema_url: Text<'a>,
    pub dropped_attributes: &'a [f64],
}

/// `.resource_entities`.
#[derive(Debug)]
pub struct Entities<'a> {
    pub resource_id: &'a [i32],
    pub schema_url: Text<'a>,
    pub type_: Text<'a>,
    pub id_keys: Text<'a>,
    pub description_keys: Text<'a>,
}

/// `.scopes`.
#[derive(Debug)]
pub struct Scopes<'a> {
    pub scope_id: &'a [i32],
    pub resource_id: &'a [i32],
    pub name: Text<'a>,
    pub version: Text<'a>,
    pub schema_url: Text<'a>,
    pub dropped_attributes: &'a [f64],
}

/// A table of attributes.
#[derive(Debug)]
pub struct Attributes<'a> {
    pub owner: &'a [i32],
    pub key: Text<'a>,
    pub type_: Text<'a>,
    pub value: Text<'a>,
    /// Those of resources and scopes have none.
    pub unit: Option<Text<'a>>,
}

/// The ids of all that may have attributes, by [`Owner`]; `None` where there is no
/// such table.
pub struct Owners<'i>(pub [Option<&'i Ids>; Owner::ALL.len()]);

/// Every rule; gives the ids of resources and scopes.
pub fn check(tables: &TablesV2) -> Result<(Option<Ids>, Option<Ids>)> {
    let resources = match &tables.resources {
        Some(table) => {
            dropped(
                ".resources",
                "dropped_attributes_count",
                table.dropped_attributes,
            )?;
            Some(Ids::new(".resources", "resource_id", table.resource_id)?)
        }
        None => None,
    };
    if let Some(entities) = &tables.entities {
        const TABLE: &str = ".resource_entities";
        for (row, &id) in entities.resource_id.iter().enumerate() {
            find(
                TABLE,
                "resource_id",
                resources.as_ref(),
                row,
                id,
                ".resources",
            )?;
            for (column, text) in [
                ("id_keys", &entities.id_keys),
                ("description_keys", &entities.description_keys),
            ] {
                keys(text.get(row))?.ok_or_else(|| {
                    let rule = "must be a JSON array of strings, such as [\"a\", \"b\"], or NA";
                    invalid(TABLE, column, row, rule)
                })?;
            }
        }
    }
    let scopes = match &tables.scopes {
        Some(table) => {
            const TABLE: &str = ".scopes";
            for (row, &id) in table.resource_id.iter().enumerate() {
                find(
                    TABLE,
                    "resource_id",
                    resources.as_ref(),
                    row,
                    id,
                    ".resources",
                )?;
            }
            dropped(TABLE, "dropped_attributes_count", table.dropped_attributes)?;
            Some(Ids::new(TABLE, "scope_id", table.scope_id)?)
        }
        None => None,
    };
    if let Some(ids) = tables.facts.scope_id {
        for (row, &id) in ids.iter().enumerate().filter(|(_, id)| **id != NA) {
            find("sources", ".scope_id", scopes.as_ref(), row, id, ".scopes")?;
        }
    }
    if let Some(counts) = tables.facts.dropped_attributes {
        dropped("sources", ".dropped_attributes_count", counts)?;
    }
    Ok((resources, scopes))
}

/// The rules of attributes: of their owners and values.
pub fn check_attributes(tables: &TablesV2, owners: &Owners) -> Result<()> {
    for (i, owner) in Owner::ALL.into_iter().enumerate() {
        let Some(attributes) = &tables.attributes[i] else {
            continue;
        };
        let table = owner.table().name;
        for (row, &id) in attributes.owner.iter().enumerate() {
            find(table, owner.key(), owners.0[i], row, id, owner.parent())?;
            if attributes.key.get(row).is_none() {
                return Err(invalid(table, "key", row, "must not be NA"));
            }
            let value = value_of(
                table,
                ["type", "value"],
                [&attributes.type_, &attributes.value],
                row,
            )?;
            if value.is_none() {
                return Err(invalid(table, "type", row, "must not be NA"));
            }
        }
    }
    Ok(())
}

/// A kind and a text that stands for a value of it. NA is none.
pub fn value_of<'a>(
    table: &'static str,
    [type_column, value_column]: [&'static str; 2],
    [types, values]: [&Text<'a>; 2],
    row: usize,
) -> Result<Option<(ValueKind, &'a str)>> {
    let Some(name) = types.get(row) else {
        if values.get(row).is_some() {
            return Err(invalid(
                table,
                type_column,
                row,
                "must not be NA beside a value",
            ));
        }
        return Ok(None);
    };
    let Some(kind) = ValueKind::of_name(name) else {
        let mut rule = message!("must be one of");
        for (i, kind) in ValueKind::ALL.iter().enumerate() {
            let between = if i > 0 { "," } else { "" };
            rule.try_write(format_args!("{between} {}", kind.name()), WHAT)?;
        }
        return Err(invalid(table, type_column, row, rule));
    };
    let text = values.get(row).unwrap_or("");
    if Any::of_text(kind, text)?.is_none() {
        let rule = message!("does not stand for a value of type {name}");
        return Err(invalid(table, value_column, row, rule));
    }
    Ok(Some((kind, text)))
}

fn find(
    table: &'static str,
    column: &'static str,
    ids: Option<&Ids>,
    row: usize,
    id: i32,
    parent: &str,
) -> Result<usize> {
    let found = ids.and_then(|ids| ids.row(id));
    found.ok_or_else(|| dangling(table, column, row, id, parent))
}

fn dropped(table: &'static str, column: &'static str, counts: &[f64]) -> Result<()> {
    let whole = |count: f64| (0.0..=f64::from(u32::MAX)).contains(&count) && count.fract() == 0.0;
    match counts
        .iter()
        .position(|&count| !count.is_nan() && !whole(count))
    {
        Some(row) => {
            let rule = "must be a whole number from 0 to 2^32 - 1, or NA";
            Err(invalid(table, column, row, rule))
        }
        None => Ok(()),
    }
}

/// The keys of an entity; NA is none.
#[expect(clippy::disallowed_methods, reason = "memory was ensured")]
fn keys(text: Option<&str>) -> Result<Option<Vec<String>>> {
    let Some(text) = text else {
        return Ok(Some(Vec::new()));
    };
    // A key takes three bytes at least, with its quotes and a comma.
    ensure(
        (text.len() / 3 + 1) * size_of::<String>() + text.len(),
        WHAT,
    )?;
    Ok(serde_json::from_str(text).ok())
}

/// Takes in tables that were checked.
pub fn take(profile: &mut Profile, tables: &TablesV2, owners: &Owners) -> Result<()> {
    let count = |count: f64| if count.is_nan() { 0 } else { count as u32 };
    if let Some(table) = &tables.resources {
        for row in 0..table.resource_id.len() {
            let resource = Resource {
                schema_url: intern(&mut profile.strings, table.schema_url.get(row))?,
                dropped_attributes: count(table.dropped_attributes[row]),
                ..Resource::default()
            };
            profile.add_resource(resource)?;
        }
    }
    if let Some(table) = &tables.entities {
        for (row, &id) in table.resource_id.iter().enumerate() {
            let strings = &mut profile.strings;
            let mut all = |text| -> Result<Vec<StringId>> {
                let keys = keys(text)?.unwrap_or_default();
                keys.iter().map(|key| strings.intern(key)).try_vec_of(WHAT)
            };
            let entity = Entity {
                id_keys: all(table.id_keys.get(row))?,
                description_keys: all(table.description_keys.get(row))?,
                schema_url: strings.intern(table.schema_url.get(row).unwrap_or(""))?,
                type_: strings.intern(table.type_.get(row).unwrap_or(""))?,
            };
            if let Some(row) = owners.row(Owner::Resource, id) {
                let entities = &mut profile.resources[row].entities;
                entities.try_push(entity, "entities")?;
            }
        }
    }
    if let Some(table) = &tables.scopes {
        for row in 0..table.scope_id.len() {
            let resource = owners
                .row(Owner::Resource, table.resource_id[row])
                .unwrap_or(0);
            let mut text = |text: &Text| intern(&mut profile.strings, text.get(row));
            let scope = Scope {
                resource: ResourceId(next_row(resource, "resources")?),
                name: text(&table.name)?,
                version: text(&table.version)?,
                schema_url: text(&table.schema_url)?,
                dropped_attributes: count(table.dropped_attributes[row]),
                attributes: Vec::new(),
            };
            profile.add_scope(scope)?;
        }
    }
    if let Some(ids) = tables.facts.scope_id {
        for (source, &id) in profile.sources.iter_mut().zip(ids) {
            let row = owners.row(Owner::Scope, id);
            let id = row.map(|row| next_row(row, "scopes").map(ScopeId));
            source.scope = id.transpose()?;
        }
    }
    take_attributes(profile, tables, owners)
}

fn take_attributes(profile: &mut Profile, tables: &TablesV2, owners: &Owners) -> Result<()> {
    for (i, owner) in Owner::ALL.into_iter().enumerate() {
        let Some(table) = &tables.attributes[i] else {
            continue;
        };
        for (row, &id) in table.owner.iter().enumerate() {
            let Some(at) = owners.row(owner, id) else {
                continue;
            };
            let attribute = attribute(&mut profile.strings, table, row)?;
            let own = match owner {
                Owner::Resource => &mut profile.resources[at].attributes,
                Owner::Scope => &mut profile.scopes[at].attributes,
                Owner::Source => &mut profile.sources[at].attributes,
                Owner::Mapping => {
                    let id = MappingId(next_row(at, "mappings")?);
                    profile.mapping_attributes.try_push((id, attribute), WHAT)?;
                    continue;
                }
                Owner::Location => {
                    let id = LocationId(next_row(at, "locations")?);
                    profile
                        .location_attributes
                        .try_push((id, attribute), WHAT)?;
                    continue;
                }
            };
            own.try_push(attribute, WHAT)?;
        }
    }
    sort_by_key(&mut profile.mapping_attributes, |(id, _)| *id, WHAT)?;
    sort_by_key(&mut profile.location_attributes, |(id, _)| *id, WHAT)?;
    Ok(())
}

fn attribute(strings: &mut Strings, table: &Attributes, row: usize) -> Result<Attribute> {
    let kind = table.type_.get(row).and_then(ValueKind::of_name);
    let unit = table.unit.as_ref().and_then(|unit| unit.get(row));
    Ok(Attribute {
        key: strings.intern(table.key.get(row).unwrap_or(""))?,
        value: Value {
            kind: kind.unwrap_or(ValueKind::Empty),
            text: strings.intern(table.value.get(row).unwrap_or(""))?,
        },
        unit: intern(strings, unit)?,
    })
}

/// An empty text is none.
fn intern(strings: &mut Strings, text: Option<&str>) -> Result<Option<StringId>> {
    let text = text.filter(|text| !text.is_empty());
    text.map(|text| strings.intern(text)).transpose()
}

impl Owners<'_> {
    fn row(&self, owner: Owner, id: i32) -> Option<usize> {
        self.0[owner as usize]?.row(id)
    }
}
