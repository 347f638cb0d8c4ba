//! What was profiled: services, their versions and hosts.
//!
//! They are attributes of the resource. Files of pprof have none, so agents write comments such as
//! `resource.service.name: shop`.

use crate::collections::Interner;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, filled, sort_by_key, with_room};
use crate::model::Profile;

/// The name that OpenTelemetry's SDKs give to a service without one. Tables are joined by the service, so it is never
/// missing.
const UNKNOWN_SERVICE: &str = "unknown_service";

/// What was profiled: the attributes `service.name`, `service.version` and `host.name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin<'p> {
    pub service: &'p str,
    pub version: Option<&'p str>,
    pub host: Option<&'p str>,
}

pub(super) struct Origins<'p> {
    pub(super) distinct: Vec<Origin<'p>>,
    /// An index for each source.
    pub(super) of_source: Vec<u32>,
}

impl<'p> Origins<'p> {
    pub(super) fn new(profile: &'p Profile, further: &[(&'p str, &'p str)]) -> Result<Origins<'p>> {
        let mut distinct: Interner<Vec<Origin>> = Interner::default();
        let mut of_source = with_room(profile.sources.len())?;
        for source in &profile.sources {
            let scope = source.scope.map(|scope| &profile.scopes[scope.row()]);
            let resource = scope.map(|scope| &profile.resources[scope.resource.row()]);
            let text = |id| profile.strings.get(id);
            let attribute = |key: &str| {
                let own = further.iter().find(|(name, _)| *name == key);
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
                own.map(|(_, value)| *value)
                    .or_else(stored)
                    .or_else(commented)
                    .filter(|value| !value.is_empty())
            };
            let origin = Origin {
                service: attribute("service.name").unwrap_or(UNKNOWN_SERVICE),
                version: attribute("service.version"),
                host: attribute("host.name"),
            };
            of_source.try_push(distinct.intern(origin)?)?;
        }
        Ok(Origins {
            distinct: distinct.iter().copied().try_vec()?,
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
