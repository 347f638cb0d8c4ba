//! Writes a profile as an OTLP message.
//!
//! A profile of OpenTelemetry has a single sample type, so a source becomes one profile for each of
//! its sample types, all with the same samples. If only some samples have times, these and the others
//! are in separate profiles. The records that samples refer to are collected in
//! the dictionary ([`Tables`]), which is written last.

mod attributes;
mod dictionary;
mod fields;
mod forms;
mod header;
mod samples;

use crate::analysis::aggregate::{LeftOut, without_zeros};
use crate::analysis::inlining::Inlining;
use crate::analysis::sample_types::{WrittenType, written_types};
use crate::analysis::source_facts::{InexactFacts, default_type, durations};
use crate::collections::Lists;
use crate::error::{Error, Result};
use crate::formats::losses::{LossKind, Losses};
use crate::formats::otlp::json;
use crate::formats::otlp::layout::Layout;
use crate::formats::otlp::proto::{data, resource_profiles, scope_profiles};
use crate::formats::write;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{Growing, TryCollect, TryGrow, TryPut, filled, owned};
use crate::message;
use crate::model::{Payload, Profile, ResourceId, SampleType, Scope, ScopeId, SourceId};
use crate::protobuf::encode::{self, put_bytes};
use crate::protobuf::output::Output;
use crate::protobuf::tables::EncodedTable;
use dictionary::Tables;
use foldhash::fast::RandomState;
use forms::forms;
use header::PprofFields;
use samples::{Observed, Observer};
use std::collections::HashMap;
use std::io::Write;

/// The number of sources between two checks for an interrupt.
const SOURCES: usize = 100;

/// Writes OTLP messages: `ProfilesData`, which has the same fields as `ExportProfilesServiceRequest`,
/// so a message can be used as either.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    /// Whether to merge samples with equal stacks, attributes and links. Samples without times
    /// become one sample with the sums of their values; samples with times become one sample with
    /// all their values and times. If false, all samples are written separately and in order.
    pub aggregate: bool,
    pub json: bool,
    /// Attributes for all resources. They replace attributes of a resource with the same keys.
    pub resource: Vec<(String, String)>,
    /// The original profile in another format, for a profile with a single source. It contains what
    /// OTLP cannot store, so such content is not an error if a payload is given.
    pub payload: Option<Payload>,
}

impl Writer {
    /// With the options `aggregate`, `json`, `payload` (flags), `keys` and `values` (texts).
    pub fn of_options(options: &dyn write::Options) -> Result<Writer> {
        let keys = options.texts("keys")?.into_iter();
        let mut resource = Vec::new();
        for (key, value) in keys.zip(options.texts("values")?) {
            let attribute = (owned(key)?, owned(value)?);
            resource.try_push(attribute)?;
        }
        Ok(Writer {
            aggregate: options.flag("aggregate")?,
            json: options.flag("json")?,
            resource,
            payload: options.payload("payload")?,
        })
    }
}

impl write::Writer for Writer {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        write_profiles(profile, self, out, stop)
    }
}

fn write_profiles(
    profile: &Profile,
    options: &Writer,
    out: &mut dyn Write,
    stop: Stop,
) -> Result<Losses> {
    if options.json {
        let mut message = Vec::new();
        let losses = write_message(profile, options, &mut Growing(&mut message), stop)?;
        json::write(&message, out, stop)?;
        Ok(losses)
    } else {
        write_message(profile, options, out, stop)
    }
}

fn write_message(
    profile: &Profile,
    options: &Writer,
    out: &mut dyn Write,
    stop: Stop,
) -> Result<Losses> {
    if options.payload.is_some() && profile.sources.len() != 1 {
        return Err(Error::Lossy(message!(
            "An original payload requires exactly one source, and the profile has {}.",
            profile.sources.len()
        )));
    }
    let types = written_types(profile, options.aggregate)?;
    let plan = Plan::new(profile, &types, options.aggregate, stop)?;
    let inlining = Inlining::new(profile)?;
    let job = Job {
        profile,
        options,
        plan,
        stop,
    };
    let (mut tables, bodies) = without_zeros(profile.samples.len(), |left_out| {
        let mut tables = Tables::new(profile, &inlining)?;
        let bodies = job.bodies(&mut tables, left_out)?;
        Ok(bodies.map(|bodies| (tables, bodies)))
    })?;
    let mut output = Output::new(out)?;
    for resource in resources(profile, &job.plan)? {
        job.put_resource(&resource, &bodies, &mut tables, &mut output)?;
    }
    output.header(data::DICTIONARY, tables.size())?;
    tables.write(&mut output, stop)?;
    output.flush()?;
    let inexact = InexactFacts::new(profile, &job.plan.durations);
    let mut losses = tables.attributes.losses;
    losses.add(LossKind::Period, inexact.periods);
    losses.add(LossKind::Time, inexact.times);
    losses.add(LossKind::Duration, inexact.durations);
    losses.add(LossKind::MissingValue, job.plan.missing);
    Ok(losses)
}

