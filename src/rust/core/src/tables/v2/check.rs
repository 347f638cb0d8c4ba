//! The rules of version "2.0".

use super::TablesV2;
use super::dotted::{self, Beside};
use super::origins::Owners;
use crate::error::{Error, Result};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::Values;
use crate::tables::checks::{self, dangling, invalid, not_empty};
use crate::tables::exact;
use crate::tables::ids::Ids;

const ROWS_PER_CHECK: usize = 1 << 20;

/// What the checks found on their way and the taking in needs.
pub struct Checked {
    pub sources: Ids,
    pub samples: Ids,
    pub functions: Ids,
    pub locations: Ids,
    pub beside: Beside,
    pub values: Vec<Values>,
    pub runs: Runs,
}

impl Checked {
    pub fn owners(&self) -> Owners<'_> {
        self.beside.owners(&self.sources, &self.locations)
    }
}

/// Which rows of `sample_locations` make the stack of each sample.
pub struct Runs {
    /// For each sample its first row and the one behind its last.
    pub of_sample: Vec<(usize, usize)>,
    /// The rows in the order (sample, depth), where the table is in another.
    pub order: Option<Vec<u32>>,
}

/// Every rule of version "2.0".
pub fn check_v2(tables: &TablesV2, stop: Stop) -> Result<()> {
    check(tables, stop).map(|_| ())
}

pub fn check(tables: &TablesV2, stop: Stop) -> Result<Checked> {
    checks::meta(&tables.meta, "2.0")?;
    let sources = Ids::new("sources", "source_id", tables.source_id)?;
    for row in 0..tables.source_id.len() {
        not_empty("sources", "source_type", &tables.source_type, row)?;
    }
    let samples = Ids::new("samples", "sample_id", tables.sample_id)?;
    for (row, &id) in tables.sample_source.iter().enumerate() {
        if sources.row(id).is_none() {
            return Err(dangling("samples", "source_id", row, id, "sources"));
        }
    }
    let functions = checks::functions(&tables.functions)?;
    let locations = checks::locations(&tables.locations, &functions)?;
    let values = values(tables, &samples)?;
    cancel::check(stop)?;
    let runs = runs(tables, &samples, &locations, stop)?;
    let beside = dotted::check(tables, &sources, &samples, &locations)?;
    Ok(Checked {
        sources,
        samples,
        functions,
        locations,
        beside,
        values,
        runs,
    })
}

/// One column for each type, with every value in its sample's row.
fn values(tables: &TablesV2, samples: &Ids) -> Result<Vec<Values>> {
    const TABLE: &str = "sample_values";
    let (types, units) = (&tables.value_type, &tables.value_unit);
    let count = tables.sample_id.len();
    let mut columns: Vec<Values> = Vec::new();
    let mut pairs: Vec<(i32, i32)> = Vec::new();
    let mut column = 0;
    for (row, &id) in tables.value_sample.iter().enumerate() {
        let Some(sample) = samples.row(id) else {
            return Err(dangling(TABLE, "sample_id", row, id, "samples"));
        };
        let pair = (types.rows[row], units.rows[row]);
        // Samples have their types in the same order, most often.
        column = if column + 1 < pairs.len() {
            column + 1
        } else {
            0
        };
        let found = match pairs.get(column) {
            Some(next) if *next == pair => Some(column),
            _ => pairs.iter().position(|p| *p == pair),
        };
        column = match found {
            Some(column) => column,
            None => {
                let name = not_empty(TABLE, "type", types, row)?;
                let Some(unit) = units.get(row) else {
                    return Err(invalid(TABLE, "unit", row, "must not be NA"));
                };
                columns.try_push(Values::absent(name, unit, count)?, "sample values")?;
                pairs.try_push(pair, "sample types")?;
                pairs.len() - 1
            }
        };
        let value = tables.value[row];
        if !value.is_finite() {
            return Err(invalid(TABLE, "value", row, "must be a finite number"));
        }
        let slot = &mut columns[column].column[sample];
        if !slot.is_nan() {
            return Err(twice(row, id, &columns[column]));
        }
        *slot = value;
        let exact = exact::decimal(TABLE, ".value_exact", tables.value_exact.as_ref(), row)?;
        if let Some(exact) = exact::of_double(exact, value) {
            columns[column].exact.try_push((sample, exact), TABLE)?;
        }
    }
    for column in &mut columns {
        column.exact.sort_unstable();
    }
    // The key is (sample, type): a type may come in two units only where no
    // sample has both.
    for (i, a) in columns.iter().enumerate() {
        for b in &columns[i + 1..] {
            if a.type_.name != b.type_.name {
                continue;
            }
            let both = |row: &usize| !a.column[*row].is_nan() && !b.column[*row].is_nan();
            if let Some(sample) = (0..count).find(both) {
                let id = tables.sample_id[sample];
                let of_b = |&row: &usize| {
                    tables.value_sample[row] == id
                        && units.get(row) == Some(b.type_.unit.as_str())
                        && types.get(row) == Some(b.type_.name.as_str())
                };
                let row = (0..tables.value.len()).find(of_b).unwrap_or(0);
                return Err(twice(row, id, b));
            }
        }
    }
    Ok(columns)
}

