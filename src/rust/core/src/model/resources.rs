//! Resources and scopes: what was profiled, and by what.
//!
//! OpenTelemetry groups profiles by them. A resource is a service, a host or a process; a scope
//! is the code that recorded the profiles. Other formats have neither.

use super::attributes::Attribute;
use super::strings::StringId;
use crate::collections::id;

id!(ResourceId, "resources");

id!(ScopeId, "scopes");

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resource {
    pub schema_url: Option<StringId>,
    pub dropped_attributes: u32,
    pub attributes: Vec<Attribute>,
    pub entities: Vec<Entity>,
}

/// An entity, such as a host, that some attributes of a resource describe.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    pub schema_url: StringId,
    pub type_: StringId,
    /// The keys of attributes that identify it, and of those that describe it.
    pub id_keys: Vec<StringId>,
    pub description_keys: Vec<StringId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Scope {
    pub resource: ResourceId,
    pub name: Option<StringId>,
    pub version: Option<StringId>,
    pub schema_url: Option<StringId>,
    pub dropped_attributes: u32,
    pub attributes: Vec<Attribute>,
}

impl Scope {
    /// A scope without content.
    pub const fn of(resource: ResourceId) -> Scope {
        Scope {
            resource,
            name: None,
            version: None,
            schema_url: None,
            dropped_attributes: 0,
            attributes: Vec::new(),
        }
    }
}
