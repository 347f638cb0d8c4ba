//! What to write for each source: its samples, types, duration and default type.

use crate::analysis::recorded::RowKinds;
use crate::analysis::sample_types::WrittenType;
use crate::analysis::source_facts::{default_type, durations};
use crate::collections::Lists;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled};
use crate::message;
use crate::model::known_types::{KnownType, known_type};
use crate::model::{Profile, SampleType};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The number of sources between two checks for an interrupt.
pub const SOURCES: usize = 100;

/// What to write for each source.
pub struct Plan<'t, 'a> {
    /// The rows of the samples, for each source.
    rows: Lists<u32>,
    pub types: Vec<Vec<&'t WrittenType<'a>>>,
    pub durations: Vec<Option<i64>>,
    pub default_types: Vec<Option<&'a str>>,
    /// The number of values that are missing in samples.
    pub missing: usize,
}

impl<'t, 'a> Plan<'t, 'a> {
    pub fn new(
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
        let kinds = RowKinds::new(profile)?;
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
                    let known = known_type(type_.key, type_.unit);
                    let is_recorded = known.is_some_and(KnownType::is_recorded);
                    own.iter()
                        .filter(|&&row| {
                            let row = row as usize;
                            !type_.has(row, id) && !kinds.is_other(row, is_recorded)
                        })
                        .count()
                };
                plan.missing += types.iter().map(missing).sum::<usize>();
            }
            plan.default_types.try_push(default_type(source, &types))?;
            plan.types.try_push(types)?;
        }
        Ok(plan)
    }

    pub fn rows_of(&self, source: usize) -> &[u32] {
        self.rows.get(source)
    }
}
