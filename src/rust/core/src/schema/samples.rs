//! `samples`: one row for each sample as it was recorded. There may be millions, so the table is
//! read and written by whole columns. In the model, information that few samples have is stored as
//! lists of (sample, value).

use super::cells::{self, HEX_DIGITS};
use super::column::{ColumnInfo, Type};
use super::input::{Data, NA, Only, TableInput, Text, doubles, find, integers, invalid, texts};
use super::key::Key;
use super::read::{check_texts, unresolved};
use super::reading::{EMPTY, Reading};
use super::sink::{NA_REAL, Sink, constant, counted, fill};
use super::table::{Declared, Table, TableInfo, Version};
use super::write::{formatted, id_of, strings};
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::cancel::Stop;
use crate::limits::memory::{TryCollect, TryGrow, filled, with_room};
use crate::model::{
    Link, Profile, SourceId, StringId, Toplevel, nanoseconds, recorded_time, seconds,
};

const SOURCE: &str = "source_id";

/// A column that is read and written as a whole.
struct WholeColumn {
    info: ColumnInfo,
    /// Whether the column is written.
    given: fn(&Profile) -> bool,
    write: fn(&'static str, &Profile, &mut dyn Sink) -> Result<()>,
    /// The data are `None` if the table does not have the column.
    read: for<'a> fn(&mut Reading<'a>, Option<Data<'a>>) -> Result<()>,
}

pub struct SampleTable {
    info: TableInfo,
    columns: &'static [WholeColumn],
}

pub static SAMPLES: SampleTable = SampleTable {
    info: TableInfo {
        key: &["sample_id"],
        ..TableInfo::new("samples", "a sample, as it was recorded, in that order")
    },
    columns: &[
        WholeColumn {
            info: ColumnInfo::new("sample_id", Type::Integer, "its id"),
            given: |_| true,
            write: |name, _, sink| counted(sink, name, 1),
            // The ids of all tables have been read, see `Reading::read_ids()`.
            read: |_, _| Ok(()),
        },
        WholeColumn {
            info: ColumnInfo::new(SOURCE, Type::Integer, "the source"),
            given: |_| true,
            write: |name, profile, sink| {
                let sources = &profile.samples.source;
                if let Some(source) = sources.the_only() {
                    return constant(sink, name, id_of(source.row()));
                }
                sink.integers(&[name], &mut |columns| {
                    fill(columns[0], sources.iter().map(|s| id_of(s.row())))
                })
            },
            read: |reading, data| {
                for (row, &id) in integers(data).unwrap_or_default().iter().enumerate() {
                    let source = source_of(reading, row, id)?;
                    reading.profile.samples.source.try_push(source)?;
                }
                Ok(())
            },
        },
        WholeColumn {
            info: ColumnInfo::new(
                ".toplevel_filename",
                Type::Text,
                "the file from which the outermost frame was called, if Rprof recorded it",
            )
            .optional(),
            given: |profile| !profile.samples.toplevel.is_empty(),
            write: |name, profile, sink| {
                let places = profile.samples.toplevel.iter();
                let places = places.map(|place| (place.sample, place.filename));
                strings(
                    sink,
                    name,
                    &mut spread(profile, places)?.into_iter(),
                    &profile.strings,
                )
            },
            read: |reading, data| {
                let Some(text) = texts(data) else {
                    return Ok(());
                };
                let ids = reading.intern(&text)?;
                for (sample, &row) in text.rows.iter().enumerate() {
                    if let Some(&filename) = ids.get(row as usize) {
                        let place = Toplevel {
                            sample,
                            filename,
                            line: 0,
                        };
                        reading.profile.samples.toplevel.try_push(place)?;
                    }
                }
                Ok(())
            },
        },
        WholeColumn {
            info: ColumnInfo::new(".toplevel_line", Type::Integer, "the line in that file")
                .optional()
                .needed_by(".toplevel_filename"),
            given: |profile| !profile.samples.toplevel.is_empty(),
            write: |name, profile, sink| {
                let places = &profile.samples.toplevel;
                sink.integers(&[name], &mut |columns| {
                    columns[0].fill(NA);
                    for place in places {
                        columns[0][place.sample] = place.line;
                    }
                    Ok(())
                })
            },
            read: |reading, data| {
                let lines = integers(data).unwrap_or_default();
                for place in &mut reading.profile.samples.toplevel {
                    place.line = lines.get(place.sample).map_or(0, |&line| line.max(0));
                }
                Ok(())
            },
        },
        WholeColumn {
            info: ColumnInfo::new(".timestamp", Type::Double, "when it was recorded")
                .unit("seconds since 1970, up to the year 2262")
                .optional(),
            given: |profile| !profile.samples.times.is_empty(),
            write: |name, profile, sink| {
                let times = &profile.samples.times;
                sink.doubles(name, &mut |column| {
                    column.fill(NA_REAL);
                    for (sample, time) in times {
                        column[*sample] = recorded_time(*time).0;
                    }
                    Ok(())
                })
            },
            read: |reading, data| {
                reading.pending.timestamps = doubles(data).unwrap_or_default();
                Ok(())
            },
        },
        WholeColumn {
            info: ColumnInfo::new(
                ".time_nanos",
                Type::Text,
                "the time stamp, if seconds cannot represent it exactly",
            )
            .unit("nanoseconds since 1970")
            .optional(),
            given: |profile| {
                let mut times = profile.samples.times.iter();
                times.any(|(_, time)| recorded_time(*time).1.is_some())
            },
            write: |name, profile, sink| {
                let times = profile.samples.times.iter();
                let times = times.filter_map(|(s, time)| Some((*s, recorded_time(*time).1?)));
                formatted(sink, name, &mut spread(profile, times)?.into_iter())
            },
            read: |reading, data| read_times(reading, texts(data)),
        },
        WholeColumn {
            info: ColumnInfo::new(
                ".trace_id",
                Type::Text,
                "the trace during which it was recorded, as hexadecimal digits",
            )
            .optional(),
            given: |profile| !profile.samples.links.is_empty(),
            write: |name, profile, sink| write_link(name, profile, sink, |link| link.trace_id),
            read: |reading, data| {
                reading.pending.trace_ids = read_digits(reading, ".trace_id", data)?;
                Ok(())
            },
        },
        WholeColumn {
            info: ColumnInfo::new(
                ".span_id",
                Type::Text,
                "the span of that trace, as hexadecimal digits",
            )
            .optional(),
            given: |profile| !profile.samples.links.is_empty(),
            write: |name, profile, sink| write_link(name, profile, sink, |link| link.span_id),
            read: |reading, data| {
                let span_ids = read_digits(reading, ".span_id", data)?;
                let trace_ids = reading.pending.trace_ids.take();
                read_links(reading, trace_ids, span_ids)
            },
        },
    ],
};

impl Declared for SampleTable {
    fn info(&self) -> &TableInfo {
        &self.info
    }