/// What to write for each source.
struct Plan<'t, 'a> {
    /// The rows of the samples, for each source.
    rows: Lists<u32>,
    types: Vec<Vec<&'t WrittenType<'a>>>,
    durations: Vec<Option<i64>>,
    default_types: Vec<Option<&'a str>>,
    /// The number of values that are missing in samples.
    missing: usize,
}

impl<'t, 'a> Plan<'t, 'a> {
    fn new(
        profile: &'a Profile,
        types: &'t [WrittenType<'a>],
        aggregate: bool,
        stop: Stop,
    ) -> Result<Plan<'t, 'a>> {
        let count = profile.sources.len();
        let source_of = profile.samples.source.iter().map(|source| source.row());
        let mut plan = Plan {
            rows: Lists::grouped(count, source_of)?,
            types: Vec::new(),
            durations: durations(profile)?,
            default_types: Vec::new(),
            missing: 0,
        };
        // The types by name and unit, and whether the current source declares them.
        let mut by_name: HashMap<_, usize, RandomState> = HashMap::default();
        for (i, type_) in types.iter().enumerate() {
            by_name.try_put((type_.key, type_.unit), i)?;
        }
        let mut declared = filled(types.len(), false)?;
        for (id, source) in profile.source_ids().zip(&profile.sources) {
            if id.row() % SOURCES == 0 {
                cancel::check(stop)?;
            }
            let own = plan.rows_of(id.row());
            declared.fill(false);
            for SampleType { type_, .. } in &source.types {
                if let Some(&i) = by_name.get(&(type_.name.as_str(), type_.unit.as_str())) {
                    declared[i] = true;
                }
            }
            let has = |type_: &WrittenType| own.iter().any(|&row| type_.has(row as usize, id));
            let types = types.iter().zip(&declared);
            let types = types.filter(|(type_, declared)| **declared || has(type_));
            let types = types.map(|(type_, _)| type_).try_vec()?;
            if types.is_empty() && !own.is_empty() {
                return Err(Error::Lossy(message!(
                    "The samples of source {} have no values, which OpenTelemetry requires.",
                    id.row() + 1
                )));
            }
            if !aggregate {
                // Missing values do not change sums, so they are counted only here.
                let missing = |type_: &&WrittenType| {
                    own.iter()
                        .filter(|&&row| !type_.has(row as usize, id))
                        .count()
                };
                plan.missing += types.iter().map(missing).sum::<usize>();
            }
            plan.default_types.try_push(default_type(source, &types))?;
            plan.types.try_push(types)?;
        }
        Ok(plan)
    }

    fn rows_of(&self, source: usize) -> &[u32] {
        self.rows.get(source)
    }
}

/// Writes one message.
struct Job<'t, 'a> {
    profile: &'a Profile,
    options: &'t Writer,
    plan: Plan<'t, 'a>,
    stop: Stop<'t>,
}

