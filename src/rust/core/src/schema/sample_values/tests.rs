//! Columns whose rows are all the same, or 1, 2, 3, …, are read without their data. These tests
//! check that the result is the same as with their data.

use super::*;
use crate::schema::NA;
use crate::schema::input::Data;
use crate::schema::memory_tables::{MemoryColumn, MemoryTable};
use crate::schema::samples::SAMPLES;

/// A table that does not report regularities of its columns, so that their data are read.
struct Silent<'a>(&'a MemoryTable);

impl<'a> TableInput<'a> for Silent<'a> {
    fn is_not_a_table(&self) -> Option<&str> {
        None
    }

    fn rows(&self) -> usize {
        self.0.rows
    }

    fn names(&self) -> &[&'a str] {
        &self.0.names
    }

    fn column(
        &self,
        table: &'static str,
        name: &'static str,
        type_: Type,
    ) -> Result<Option<Data<'a>>> {
        TableInput::column(&self.0, table, name, type_)
    }
}

/// The sources and the values of samples, or the error.
fn read<'a>(
    sources: &dyn TableInput<'a>,
    samples: &dyn TableInput<'a>,
    values: &dyn TableInput<'a>,
) -> String {
    let mut reading = Reading::new().unwrap();
    let result = reading
        .read_ids(Key::Source, sources)
        .and_then(|()| reading.read_ids(Key::Sample, samples))
        .and_then(|()| SAMPLES.read(samples, &mut reading, Version::Two, &|| false))
        .and_then(|()| SAMPLE_VALUES.read(values, &mut reading, Version::Two, &|| false));
    if let Err(error) = result {
        return error.to_string();
    }
    let sources: Vec<_> = reading.profile.samples.source.iter().collect();
    let values = reading.profile.values.iter();
    let values = values.map(|v| (&v.type_, v.column.iter().collect::<Vec<_>>(), &v.exact));
    format!("{sources:?} {:?}", values.collect::<Vec<_>>())
}

fn ids(name: &'static str, ids: &[i32]) -> MemoryTable {
    let ids = MemoryColumn::Integers(ids.to_vec());
    MemoryTable::new("", vec![name], vec![ids])
}

/// Three rows: `other.1` at row `other.0`, and `rest` in all other rows.
fn rows<T: Copy>(rest: T, other: (usize, T)) -> Vec<T> {
    (0..3)
        .map(|row| if row == other.0 { other.1 } else { rest })
        .collect()
}

fn texts(texts: Vec<Option<&str>>) -> MemoryColumn {
    MemoryColumn::Texts(texts.iter().map(|text| text.map(String::from)).collect())
}

#[test]
fn what_rows_have_in_common_makes_no_difference() {
    let sources = ids("source_id", &[7, 8]);
    let numbers = [1.0, -0.0, 0.0, f64::NAN, f64::INFINITY];
    let types = [("samples", Some("count")), ("", Some("")), ("a", None)];
    let all_ids = [&[1, 2, 3][..], &[3, 2, 1], &[1, 1, 2], &[1, 2, 4], &[1, 2]];
    let mut valid = 0;
    for other in [3, 0, 2] {
        for (source, sample_ids) in [7, 8, 9, NA]
            .into_iter()
            .flat_map(|id| all_ids.map(|ids| (id, ids)))
        {
            for (number, (type_, unit)) in numbers.into_iter().flat_map(|n| types.map(|t| (n, t))) {
                let mut samples = ids("sample_id", &[1, 2, 3]);
                let source_ids = MemoryColumn::Integers(rows(source, (other, 8)));
                samples.set("source_id", source_ids);
                let mut values = ids("sample_id", sample_ids);
                for (name, column) in [
                    ("type", texts(rows(Some(type_), (other, Some("b"))))),
                    ("unit", texts(rows(unit, (other, Some("count"))))),
                    ("value", MemoryColumn::Doubles(rows(number, (other, 0.0)))),
                ] {
                    values.set(name, column);
                }
                let result = read(&&sources, &&samples, &&values);
                let expected = read(&Silent(&sources), &Silent(&samples), &Silent(&values));
                assert_eq!(result, expected);
                valid += usize::from(result.starts_with('['));
            }
        }
    }
    assert!(valid > 10);
}

