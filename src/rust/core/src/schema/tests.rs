//! Checks that a new column requires only one entry: adds a column to a table that exists only in
//! this test.

use super::columns::columns;
use super::key::Key;
use super::memory_tables::{MemoryColumn, MemoryTable, MemoryTables};
use super::reading::EMPTY;
use super::row_table::RowTable;
use super::table::{Declared, Table, TableInfo, Version};
use super::{Reading, TABLES, TABLES_V1};
use crate::error::Error;
use crate::model::{Mapping, Profile};
use std::borrow::Cow;
use std::collections::HashSet;

static PAGES: RowTable<Mapping> = RowTable {
    info: TableInfo {
        key: &["mapping_id"],
        ..TableInfo::new(".mappings", "pages of a mapping")
    },
    columns: columns! {
        (p, m: Mapping, m: Mapping)
        Key "mapping_id" () "its id";
        Reference ".scope_id" Scope(usize::try_from(m.start).ok(), |row| m.start = row as u64) "who mapped it";
        // The new column.
        Hexadecimal ".page_size" (Some(m.offset).filter(|&size| size > 0), |size| m.offset = size)
            "the size of its pages" .unit("bytes").optional();
    },
    rows: |profile| Ok(Cow::Borrowed(&profile.mappings)),
    blank: || Mapping::of_file(EMPTY, EMPTY),
    rules: &[],
    store: |reading, rows| {
        reading.profile.mappings = rows;
        Ok(())
    },
};

fn profile(sizes: &[u64]) -> Profile {
    let mut profile = Profile::default();
    for &offset in sizes {
        let blank = (PAGES.blank)();
        profile.add_mapping(Mapping { offset, ..blank }).unwrap();
    }
    profile
}

fn written(profile: &Profile) -> MemoryTable {
    let mut tables = MemoryTables::default();
    PAGES
        .write(profile, Version::Two, &mut tables, &|| false)
        .unwrap();
    tables.tables.remove(0)
}

fn read(table: &MemoryTable) -> Result<Profile, Error> {
    let scopes = MemoryTable::new(
        ".scopes",
        vec!["scope_id"],
        vec![MemoryColumn::Integers(vec![1])],
    );
    let mut reading = Reading::new()?;
    reading.read_ids(Key::Scope, &&scopes)?;
    reading.read_ids(Key::Mapping, &table)?;
    PAGES.read(&table, &mut reading, Version::Two, &|| false)?;
    Ok(reading.profile)
}

#[test]
fn a_new_column_is_written_where_it_says_something() {
    let table = written(&profile(&[0, 4096]));
    assert_eq!(table.names, ["mapping_id", ".scope_id", ".page_size"]);
    let sizes = vec![None, Some("0x1000".into())];
    assert_eq!(
        table.column(".page_size"),
        Some(&MemoryColumn::Texts(sizes))
    );
    assert_eq!(written(&profile(&[0, 0])).column(".page_size"), None);
}

#[test]
fn a_new_column_is_read_back() {
    let table = written(&profile(&[0, 4096]));
    let sizes: Vec<u64> = read(&table)
        .unwrap()
        .mappings
        .iter()
        .map(|m| m.offset)
        .collect();
    assert_eq!(sizes, [0, 4096]);
    let without = written(&profile(&[0]));
    assert_eq!(read(&without).unwrap().mappings[0].offset, 0);
}

#[test]
fn a_new_column_is_checked() {
    let message = |name, column| {
        let mut table = written(&profile(&[0, 4096]));
        table.set(name, column);
        read(&table).unwrap_err().to_string()
    };
    let texts = |texts: [&str; 2]| MemoryColumn::Texts(texts.map(|t| Some(t.into())).into());
    assert_eq!(
        message(".page_size", MemoryColumn::Integers(vec![1, 2])),
        "Table `.mappings`, column `.page_size`: must be character, not integer."
    );
    assert_eq!(
        message(".page_size", texts(["0x1", "4096"])),
        "Table `.mappings`, column `.page_size`, row 2: \
         must be \"0x\" and hexadecimal digits, below 2^64, or NA."
    );
    assert_eq!(
        message(".scope_id", MemoryColumn::Integers(vec![1, 7])),
        "Table `.mappings`, column `.scope_id`, row 2: 7 is not in table `.scopes`."
    );
    assert_eq!(
        message("mapping_id", MemoryColumn::Integers(vec![3, 3])),
        "Table `.mappings`, column `mapping_id`, row 2: duplicate id 3."
    );
    assert_eq!(
        message(".page_size", MemoryColumn::Texts(vec![None])),
        "Table `.mappings`, column `.page_size` has 1 rows, but the first column has 2."
    );
    let mut table = written(&profile(&[0, 4096]));
    table.names[1] = "other";
    assert_eq!(
        read(&table).unwrap_err().to_string(),
        "Table `.mappings`, column `.scope_id` is missing."
    );
}

#[test]
fn a_new_column_is_documented() {
    let info = PAGES.columns().last().unwrap();
    assert_eq!((info.name, info.type_.name()), (".page_size", "character"));
    assert_eq!(info.unit, Some("bytes"));
    assert_eq!(info.doc, "the size of its pages");
    assert!(!info.required);
    let scope = PAGES.columns().nth(1).unwrap();
    assert_eq!(scope.refers_to(), Some(Key::Scope));
}

#[test]
fn tables_and_columns_follow_the_rules_of_names() {
    let mut tables = HashSet::new();
    for table in TABLES {
        let info = table.info();
        assert!(tables.insert(info.name), "{} twice", info.name);
        assert!(!info.doc.is_empty());
        let mut columns = HashSet::new();
        for column in table.columns() {
            let name = column.name;
            assert!(columns.insert(name), "{name} twice");
            assert!(!column.doc.is_empty(), "{name}");
            let dotted = name.starts_with('.');
            assert!(!dotted || !column.required, "{name}");
            assert!(!info.required() || dotted != column.required, "{name}");
        }
        assert!(
            info.key.iter().all(|key| columns.contains(key)),
            "{}",
            info.name
        );
    }
    for table in TABLES {
        let info = table.info();
        for name in info
            .attributes
            .into_iter()
            .chain(info.used_by.map(|(table, _)| table))
        {
            assert!(tables.contains(name), "{name}");
        }
    }
    for key in Key::ALL {
        let table = super::table(key.table()).unwrap();
        assert_eq!(table.info().key, [key.name()]);
        assert_eq!(table.columns().next().unwrap().name, key.name());
    }
    assert!(
        TABLES_V1
            .iter()
            .all(|table| table.columns().all(|c| !c.doc.is_empty()))
    );
}
