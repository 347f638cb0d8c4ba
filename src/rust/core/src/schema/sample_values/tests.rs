//! Columns whose rows are all the same, or 1, 2, 3, …, are read without their data: with the same
//! result as from their data.

use super::*;
use crate::schema::NA;
use crate::schema::input::Data;
use crate::schema::memory::{MemoryColumn, MemoryTable};
use crate::schema::samples::SAMPLES;

/// A table that does not tell what its rows have in common.
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

/// Three rows, of which that at `other.0` is other than the rest.
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
                samples.set("source_id", source_ids).unwrap();
                let mut values = ids("sample_id", sample_ids);
                for (name, column) in [
                    ("type", texts(rows(Some(type_), (other, Some("b"))))),
                    ("unit", texts(rows(unit, (other, Some("count"))))),
                    ("value", MemoryColumn::Doubles(rows(number, (other, 0.0)))),
                ] {
                    values.set(name, column).unwrap();
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