    fn columns(&self) -> Box<dyn Iterator<Item = &ColumnInfo> + '_> {
        Box::new(self.columns.iter().map(|column| &column.info))
    }
}

impl Table for SampleTable {
    fn write(&self, profile: &Profile, _: Version, sink: &mut dyn Sink, _: Stop) -> Result<()> {
        let given = self.columns.iter().filter(|column| (column.given)(profile));
        sink.start(self.info.name, profile.samples.len())?;
        for column in given {
            (column.write)(column.info.name, profile, sink)?;
        }
        sink.finish()
    }

    fn read<'a>(
        &self,
        input: &dyn TableInput<'a>,
        reading: &mut Reading<'a>,
        _: Version,
        _: Stop,
    ) -> Result<()> {
        // The ids have been read.
        for column in &self.columns[1..] {
            if column.info.name == SOURCE {
                if let Some(Only::Integer(id)) = input.the_only(SOURCE)? {
                    let source = source_of(reading, 0, id)?;
                    let sources = &mut reading.profile.samples.source;
                    sources.try_fill(input.rows(), source)?;
                    continue;
                }
            }
            let data = find(input, self.info.name, &column.info)?;
            (column.read)(reading, data)?;
        }
        Ok(())
    }
}

fn source_of(reading: &Reading, row: usize, id: i32) -> Result<SourceId> {
    match reading.row_of(Key::Source, id) {
        Some(source) => next_row(source, "sources").map(SourceId),
        None => Err(unresolved("samples", SOURCE, row, id, Key::Source)),
    }
}

