//! `.resources`, `.resource_entities` and `.scopes`: what was profiled, and by what, in
//! OpenTelemetry.

use super::columns::columns;
use super::reading::{EMPTY, known};
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::limits::memory::{TryGrow, copied};
use crate::model::{Entity, Profile, Resource, ResourceId, Scope};
use std::borrow::Cow;

pub static RESOURCES: RowTable<Resource> = RowTable {
    info: TableInfo {
        key: &["resource_id"],
        used_by: Some((".scopes", "resource_id")),
        ..TableInfo::new(
            ".resources",
            "what was profiled, such as a service on a host",
        )
    },
    columns: columns! {
        (p, r: Resource, r: Resource)
        Key "resource_id" () "its id";
        Text "schema_url" (r.schema_url, |url| r.schema_url = known(url)) "which conventions its attributes follow";
        Count "dropped_attributes_count" (r.dropped_attributes)
            "the number of attributes that the recorder omitted";
    },
    rows: |profile| Ok(Cow::Borrowed(&profile.resources)),
    blank: Resource::default,
    rules: &[],
    store: |reading, rows| {
        for resource in rows {
            reading.profile.add_resource(resource)?;
        }
        Ok(())
    },
};

/// The row of a resource, and an entity of it.
type OwnedEntity = (usize, Entity);

pub static RESOURCE_ENTITIES: RowTable<OwnedEntity> = RowTable {
    info: TableInfo::new(
        ".resource_entities",
        "an entity, such as a host, that attributes of a resource describe",
    ),
    columns: columns! {
        (p, e: OwnedEntity, e: OwnedEntity)
        Reference "resource_id" Resource(e.0) "the resource";
        Text "schema_url" (
            Some(e.1.schema_url).filter(|&url| !p.strings.get(url).is_empty()), |url| e.1.schema_url = url
        )
            "which conventions its attributes follow";
        Text "type" (e.1.type_) "the type of the entity";
        Texts "id_keys" (e.1.id_keys) "the keys of attributes that identify it";
        Texts "description_keys" (e.1.description_keys) "the keys of attributes that describe it";
    },
    rows: |profile| entities(profile),
    blank: || {
        let entity = Entity {
            schema_url: EMPTY,
            type_: EMPTY,
            id_keys: Vec::new(),
            description_keys: Vec::new(),
        };
        (0, entity)
    },
    rules: &[],
    store: |reading, rows| {
        for (resource, entity) in rows {
            let entities = &mut reading.profile.resources[resource].entities;
            entities.try_push(entity)?;
        }
        Ok(())
    },
};

pub static SCOPES: RowTable<Scope> = RowTable {
    info: TableInfo {
        key: &["scope_id"],
        used_by: Some(("sources", ".scope_id")),
        ..TableInfo::new(".scopes", "what recorded profiles of a resource")
    },
    columns: columns! {
        (p, s: Scope, s: Scope)
        Key "scope_id" () "its id";
        Reference "resource_id" Resource(s.resource) "the resource";
        Text "name" (s.name, |name| s.name = known(name)) "its name";
        Text "version" (s.version, |version| s.version = known(version)) "its version";
        Text "schema_url" (s.schema_url, |url| s.schema_url = known(url)) "which conventions its attributes follow";
        Count "dropped_attributes_count" (s.dropped_attributes)
            "the number of attributes that the recorder omitted";
    },
    rows: |profile| Ok(Cow::Borrowed(&profile.scopes)),
    blank: || Scope::of(ResourceId(0)),
    rules: &[],
    store: |reading, rows| {
        for scope in rows {
            reading.profile.add_scope(scope)?;
        }
        Ok(())
    },
};

fn entities(profile: &Profile) -> Result<Cow<'_, [OwnedEntity]>> {
    let mut rows = Vec::new();
    for (resource, owner) in profile.resources.iter().enumerate() {
        for entity in &owner.entities {
            let entity = Entity {
                id_keys: copied(&entity.id_keys)?,
                description_keys: copied(&entity.description_keys)?,
                ..*entity
            };
            rows.try_push((resource, entity))?;
        }
    }
    Ok(Cow::Owned(rows))
}
