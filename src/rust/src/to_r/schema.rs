//! Converts the schema to R objects: prototypes of the tables, and descriptions of all tables, columns, known
//! sample types and formats.

use crate::arena::{Arena, RObject};
use crate::tibble::{NA, Tibble};
use profile_core::error::Result;
use profile_core::formats::{FORMATS, Format};
use profile_core::limits::memory::{TryCollect, TryGrow};
use profile_core::model::HeapFrame;
use profile_core::model::heap::{NOT_R, SNAPSHOT};
use profile_core::model::known_types::KNOWN_TYPES;
use profile_core::model::titled::TITLED;
use profile_core::schema::{ColumnInfo, Key, TABLES, TABLES_V1, TableInfo, Type};

/// A table and its columns.
type Entry = (&'static TableInfo, Vec<&'static ColumnInfo>);

/// `list(version1, required, optional, tables, columns, keys, sample_types, snapshot, heap_frames, not_r, titled,
/// formats, file_names)`: prototypes of the tables: of version "1.0", of version "2.0" with the required columns, and of version
/// "2.0" with the optional columns; descriptions of all tables and columns; the table of each key; the known sample types;
/// the type of sources that are heap snapshots, the types of their frames, and the root of what is not R's heap; the
/// functions whose calls have a title; the formats, and the names of their files.
pub fn schema(arena: Arena<'_>) -> Result<RObject<'_>> {
    let entries = TABLES_V1.iter().map(|t| entry(t.info(), t.columns()));
    let version1 = entries.try_vec_of()?;
    let entries = TABLES.iter().map(|t| entry(t.info(), t.columns()));
    let version2 = entries.try_vec_of()?;
    let required = |table: &TableInfo, column: &ColumnInfo| table.required() && column.required;
    arena.list(&[
        ("version1", prototypes(arena, &version1, |_, c| c.required)?),
        ("required", prototypes(arena, &version2, required)?),
        (
            "optional",
            prototypes(arena, &version2, |t, c| !required(t, c))?,
        ),
        ("tables", tables(arena, &version2)?),
        ("columns", columns(arena, &version2)?),
        ("keys", keys(arena)?),
        ("sample_types", sample_types(arena)?),
        ("snapshot", arena.text(SNAPSHOT.as_str())?),
        ("heap_frames", heap_frames(arena)?),
        ("not_r", arena.text(NOT_R.text())?),
        ("titled", titled(arena)?),
        ("formats", formats(arena)?),
        ("file_names", file_names(arena)?),
    ])
}

fn entry(
    info: &'static TableInfo,
    columns: impl Iterator<Item = &'static ColumnInfo>,
) -> Result<Entry> {
    Ok((info, columns.try_vec()?))
}

/// Tables without rows, with the selected columns. Tables without such columns are omitted.
fn prototypes<'call>(
    arena: Arena<'call>,
    entries: &[Entry],
    is_selected: impl Fn(&TableInfo, &ColumnInfo) -> bool,
) -> Result<RObject<'call>> {
    let mut tables = Vec::new();
    for (table, columns) in entries {
        let columns = columns.iter().filter(|column| is_selected(table, column));
        let columns = columns.try_vec()?;
        if columns.is_empty() {
            continue;
        }
        let mut tibble = Tibble::new(arena, 0)?;
        for column in columns {
            match column.type_ {
                Type::Integer => tibble.integers(column.name, [])?,
                Type::Double => tibble.doubles(column.name, [])?,
                Type::Text => tibble.texts(column.name, [])?,
                Type::Logical => tibble.logicals(column.name, [])?,
                Type::Stacks => tibble.stack_tibbles(column.name, &[], &[], &[])?,
            }
        }
        tables.try_push((table.name, tibble.finish()?))?;
    }
    arena.list(&tables)
}

fn tables<'call>(arena: Arena<'call>, entries: &[Entry]) -> Result<RObject<'call>> {
    let infos = || entries.iter().map(|(table, _)| table);
    let mut tibble = Tibble::new(arena, entries.len())?;
    tibble.texts("table", infos().map(|t| Some(t.name)))?;
    tibble.texts("doc", infos().map(|t| Some(t.doc)))?;
    tibble.logicals("required", infos().map(|t| Some(t.required())))?;
    tibble.logicals("merged", infos().map(|t| Some(t.merged)))?;
    tibble.texts("attributes", infos().map(|t| t.attributes))?;
    tibble.texts("used_by_table", infos().map(|t| Some(t.used_by?.0)))?;
    tibble.texts("used_by_column", infos().map(|t| Some(t.used_by?.1)))?;
    tibble.finish()
}

