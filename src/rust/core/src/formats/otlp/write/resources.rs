//! Resources and scopes, which contain the profiles of a message.

use super::dictionary::Tables;
use super::header::{self, PprofFields};
use super::plan::{Plan, SOURCES};
use crate::attribute_value::AnyValue;
use crate::error::Result;
use crate::formats::otlp::proto::{data, resource_profiles, scope_profiles};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, TryPut};
use crate::model::{Profile, ResourceId, ScopeId, StringId};
use crate::protobuf::encode::{self, put_bytes};
use crate::protobuf::output::Output;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The encoded profiles of a source.
pub struct Bodies {
    pub profiles: Vec<Vec<u8>>,
    /// The number of sample types that they have.
    pub types: usize,
}

/// A resource and its scopes, with the rows of the sources of each scope.
pub struct OfResource {
    id: Option<ResourceId>,
    scopes: Vec<(Option<ScopeId>, Vec<usize>)>,
}

/// Groups the sources by resource and scope, in the order of first use. Each source without a scope
/// gets its own, since scopes store the fields of a pprof file ([`PprofFields`]).
pub fn resources(profile: &Profile, plan: &Plan) -> Result<Vec<OfResource>> {
    let mut resources: Vec<OfResource> = Vec::new();
    // The indices of resources in `resources`, and of scopes in their resources.
    let mut known: HashMap<_, usize, RandomState> = HashMap::default();
    let mut known_scopes: HashMap<_, usize, RandomState> = HashMap::default();
    for (row, source) in profile.sources.iter().enumerate() {
        let id = source.scope.map(|id| profile.scopes[id.row()].resource);
        let at = match known.get(&id) {
            Some(&at) => at,
            None => {
                let scopes = Vec::new();
                known.try_put(id, resources.len())?;
                resources.try_push(OfResource { id, scopes })?;
                resources.len() - 1
            }
        };
        let scopes = &mut resources[at].scopes;
        let next = scopes.len();
        let scope = source.scope.map(|id| (id, plan.default_types[row]));
        let at = match scope.and_then(|scope| known_scopes.get(&scope)) {
            Some(&at) => at,
            None => next,
        };
        if at == next {
            scopes.try_push((source.scope, Vec::new()))?;
            if let Some(scope) = scope {
                known_scopes.try_put(scope, next)?;
            }
        }
        scopes[at].1.try_push(row)?;
    }
    Ok(resources)
}

/// The fields of a scope before and after its profiles, and the rows of its sources.
struct EncodedScope<'s> {
    start: Vec<u8>,
    rows: &'s [usize],
    end: Vec<u8>,
    /// The size of all, including the profiles.
    size: usize,
}

/// Writes resources with their scopes and profiles.
pub struct Resources<'t, 'a> {
    pub profile: &'a Profile,
    /// Attributes for all resources.
    pub attributes: &'t [(String, String)],
    pub plan: &'t Plan<'t, 'a>,
    /// Of each source.
    pub bodies: &'t [Bodies],
    pub stop: Stop<'t>,
}

impl<'t> Resources<'t, '_> {
    /// Writes a resource with its scopes and profiles. `unused_mappings`: for its first scope.
    pub fn put(
        &self,
        of: &OfResource,
        unused_mappings: Option<&AnyValue>,
        tables: &mut Tables,
        output: &mut Output,
    ) -> Result<()> {
        let resource = of.id.map(|id| &self.profile.resources[id.row()]);
        let about = header::resource(
            self.profile,
            resource,
            self.attributes,
            &mut tables.attributes,
        )?;
        let schema_url = resource.and_then(|resource| resource.schema_url);
        let (start, end) = self.around(
            (resource_profiles::RESOURCE, &about),
            (resource_profiles::SCHEMA_URL, schema_url),
        )?;
        let mut scopes = Vec::new();
        for (i, (id, rows)) in of.scopes.iter().enumerate() {
            if i % SOURCES == 0 {
                cancel::check(self.stop)?;
            }
            let unused_mappings = unused_mappings.filter(|_| i == 0);
            scopes.try_push(self.scope(*id, rows, unused_mappings, tables)?)?;
        }
        let sizes = scopes.iter().map(|scope| scope.size);
        let size: usize = sizes.map(encode::bytes_field_len).sum();
        output.header(data::RESOURCE_PROFILES, start.len() + size + end.len())?;
        output.bytes(&start)?;
        for scope in &scopes {
            output.header(resource_profiles::SCOPE_PROFILES, scope.size)?;
            output.bytes(&scope.start)?;
            for body in scope
                .rows
                .iter()
                .flat_map(|&row| &self.bodies[row].profiles)
            {
                output.field(scope_profiles::PROFILES, &[body])?;
            }
            output.bytes(&scope.end)?;
        }
        output.bytes(&end)
    }

    /// The fields of a resource or scope before and after its content: what it is, and the URL of its schema, each with
    /// the number of its field. What is empty is not written.
    fn around(
        &self,
        (about_number, about): (u32, &[u8]),
        (url_number, url): (u32, Option<StringId>),
    ) -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut start, mut end) = (Vec::new(), Vec::new());
        if !about.is_empty() {
            put_bytes(&mut start, about_number, about)?;
        }
        header::put_text(&mut end, self.profile, url_number, url)?;
        Ok((start, end))
    }

    fn scope<'s>(
        &self,
        id: Option<ScopeId>,
        rows: &'s [usize],
        unused_mappings: Option<&AnyValue>,
        tables: &mut Tables,
    ) -> Result<EncodedScope<'s>> {
        let scope = id.map(|id| &self.profile.scopes[id.row()]);
        let pprof = PprofFields {
            default_type: rows.first().and_then(|&row| self.plan.default_types[row]),
            types: match *rows {
                [row] if self.bodies[row].types == self.bodies[row].profiles.len() => {
                    self.bodies[row].types
                }
                _ => 0,
            },
            unused_mappings,
        };
        let about = header::scope(self.profile, scope, &pprof, &mut tables.attributes)?;
        let schema_url = scope.and_then(|scope| scope.schema_url);
        let (start, end) = self.around(
            (scope_profiles::SCOPE, &about),
            (scope_profiles::SCHEMA_URL, schema_url),
        )?;
        let profiles = rows.iter().flat_map(|&row| &self.bodies[row].profiles);
        let sizes = profiles.map(|body| encode::bytes_field_len(body.len()));
        let size = start.len() + sizes.sum::<usize>() + end.len();
        Ok(EncodedScope {
            start,
            rows,
            end,
            size,
        })
    }
}