/// A column with the values of some samples.
fn spread<T: Copy>(
    profile: &Profile,
    values: impl Iterator<Item = (usize, T)>,
) -> Result<Vec<Option<T>>> {
    let mut column = filled(profile.samples.len(), None)?;
    for (sample, value) in values {
        column[sample] = Some(value);
    }
    Ok(column)
}

fn write_link(
    name: &'static str,
    profile: &Profile,
    sink: &mut dyn Sink,
    id: fn(&Link) -> StringId,
) -> Result<()> {
    let ids = profile.samples.links.iter();
    let ids = ids.map(|(sample, link)| (*sample, id(link)));
    let ids = ids.filter(|(_, id)| !profile.strings.get(*id).is_empty());
    strings(
        sink,
        name,
        &mut spread(profile, ids)?.into_iter(),
        &profile.strings,
    )
}

/// Reads time stamps: in nanoseconds if they agree with those in seconds, else in seconds.
fn read_times(reading: &mut Reading, nanos: Option<Text>) -> Result<()> {
    let nanos = nanos.unwrap_or_default();
    check_texts("samples", ".time_nanos", &nanos, &|text| {
        let is_wrong = |text| cells::decimal(text).is_none();
        text.is_some_and(is_wrong).then_some(cells::DECIMAL)
    })?;
    for (row, &timestamp) in reading.pending.timestamps.iter().enumerate() {
        if timestamp.is_nan() {
            continue;
        }
        // If the seconds were edited, they are used.
        let exact = nanos.get(row).and_then(cells::decimal);
        let exact = exact.filter(|&time| seconds(time) == timestamp);
        match exact.or_else(|| nanoseconds(timestamp)) {
            Some(time) => reading.profile.samples.times.try_push((row, time))?,
            None => {
                let rule = "must be seconds since 1970, up to the year 2262, or NA";
                return Err(invalid("samples", ".timestamp", row, rule));
            }
        }
    }
    Ok(())
}

/// The hexadecimal digits of each sample; `None` if the column is missing.
fn read_digits(
    reading: &mut Reading,
    column: &'static str,
    data: Option<Data>,
) -> Result<Option<Vec<Option<StringId>>>> {
    let Some(text) = texts(data) else {
        return Ok(None);
    };
    let mut ids = with_room(text.distinct.len())?;
    for (at, digits) in (0..).zip(&text.distinct) {
        let digits = cells::hex_digits(digits)?
            .ok_or_else(|| invalid("samples", column, text.first_row(at), HEX_DIGITS))?;
        ids.try_push(reading.profile.strings.intern(&digits)?)?;
    }
    let rows = text.rows.iter().map(|&row| ids.get(row as usize).copied());
    rows.try_vec().map(Some)
}

fn read_links(
    reading: &mut Reading,
    trace_ids: Option<Vec<Option<StringId>>>,
    span_ids: Option<Vec<Option<StringId>>>,
) -> Result<()> {
    let id_of = |ids: &Option<Vec<Option<StringId>>>, row| *ids.as_ref()?.get(row)?;
    let rows = trace_ids.as_ref().or(span_ids.as_ref()).map_or(0, Vec::len);
    for row in 0..rows {
        let (trace_id, span_id) = (id_of(&trace_ids, row), id_of(&span_ids, row));
        if trace_id.is_some() || span_id.is_some() {
            let link = Link {
                trace_id: trace_id.unwrap_or(EMPTY),
                span_id: span_id.unwrap_or(EMPTY),
            };
            reading.profile.samples.links.try_push((row, link))?;
        }
    }
    Ok(())
}