impl<'a> Job<'_, 'a> {
    /// Encodes the profiles of each source. Returns `None` if samples were added to `left_out`: the
    /// dictionary may contain records that only they need, so encoding must start again.
    fn bodies(
        &self,
        tables: &mut Tables<'a>,
        left_out: &mut LeftOut,
    ) -> Result<Option<Vec<Bodies>>> {
        let mut sets = EncodedTable::default();
        let mut all = Vec::new();
        let mut complete = true;
        for (row, types) in self.plan.types.iter().enumerate() {
            if row % SOURCES == 0 {
                cancel::check(self.stop)?;
            }
            let (aggregate, payload) = (self.options.aggregate, self.options.payload.is_some());
            let mut observer = Observer::new(
                self.profile,
                tables,
                &mut sets,
                aggregate,
                payload,
                self.stop,
            )?;
            let id = SourceId(row as u32);
            let rows = self.plan.rows_of(row);
            let Some(observed) = observer.observe(id, rows, types, left_out)? else {
                complete = false;
                continue;
            };
            if complete {
                let bodies = self.source(row, &observed, &sets, tables)?;
                all.try_push(bodies)?;
            }
        }
        Ok(complete.then_some(all))
    }

    /// Encodes the profiles of a source: one for each of its types, and if only some of its samples
    /// have times, one for the others. The specification recommends that either all samples of a
    /// profile have times or none has.
    fn source(
        &self,
        row: usize,
        observed: &Observed,
        sets: &EncodedTable,
        tables: &mut Tables<'a>,
    ) -> Result<Bodies> {
        let duration = self.plan.durations[row];
        let common = header::common(
            self.profile,
            row,
            duration,
            observed,
            &mut tables.attributes,
            self.options.payload.is_some(),
        )?;
        let own = self.profile.sources[row].payload.as_ref();
        let payload = self.options.payload.as_ref().or(own);
        let mut bodies = Vec::new();
        let forms = forms(&self.profile.sources[row], &self.plan.types[row], observed)?;
        for timed in observed.shapes() {
            for form in &forms {
                let mut body = header::sample_type(form, &mut tables.attributes)?;
                let values = (form.type_, form.divisor);
                observed.put(values, timed, sets, &mut body, self.stop)?;
                common.put(Some(form), &mut body, &mut tables.attributes)?;
                bodies.try_push(body)?;
            }
        }
        if bodies.is_empty() {
            // A source without types still has a time and other metadata.
            let mut body = Vec::new();
            common.put(None, &mut body, &mut tables.attributes)?;
            bodies.try_push(body)?;
        }
        for (i, body) in bodies.iter_mut().enumerate() {
            if let Some(payload) = payload.filter(|_| i == 0) {
                let fields = Layout::CURRENT.profile;
                put_bytes(body, fields.payload_format, payload.format.as_bytes())?;
                put_bytes(body, fields.payload, &payload.bytes)?;
            }
        }
        Ok(Bodies {
            profiles: bodies,
            types: forms.len(),
        })
    }

    fn put_resource(
        &self,
        of: &OfResource,
        bodies: &[Bodies],
        tables: &mut Tables,
        output: &mut Output,
    ) -> Result<()> {
        let resource = of.id.map(|id| &self.profile.resources[id.row()]);
        let about = header::resource(
            self.profile,
            resource,
            &self.options.resource,
            &mut tables.attributes,
        )?;
        let mut start = Vec::new();
        if !about.is_empty() {
            put_bytes(&mut start, resource_profiles::RESOURCE, &about)?;
        }
        let mut end = Vec::new();
        let schema_url = resource.and_then(|resource| resource.schema_url);
        header::put_text(
            &mut end,
            self.profile,
            resource_profiles::SCHEMA_URL,
            schema_url,
        )?;
        let mut scopes = Vec::new();
        for (i, (id, rows)) in of.scopes.iter().enumerate() {
            if i % SOURCES == 0 {
                cancel::check(self.stop)?;
            }
            let scope: Option<&Scope> = id.map(|id| &self.profile.scopes[id.row()]);
            let pprof = PprofFields {
                default_type: rows.first().and_then(|&row| self.plan.default_types[row]),
                types: match rows.as_slice() {
                    [row] if bodies[*row].types == bodies[*row].profiles.len() => {
                        bodies[*row].types
                    }
                    _ => 0,
                },
            };
            let about = header::scope(self.profile, scope, &pprof, &mut tables.attributes)?;
            let mut start = Vec::new();
            if !about.is_empty() {
                put_bytes(&mut start, scope_profiles::SCOPE, &about)?;
            }
            let mut end = Vec::new();
            let schema_url = scope.and_then(|scope| scope.schema_url);
            header::put_text(
                &mut end,
                self.profile,
                scope_profiles::SCHEMA_URL,
                schema_url,
            )?;
            let profiles = || rows.iter().flat_map(|&row| &bodies[row].profiles);
            let size: usize = profiles()
                .map(|body| encode::bytes_field_len(body.len()))
                .sum();
            let size = start.len() + size + end.len();
            scopes.try_push((start, rows, end, size))?;
        }
        let size: usize = scopes
            .iter()
            .map(|(.., size)| encode::bytes_field_len(*size))
            .sum();
        output.header(data::RESOURCE_PROFILES, start.len() + size + end.len())?;
        output.bytes(&start)?;
        for (start, rows, end, size) in &scopes {
            output.header(resource_profiles::SCOPE_PROFILES, *size)?;
            output.bytes(start)?;
            for body in rows.iter().flat_map(|&row| &bodies[row].profiles) {
                output.field(scope_profiles::PROFILES, &[body])?;
            }
            output.bytes(end)?;
        }
        output.bytes(&end)
    }
}

/// The encoded profiles of a source.
struct Bodies {
    profiles: Vec<Vec<u8>>,
    /// The number of sample types that they have.
    types: usize,
}

/// A resource and its scopes, with the rows of the sources of each scope.
struct OfResource {
    id: Option<ResourceId>,
    scopes: Vec<(Option<ScopeId>, Vec<usize>)>,
}

/// Groups the sources by resource and scope, in the order of first use. Each source without a scope
/// gets its own, since scopes store the fields of a pprof file ([`PprofFields`]).
fn resources(profile: &Profile, plan: &Plan) -> Result<Vec<OfResource>> {
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
