//! What was profiled: services, their versions and hosts, and their runs.
//!
//! The names are attributes of the resource. Files of pprof have none, so agents write comments such as
//! `resource.service.name: shop`.
//!
//! A run is a recorded process, or else a recorded source. An agent writes its samples in many parts, so its attributes
//! contain an id of the process and when it was created. The key of a run is a hash, like other keys of a data set, so
//! that all writers give the same run the same key. Without a time, two equal sources may be two runs: then the key
//! contains a text that differs each time something is stored.

use super::super::content_keys::{Cells, content_keys};
use super::super::measures::Measure;
use super::super::sample_types::type_of_source;
use super::super::source_facts::{attribute, period, seconds_of_utc};
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, sort_by_key, with_room};
use crate::model::{PROCESS_CREATION, PROCESS_ID, Profile, RUN, Source};

/// The name that OpenTelemetry's SDKs give to a service without one. Tables are joined by the service, so it is never
/// missing.
const UNKNOWN_SERVICE: &str = "unknown_service";

/// The resource attribute of OpenTelemetry that differs between all processes of a service.
const INSTANCE: &str = "service.instance.id";

/// What was profiled: the attributes `service.name`, `service.version` and `host.name`, the run, and its sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin<'p> {
    pub service: &'p str,
    pub version: Option<&'p str>,
    pub host: Option<&'p str>,
    /// When the run began, in seconds since 1970.
    pub start: Option<i64>,
    /// An index of `runs`.
    pub run: u32,
    /// What was counted between two samples, and how much of it, in which unit.
    pub period: Option<(i64, Option<(&'p str, &'p str)>)>,
    /// The type that is summed by default, an index of the measures.
    pub default_type: Option<usize>,
}

pub(super) struct Origins<'p> {
    pub(super) distinct: Vec<Origin<'p>>,
    /// The keys of runs.
    pub(super) runs: Interner<TextList>,
    /// An index for each source.
    pub(super) of_source: Vec<u32>,
}

impl<'p> Origins<'p> {
    /// `call`: a text that differs each time something is stored.
    pub(super) fn new(
        profile: &'p Profile,
        measures: &[Measure],
        further: &[(&'p str, &'p str)],
        call: &str,
    ) -> Result<Origins<'p>> {
        let mut distinct: Interner<Vec<Origin>> = Interner::default();
        let mut runs = Interner::default();
        let mut of_source = with_room(profile.sources.len())?;
        for (position, source) in profile.sources.iter().enumerate() {
            let own = |key: &str| {
                let own = further.iter().find(|(name, _)| *name == key);
                own.map(|(_, value)| *value)
                    .or_else(|| of_resource(profile, source, key))
                    .filter(|value| !value.is_empty())
            };
            let host = own("host.name");
            let service = own("service.name").unwrap_or(UNKNOWN_SERVICE);
            let version = own("service.version");
            let run = Run {
                service,
                version,
                instance: own(INSTANCE),
                host,
                pid: attribute(profile, source, PROCESS_ID),
                creation: attribute(profile, source, PROCESS_CREATION)
                    .or_else(|| own(PROCESS_CREATION)),
            };
            let origin = Origin {
                service,
                version,
                host,
                start: run.start(source),
                run: match attribute(profile, source, RUN) {
                    Some(key) => runs.intern(key)?,
                    None => runs.intern(run.key(source, call, position)?.as_str())?,
                },
                period: period(source).filter(|(period, _)| *period > 0),
                default_type: type_of_source(profile, source).and_then(|values| {
                    let name = values.type_.name.as_str();
                    measures.iter().position(|measure| measure.key() == name)
                }),
            };
            of_source.try_push(distinct.intern(origin)?)?;
        }
        Ok(Origins {
            distinct: distinct.iter().copied().try_vec()?,
            runs,
            of_source,
        })
    }

    /// Sorts the origins by their names. Returns the new index of each.
    pub(super) fn sort(&mut self) -> Result<Vec<u32>> {
        let mut order = (0..self.distinct.len() as u32).try_vec()?;
        sort_by_key(&mut order, |&index| self.distinct[index as usize])?;
        let mut ranks = filled(order.len(), 0)?;
        for (rank, &index) in order.iter().enumerate() {
            ranks[index as usize] = rank as u32;
        }
        self.distinct = order.iter().map(|&i| self.distinct[i as usize]).try_vec()?;
        Ok(ranks)
    }
}

/// An attribute of what was profiled.
fn of_resource<'p>(profile: &'p Profile, source: &Source, key: &str) -> Option<&'p str> {
    let text = |id| profile.strings.get(id);
    let scope = source.scope.map(|scope| &profile.scopes[scope.row()]);
    let resource = scope.map(|scope| &profile.resources[scope.resource.row()]);
    let stored = || {
        let mut all = resource?.attributes.iter();
        let found = all.find(|attribute| text(attribute.key) == key)?;
        Some(text(found.value.text))
    };
    let commented = || {
        let mut comments = source.comments.iter().map(|&id| text(id));
        comments.find_map(|comment| {
            let attribute = comment.strip_prefix("resource.")?;
            attribute.strip_prefix(key)?.strip_prefix(": ")
        })
    };
    stored().or_else(commented)
}

/// A column with one row.
fn text(text: Option<&str>) -> Result<Cells<'_>> {
    Ok(Cells::Texts(std::iter::once(text).try_vec()?))
}

/// What identifies a run.
struct Run<'p> {
    service: &'p str,
    version: Option<&'p str>,
    instance: Option<&'p str>,
    host: Option<&'p str>,
    pid: Option<&'p str>,
    creation: Option<&'p str>,
}

impl Run<'_> {
    /// The parts of an agent have different times.
    fn start(&self, source: &Source) -> Option<i64> {
        let created = self.instance.and(self.creation).and_then(seconds_of_utc);
        let recorded = || {
            let seconds = source.timestamp.filter(|seconds| seconds.is_finite())?;
            Some(seconds.floor() as i64)
        };
        created.or_else(recorded)
    }

    fn key(&self, source: &Source, call: &str, position: usize) -> Result<String> {
        let time = [source.timestamp.unwrap_or(f64::NAN)];
        let position = [position as f64];
        let known = [self.creation, source.profile_id.as_deref()];
        let is_known = time[0].is_finite() || known.iter().any(Option::is_some);
        let mut columns = match self.instance {
            Some(_) => std::iter::once(("instance", text(self.instance)?)).try_vec()?,
            None => [
                ("service", text(Some(self.service))?),
                ("version", text(self.version)?),
                ("host", text(self.host)?),
                ("pid", text(self.pid)?),
                ("creation", text(self.creation)?),
                ("type", text(Some(source.kind.as_str()))?),
                ("uri", text(source.uri.as_deref())?),
                ("id", text(source.profile_id.as_deref())?),
                ("time", Cells::Numbers(&time)),
            ]
            .into_iter()
            .try_vec()?,
        };
        if self.instance.is_none() && !is_known {
            columns.try_push(("call", text(Some(call))?))?;
            columns.try_push(("position", Cells::Numbers(&position)))?;
        }
        let mut keys = content_keys(&mut columns, 1, &|| false)?;
        Ok(keys.pop().unwrap_or_default())
    }
}