fn columns<'call>(arena: Arena<'call>, entries: &[Entry]) -> Result<RObject<'call>> {
    let mut rows = Vec::new();
    for (table, columns) in entries {
        for column in columns {
            rows.try_push((*table, *column))?;
        }
    }
    let all = || rows.iter();
    let mut tibble = Tibble::new(arena, rows.len())?;
    tibble.texts("table", all().map(|(t, _)| Some(t.name)))?;
    tibble.texts("column", all().map(|(_, c)| Some(c.name)))?;
    tibble.texts("type", all().map(|(_, c)| Some(c.type_.name())))?;
    tibble.logicals("required", all().map(|(_, c)| Some(c.required)))?;
    // The position of the column in the primary key.
    tibble.integers(
        "key",
        all().map(|(t, c)| {
            let at = t.key.iter().position(|key| *key == c.name);
            at.map_or(NA, |at| at as i32 + 1)
        }),
    )?;
    tibble.texts(
        "refers_to",
        all().map(|(_, c)| c.refers_to().map(Key::table)),
    )?;
    tibble.texts("unit", all().map(|(_, c)| c.unit))?;
    tibble.texts("doc", all().map(|(_, c)| Some(c.doc)))?;
    tibble.finish()
}

fn keys(arena: Arena<'_>) -> Result<RObject<'_>> {
    let mut tibble = Tibble::new(arena, Key::ALL.len())?;
    tibble.texts("column", Key::ALL.map(|key| Some(key.name())))?;
    tibble.texts("table", Key::ALL.map(|key| Some(key.table())))?;
    tibble.finish()
}

fn sample_types(arena: Arena<'_>) -> Result<RObject<'_>> {
    let all = || KNOWN_TYPES.iter();
    let mut tibble = Tibble::new(arena, KNOWN_TYPES.len())?;
    tibble.texts("type", all().map(|known| Some(known.name)))?;
    tibble.texts("unit", all().map(|known| Some(known.unit)))?;
    tibble.texts("role", all().map(|known| Some(known.role.name())))?;
    tibble.logicals("summable", all().map(|known| Some(known.is_summable())))?;
    tibble.logicals("recorded", all().map(|known| Some(known.is_recorded())))?;
    tibble.texts("doc", all().map(|known| Some(known.doc)))?;
    tibble.finish()
}

/// The package and the name of each function whose calls have a title.
fn titled(arena: Arena<'_>) -> Result<RObject<'_>> {
    arena.list(&[
        (
            "package",
            arena.texts(&TITLED.map(|titled| titled.package))?,
        ),
        (
            "function",
            arena.texts(&TITLED.map(|titled| titled.function))?,
        ),
    ])
}

/// The types of frames of heap snapshots.
fn heap_frames(arena: Arena<'_>) -> Result<RObject<'_>> {
    let all = HeapFrame::ALL;
    let mut tibble = Tibble::new(arena, all.len())?;
    tibble.texts("frame_type", all.map(|frame| Some(frame.name())))?;
    tibble.texts("doc", all.map(|frame| Some(frame.doc())))?;
    tibble.finish()
}

fn all_formats() -> impl Iterator<Item = &'static Format> + Clone {
    FORMATS.iter().copied()
}

fn formats(arena: Arena<'_>) -> Result<RObject<'_>> {
    let all = all_formats;
    let mut tibble = Tibble::new(arena, all().count())?;
    tibble.texts("format", all().map(|format| Some(format.name)))?;
    tibble.texts("title", all().map(|format| Some(format.title)))?;
    tibble.texts("reader", all().map(|format| format.r_reader))?;
    tibble.texts("writer", all().map(|format| format.r_writer))?;
    tibble.finish()
}

/// A row for each pattern of names of files that are written.
fn file_names(arena: Arena<'_>) -> Result<RObject<'_>> {
    let names = |format: &'static Format| format.file_names.iter().map(move |name| (*name, format));
    let all = || all_formats().flat_map(names);
    let mut tibble = Tibble::new(arena, all().count())?;
    tibble.texts("name", all().map(|(name, _)| Some(name)))?;
    tibble.texts("writer", all().map(|(_, format)| format.r_writer))?;
    tibble.logicals(
        "compressed",
        all().map(|(_, format)| Some(format.may_be_compressed)),
    )?;
    tibble.finish()
}
