//! Resources and scopes: what a profile was recorded of, and by what.
//!
//! OpenTelemetry groups its profiles so. A resource is a service, a host, a process;
//! a scope is the code that recorded. Profiles that name neither have none.

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

/// What some of the attributes of a resource identify.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    pub schema_url: StringId,
    pub type_: StringId,
    /// Keys of attributes: those that identify, and those that describe.
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
