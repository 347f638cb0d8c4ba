//! Threads: their samples, and the conversion of samples to the model.

use super::columns::{self, Column, get, index, text};
use super::meta::Meta;
use super::tables::{Mappings, TableSet, Tables, View};
use super::values::Columns;
use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader};
use crate::formats::problems::ProblemKind;
use crate::limits::memory::{TryGrow, owned, written};
use crate::model::known_types::{ALLOC_SPACE, CPU, DEALLOC_SPACE, MEMORY, SAMPLES};
use crate::model::{
    Profile, SampleType, Source, SourceKind, Strings, ValueType, nanoseconds, nearest, seconds,
};

/// Samples, or allocations.
#[derive(Default)]
struct Table {
    stack: Column,
    /// Milliseconds since the start of the profile, or since the previous sample.
    time: Column,
    deltas: Column,
    weight: Column,
    weight_type: Option<String>,
    cpu: Column,
}

#[derive(Default)]
pub struct Thread {
    pub part: TableSet,
    samples: Table,
    native: Table,
    js: Table,
    name: Option<String>,
    process: Option<String>,
    pid: Option<String>,
    tid: Option<String>,
}

impl Table {
    fn read(&mut self, json: &mut Reader, is_gecko: &mut bool) -> Result<()> {
        if json.peek()? != JsonKind::Object {
            return json.skip();
        }
        json.begin_object()?;
        while let Some(key) = json.key()? {
            let column = match key.as_str() {
                "stack" => &mut self.stack,
                "time" => &mut self.time,
                "timeDeltas" => &mut self.deltas,
                // Up to version 15 of the format allocations had a duration instead.
                "weight" => &mut self.weight,
                "threadCPUDelta" => &mut self.cpu,
                key => {
                    *is_gecko |= key == "schema";
                    if key == "weightType" {
                        self.weight_type = text(json)?
                    } else {
                        json.skip()?
                    }
                    continue;
                }
            };
            columns::read(json, column)?;
        }
        Ok(())
    }

    /// The number of complete rows.
    fn rows(&mut self, json: &mut Reader) -> usize {
        let times = if self.time.is_empty() {
            &self.deltas
        } else {
            &self.time
        };
        let lengths = [times.len(), self.weight.len()];
        let lengths = lengths.into_iter().filter(|&length| length > 0);
        let rows = lengths.chain([self.stack.len()]).min().unwrap_or(0);
        if rows < self.stack.len() {
            json.note(ProblemKind::UnequalLengths, b"");
        }
        rows
    }
}

impl Thread {
    pub fn read(&mut self, json: &mut Reader, strings: &mut Strings) -> Result<()> {
        json.begin_object()?;
        while let Some(key) = json.key()? {
            let gecko = &mut self.part.is_gecko;
            match key.as_str() {
                "samples" => self.samples.read(json, gecko)?,
                "nativeAllocations" => self.native.read(json, gecko)?,
                "jsAllocations" => self.js.read(json, gecko)?,
                "name" => self.name = text(json)?,
                "processName" => self.process = text(json)?,
                "pid" => self.pid = text(json)?,
                "tid" => self.tid = text(json)?,
                key => {
                    if !self.part.field(key, json, strings)? {
                        json.skip()?;
                    }
                }
            }
        }
        Ok(())
    }

    pub fn has_samples(&self) -> bool {
        let tables = [&self.samples, &self.native, &self.js];
        tables.iter().any(|table| !table.stack.is_empty())
    }

    /// Adds the samples to a profile, as samples of a new source.
    pub fn add_to(
        mut self,
        shared: &mut TableSet,
        meta: &Meta,
        profile: &mut Profile,
        columns: &mut Columns,
        mappings: &mut Mappings,
        json: &mut Reader,
    ) -> Result<()> {
        let view = View::new(&self.part.lists, &shared.lists);
        let tables = if self.part.tables.has_stacks() {
            &mut self.part.tables
        } else {
            &mut shared.tables
        };
        let mut adding = Adding {
            meta,
            view,
            tables,
            profile,
            columns,
            mappings,
        };
        let types = adding.samples(&mut self.samples, json)?;
        let mut all = types;
        for table in [&mut self.native, &mut self.js] {
            for type_ in adding.allocations(table, json)? {
                if !all.contains(&type_) {
                    all.try_push(type_)?;
                }
            }
        }
        let source = self.source(json.source_kind(), all, meta, profile)?;
        let source = profile.add_source(source)?;
        let rows = profile.samples.len();
        profile.samples.source.try_fill(rows, source)
    }