fn twice(row: usize, sample: i32, values: &Values) -> Error {
    invalid(
        "sample_values",
        "type",
        row,
        message!("sample {sample} has `{}` twice", values.type_.name),
    )
}

fn runs(tables: &TablesV2, samples: &Ids, locations: &Ids, stop: Stop) -> Result<Runs> {
    const TABLE: &str = "sample_locations";
    let (ids, depths) = (tables.frame_sample, tables.frame_depth);
    let mut of_sample = Vec::new();
    of_sample.try_fill(tables.sample_id.len(), (0, 0), "stacks")?;
    let mut sorted = true;
    let mut row = 0;
    let mut next_sample = 0;
    let mut next_check = ROWS_PER_CHECK;
    while row < ids.len() {
        let id = ids[row];
        let Some(sample) = samples.row(id) else {
            return Err(dangling(TABLE, "sample_id", row, id, "samples"));
        };
        sorted &= sample >= next_sample;
        next_sample = sample + 1;
        let start = row;
        let mut depth = 0;
        while row < ids.len() && ids[row] == id {
            if depths[row] < 1 {
                return Err(invalid(
                    TABLE,
                    "depth",
                    row,
                    "must be 1 (innermost) or more, and not NA",
                ));
            }
            sorted &= depths[row] > depth;
            depth = depths[row];
            let location = tables.frame_location[row];
            if locations.row(location).is_none() {
                return Err(dangling(TABLE, "location_id", row, location, "locations"));
            }
            row += 1;
        }
        of_sample[sample] = (start, row);
        if row > next_check {
            next_check = row + ROWS_PER_CHECK;
            cancel::check(stop)?;
        }
    }
    if sorted {
        return Ok(Runs {
            of_sample,
            order: None,
        });
    }
    sorted_runs(tables, samples, of_sample)
}

/// The slow way, for a table in another order than readers make.
fn sorted_runs(
    tables: &TablesV2,
    samples: &Ids,
    mut of_sample: Vec<(usize, usize)>,
) -> Result<Runs> {
    let (ids, depths) = (tables.frame_sample, tables.frame_depth);
    let mut order = Vec::new();
    order.try_extend_from(0..ids.len() as u32, "the order of a table")?;
    let key = |row: u32| {
        let row = row as usize;
        (samples.row(ids[row]), depths[row], row)
    };
    order.sort_unstable_by_key(|&row| key(row));
    of_sample.fill((0, 0));
    for (at, &row) in order.iter().enumerate() {
        let (sample, depth, row) = key(row);
        if let Some(&before) = at.checked_sub(1).and_then(|b| order.get(b)) {
            let (other, same_depth, _) = key(before);
            if other == sample && same_depth == depth {
                return Err(invalid(
                    "sample_locations",
                    "depth",
                    row,
                    message!("sample {} has depth {depth} twice", ids[row]),
                ));
            }
        }
        if let Some(run) = sample.and_then(|s| of_sample.get_mut(s)) {
            if run.1 == 0 {
                run.0 = at;
            }
            run.1 = at + 1;
        }
    }
    Ok(Runs {
        of_sample,
        order: Some(order),
    })
}