/// Two samples with three values each, in which one cell is changed.
#[test]
fn regular_tables_make_no_difference() {
    let sources = ids("source_id", &[7]);
    let mut samples = ids("sample_id", &[1, 2]);
    let source_ids = MemoryColumn::Integers(vec![7, 7]);
    samples.set("source_id", source_ids);
    let sample_ids = [1, 1, 1, 2, 2, 2];
    let types = ["a", "b", "c"].repeat(2);
    let types: Vec<Option<&str>> = types.into_iter().map(Some).collect();
    let units = ["count", "bytes", "count"].repeat(2);
    let units: Vec<Option<&str>> = units.into_iter().map(Some).collect();
    let numbers = [1.0, 20.0, 300.0, 1.0, 50.0, 600.0];
    let regular = [
        ("sample_id", MemoryColumn::Integers(sample_ids.to_vec())),
        ("type", texts(types.clone())),
        ("unit", texts(units.clone())),
        ("value", MemoryColumn::Doubles(numbers.to_vec())),
    ];
    let table = |columns: &[(&'static str, MemoryColumn)]| {
        let names = columns.iter().map(|(name, _)| *name).collect();
        let columns = columns.iter().map(|(_, column)| column.clone()).collect();
        MemoryTable::new("", names, columns)
    };
    let check = |values: &MemoryTable| {
        let result = read(&&sources, &&samples, &values);
        let expected = read(&Silent(&sources), &Silent(&samples), &Silent(values));
        assert_eq!(result, expected);
        result.starts_with('[')
    };
    let whole = table(&regular);
    assert!(check(&whole));
    let mut reading = Reading::new().unwrap();
    reading.read_ids(Key::Sample, &&samples).unwrap();
    let values = read_regular(&&whole, &reading).unwrap().unwrap();
    assert_eq!(values.len(), 3);
    let mut valid = 0;
    for row in 0..6 {
        let mut changed = Vec::new();
        for id in [1, 2, 3, NA] {
            let mut ids = sample_ids;
            ids[row] = id;
            changed.push(("sample_id", MemoryColumn::Integers(ids.to_vec())));
        }
        for text in [None, Some(""), Some("a"), Some("count"), Some("new")] {
            for (name, all) in [("type", &types), ("unit", &units)] {
                let mut all = all.clone();
                all[row] = text;
                changed.push((name, texts(all.clone())));
                // The same in both samples.
                all[(row + 3) % 6] = text;
                changed.push((name, texts(all)));
            }
        }
        for number in [1.0, -0.0, f64::NAN, f64::INFINITY] {
            let mut numbers = numbers;
            numbers[row] = number;
            changed.push(("value", MemoryColumn::Doubles(numbers.to_vec())));
        }
        for (name, column) in changed {
            let mut values = whole.clone();
            values.set(name, column);
            valid += usize::from(check(&values));
        }
        // Any other number of rows.
        let fewer = regular.iter().map(|(name, column)| match column {
            MemoryColumn::Integers(ids) => (*name, MemoryColumn::Integers(ids[..row].to_vec())),
            MemoryColumn::Doubles(all) => (*name, MemoryColumn::Doubles(all[..row].to_vec())),
            MemoryColumn::Texts(all) => (*name, MemoryColumn::Texts(all[..row].to_vec())),
            other => (*name, other.clone()),
        });
        valid += usize::from(check(&table(&fewer.collect::<Vec<_>>())));
    }
    assert!(valid > 50, "{valid}");
    for number in [0.0, -0.0, 2.5, f64::NAN] {
        let mut values = whole.clone();
        values.set("value", MemoryColumn::Doubles(vec![number; 6]));
        check(&values);
    }
    let mut values = whole.clone();
    let exact = vec![None, None, None, None, None, Some("9007199254740993")];
    values.set(".value_exact", texts(exact));
    check(&values);
}
