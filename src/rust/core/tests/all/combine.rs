//! Tests combining and compacting tables of real files, without R.

use crate::common::{go_on, tables};
use crate::memory_tables::{MemoryColumn, MemoryTables};
use profile_core::analysis::combine::{Combined, combine};
use profile_core::analysis::compact::rows_in_use;
use profile_core::formats::{self, Input};
use profile_core::io::input::Origin;
use profile_core::schema::Key;
use std::path::Path;

fn read(path: &str) -> MemoryTables {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/testthat/data");
    let path = data.join(path);
    let (profile, _) = formats::read(Input::File(&path), None, Origin::default(), &go_on).unwrap();
    tables(&profile)
}

fn combined<'a>(profiles: &[&'a MemoryTables]) -> (MemoryTables, Combined<'a>) {
    let inputs: Vec<_> = profiles.iter().map(|x| x.inputs()).collect();
    let lists: Vec<_> = inputs
        .iter()
        .map(|inputs| MemoryTables::list(inputs))
        .collect();
    let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
    let mut out = MemoryTables::default();
    let combined = combine(&lists, &[], false, &mut out, &go_on).unwrap();
    (out, combined)
}

fn rows(tables: &MemoryTables, table: &str, column: &str) -> usize {
    match tables.get(table).unwrap().column(column).unwrap() {
        MemoryColumn::Integers(values) => values.len(),
        _ => panic!("{table}${column} holds no integers"),
    }
}

#[test]
fn a_profile_twice_has_its_samples_twice_and_its_functions_once() {
    let x = read("otlp/fleet.pb");
    let (alone, _) = combined(&[&x]);
    let (both, combined) = combined(&[&x, &x]);
    for (table, column, times) in [
        ("sources", "source_id", 2),
        ("samples", "sample_id", 2),
        (".scopes", "scope_id", 2),
        ("functions", "function_id", 1),
        ("locations", "location_id", 1),
    ] {
        let (before, after) = (rows(&alone, table, column), rows(&both, table, column));
        assert_eq!(after, times * before, "{table}");
    }
    let kept: Vec<_> = combined.kept.iter().map(|(table, _)| *table).collect();
    assert!(kept.contains(&"functions") && !kept.contains(&"samples"));
    let ids = combined.new_ids().unwrap();
    let (_, ids) = ids.iter().find(|(key, _)| *key == Key::Function).unwrap();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn what_is_in_use_stays_as_it_is() {
    let x = read("otlp/fleet.pb");
    let inputs = x.inputs();
    let list = MemoryTables::list(&inputs);
    assert_eq!(rows_in_use(&list, &go_on).unwrap(), []);
    // A profile without samples uses none of its other rows.
    let list: Vec<_> = list
        .into_iter()
        .filter(|(name, _)| *name != "samples")
        .collect();
    let left = rows_in_use(&list, &go_on).unwrap();
    for table in [
        "sources",
        "sample_values",
        "sample_locations",
        "locations",
        "functions",
    ] {
        let rows = left.iter().find(|(name, _)| *name == table);
        assert_eq!(rows.map(|(_, rows)| rows.len()), Some(0), "{table}");
    }
}
