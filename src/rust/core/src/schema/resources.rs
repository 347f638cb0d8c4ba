//! `.resources`, `.resource_entities` and `.scopes`: what was profiled, and by what, in
//! OpenTelemetry.

use super::column::Column;
use super::key::Key;
use super::reading::{EMPTY, known};
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::limits::memory::{TryGrow, copied};
use crate::model::{Entity, Profile, Resource, ResourceId, Scope};
use std::borrow::Cow;

type ResourceColumn = Column<Resource>;
type EntityColumn = Column<OwnedEntity>;
type ScopeColumn = Column<Scope>;

const DROPPED: &str = "the number of attributes that the recorder omitted";

pub static RESOURCES: RowTable<Resource> = RowTable {
    info: TableInfo {
        key: &["resource_id"],
        used_by: Some((".scopes", "resource_id")),
        ..TableInfo::new(
            ".resources",
            "what was profiled, such as a service on a host",
        )
    },
    columns: &[
        ResourceColumn::key(Key::Resource, "its id"),
        ResourceColumn::text(
            "schema_url",
            "which conventions its attributes follow",
            |_, r| r.schema_url,
            |r, url| r.schema_url = known(url),
        ),
        ResourceColumn::count(
            "dropped_attributes_count",
            DROPPED,
            |_, r| Some(r.dropped_attributes),
            |r, count| r.dropped_attributes = count,
        ),
    ],
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
    columns: &[
        EntityColumn::reference(
            "resource_id",
            Key::Resource,
            "the resource",
            |_, (resource, _)| Some(*resource),
            |(resource, _), row| *resource = row,
        ),
        EntityColumn::text(
            "schema_url",
            "which conventions its attributes follow",
            |p, (_, e)| Some(e.schema_url).filter(|&url| !p.strings.get(url).is_empty()),
            |(_, e), url| e.schema_url = url,
        ),
        EntityColumn::text(
            "type",
            "the type of the entity",
            |_, (_, e)| Some(e.type_),
            |(_, e), type_| e.type_ = type_,
        ),
        EntityColumn::texts(
            "id_keys",
            "the keys of attributes that identify it",
            |(_, e)| &e.id_keys,
            |(_, e), keys| e.id_keys = keys,
        ),
        EntityColumn::texts(
            "description_keys",
            "the keys of attributes that describe it",
            |(_, e)| &e.description_keys,
            |(_, e), keys| e.description_keys = keys,
        ),
    ],
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
    columns: &[
        ScopeColumn::key(Key::Scope, "its id"),
        ScopeColumn::reference(
            "resource_id",
            Key::Resource,
            "the resource",
            |_, s| Some(s.resource.row()),
            |s, row| s.resource = ResourceId(row as u32),
        ),
        ScopeColumn::text(
            "name",
            "its name",
            |_, s| s.name,
            |s, name| s.name = known(name),
        ),
        ScopeColumn::text(
            "version",
            "its version",
            |_, s| s.version,
            |s, version| s.version = known(version),
        ),
        ScopeColumn::text(
            "schema_url",
            "which conventions its attributes follow",
            |_, s| s.schema_url,
            |s, url| s.schema_url = known(url),
        ),
        ScopeColumn::count(
            "dropped_attributes_count",
            DROPPED,
            |_, s| Some(s.dropped_attributes),
            |s, count| s.dropped_attributes = count,
        ),
    ],
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
