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
mod mappings;
mod plan;
mod resources;
mod samples;

use crate::analysis::aggregate::{LeftOut, without_zeros};
use crate::analysis::inlining::Inlining;
use crate::analysis::sample_types::whole_types;
use crate::analysis::source_facts::InexactFacts;
use crate::error::{Error, Result};
use crate::formats::losses::{LossKind, Losses};
use crate::formats::otlp::json;
use crate::formats::otlp::proto::{data, profile as field};
use crate::formats::write;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{Growing, TryGrow, owned};
use crate::message;
use crate::model::{Payload, Profile, SourceId};
use crate::protobuf::encode::put_bytes;
use crate::protobuf::output::Output;
use crate::protobuf::tables::EncodedTable;
use dictionary::Tables;
use forms::forms;
use plan::{Plan, SOURCES};
use resources::{Bodies, Resources, resources};
use samples::{Observed, Observer};
use std::io::Write;

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
    pub fn from_options(options: &dyn write::Options) -> Result<Writer> {
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

    fn write_message(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        if self.payload.is_some() && profile.sources.len() != 1 {
            return Err(Error::Lossy(message!(
                "An original payload requires exactly one source, and the profile has {}.",
                profile.sources.len()
            )));
        }
        let types = whole_types(profile, self.aggregate)?;
        let plan = Plan::new(profile, &types, self.aggregate, stop)?;
        let inlining = Inlining::new(profile)?;
        let job = Job {
            profile,
            options: self,
            plan,
            stop,
        };
        let (mut tables, bodies) = without_zeros(profile.samples.len(), |left_out| {
            let mut tables = Tables::new(profile, &inlining, left_out)?;
            let bodies = job.bodies(&mut tables, left_out)?;
            let bodies = bodies.filter(|_| !tables.mappings.has_unused_entries());
            Ok(bodies.map(|bodies| (tables, bodies)))
        })?;
        let mut output = Output::new(out)?;
        let mut unused_mappings = tables.mappings.unused(profile)?;
        let all = Resources {
            profile,
            attributes: &self.resource,
            plan: &job.plan,
            bodies: &bodies,
            stop,
        };
        for resource in resources(profile, &job.plan)? {
            let unused = unused_mappings.take();
            all.put(&resource, unused.as_ref(), &mut tables, &mut output)?;
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
}

impl write::Writer for Writer {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        if !self.json {
            return self.write_message(profile, out, stop);
        }
        let mut message = Vec::new();
        let losses = self.write_message(profile, &mut Growing(&mut message), stop)?;
        json::write(&message, out, stop)?;
        Ok(losses)
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
                put_bytes(
                    body,
                    field::ORIGINAL_PAYLOAD_FORMAT,
                    payload.format.as_bytes(),
                )?;
                put_bytes(body, field::ORIGINAL_PAYLOAD, &payload.bytes)?;
            }
        }
        Ok(Bodies {
            profiles: bodies,
            types: forms.len(),
        })
    }
}

#[cfg(test)]
mod tests;