    fn source(
        &self,
        kind: SourceKind,
        types: Vec<ValueType>,
        meta: &Meta,
        profile: &mut Profile,
    ) -> Result<Source> {
        let mut comments = Vec::new();
        let process = self.process.as_deref().unwrap_or_default();
        let pid = self.pid.as_deref().unwrap_or_default();
        let tid = self.tid.as_deref().unwrap_or_default();
        let about = written(format_args!("process {process} {pid}, thread {tid}"))?;
        for text in [self.name.as_deref(), Some(&*about), meta.product.as_deref()] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                comments.try_push(profile.strings.intern(text)?)?;
            }
        }
        let mut recorded: Vec<SampleType> = Vec::new();
        for ValueType { name, unit } in types {
            let type_ = SampleType::new(name, unit, &recorded)?;
            recorded.try_push(type_)?;
        }
        let start = meta.start().and_then(|start| nearest(start * 1e6));
        Ok(Source {
            kind,
            uri: meta.uri.as_deref().map(owned).transpose()?,
            timestamp: start.map(seconds),
            time: start.filter(|&start| nanoseconds(seconds(start)) != Some(start)),
            period: meta.period()?,
            types: recorded,
            comments,
            ..Source::default()
        })
    }
}

/// The samples that are being added.
struct Adding<'a, 'v> {
    meta: &'a Meta,
    view: View<'v>,
    tables: &'a mut Tables,
    profile: &'a mut Profile,
    columns: &'a mut Columns,
    mappings: &'a mut Mappings,
}

impl Adding<'_, '_> {
    /// Adds a sample; returns its row.
    fn sample(&mut self, stack: Option<u32>, json: &mut Reader) -> Result<usize> {
        let id = match stack {
            Some(stack) => {
                let (view, profile) = (&self.view, &mut *self.profile);
                self.tables
                    .stack(stack, view, profile, self.mappings, json)?
            }
            None => self.profile.stacks.intern(&[])?,
        };
        let row = self.profile.samples.len();
        json.check(row)?;
        json.take_samples(1, self.profile.stacks.get(id).len())?;
        self.profile.samples.stack.try_push(id)?;
        Ok(row)
    }

    fn time(&mut self, row: usize, time: Option<f64>) -> Result<()> {
        // Milliseconds with fractions of nanoseconds are not exact: both parts are converted.
        let Some((start, time)) = self.meta.origin.zip(time) else {
            return Ok(());
        };
        let whole = nearest(start * 1e6).zip(nearest(time * 1e6));
        match whole.and_then(|(start, time)| start.checked_add(time)) {
            Some(time) => self.profile.samples.times.try_push((row, time)),
            None => Ok(()),
        }
    }

    fn samples(&mut self, table: &mut Table, json: &mut Reader) -> Result<Vec<ValueType>> {
        let (name, unit) = match table.weight_type.as_deref() {
            Some("tracing-ms") => ("time", "milliseconds"),
            Some("bytes") => MEMORY,
            _ => SAMPLES.key(),
        };
        let column = self.columns.find(name, unit)?;
        let cpu = if table.cpu.iter().any(|cpu| !cpu.is_nan()) {
            Some(self.columns.find(CPU.name, self.meta.cpu_unit())?)
        } else {
            None
        };
        let rows = table.rows(json);
        let mut passed = 0.0;
        for at in 0..rows as u32 {
            let row = self.sample(index(&table.stack, at, json)?, json)?;
            let weight = if table.weight.is_empty() {
                Some(1.0)
            } else {
                get(&table.weight, at)
            };
            self.columns.set(column, row, weight)?;
            if let Some(cpu) = cpu {
                self.columns.set(cpu, row, get(&table.cpu, at))?;
            }
            passed += get(&table.deltas, at).unwrap_or(0.0);
            let time = if table.time.is_empty() {
                Some(passed).filter(|_| !table.deltas.is_empty())
            } else {
                get(&table.time, at)
            };
            self.time(row, time)?;
        }
        let mut types = Vec::new();
        if rows > 0 {
            for column in [Some(column), cpu].into_iter().flatten() {
                types.try_push(self.columns.type_of(column)?)?;
            }
        }
        Ok(types)
    }

    fn allocations(&mut self, table: &mut Table, json: &mut Reader) -> Result<Vec<ValueType>> {
        let mut types: Vec<ValueType> = Vec::new();
        for at in 0..table.rows(json) as u32 {
            let weight = get(&table.weight, at).unwrap_or(0.0);
            let known = if weight < 0.0 {
                DEALLOC_SPACE
            } else {
                ALLOC_SPACE
            };
            let column = self.columns.find(known.name, known.unit)?;
            let row = self.sample(index(&table.stack, at, json)?, json)?;
            self.columns.set(column, row, Some(weight.abs()))?;
            self.time(row, get(&table.time, at))?;
            let is_known = types.iter().any(|type_| known == *type_);
            if !is_known {
                types.try_push(self.columns.type_of(column)?)?;
            }
        }
        Ok(types)
    }
}
