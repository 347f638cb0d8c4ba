//! Other names for ids.

use super::ids::Ids;
use super::{NA, Table};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};

const ROWS_PER_CHECK: usize = 1 << 20;

/// A column of ids, and for each id that its table has the new one.
#[derive(Debug, Clone, Copy)]
pub struct Renamed<'a> {
    pub column: &'a [i32],
    /// The ids of the table, none of them twice.
    pub from: &'a [i32],
    pub to: &'a [i32],
}

/// Fills `out`, which is as long as all columns, with the new ids, one column
/// after the other. What `table`, whose first column is its key, does not have
/// becomes NA.
pub fn remap(columns: &[Renamed], table: &Table, out: &mut [i32], stop: Stop) -> Result<()> {
    let key = table.columns.first().map_or("", |column| column.name);
    let mut rest = out;
    for renamed in columns {
        let ids = Ids::new(table.name, key, renamed.from)?;
        let (own, left) = rest.split_at_mut(renamed.column.len().min(rest.len()));
        rest = left;
        for (slots, old) in own
            .chunks_mut(ROWS_PER_CHECK)
            .zip(renamed.column.chunks(ROWS_PER_CHECK))
        {
            cancel::check(stop)?;
            for (slot, &id) in slots.iter_mut().zip(old) {
                let row = ids.row(id);
                *slot = row.and_then(|row| renamed.to.get(row)).map_or(NA, |&id| id);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::V2;

    #[test]
    fn columns_follow_each_other_under_their_new_ids() {
        let columns = [
            Renamed {
                column: &[2, 1, 2, NA],
                from: &[1, 2],
                to: &[10, 20],
            },
            Renamed {
                column: &[1_000_000, 7, 8],
                from: &[7, 1_000_000],
                to: &[1, 2],
            },
        ];
        let mut out = [0; 7];
        remap(&columns, &V2[2], &mut out, &|| false).unwrap();
        assert_eq!(out, [20, 10, 20, NA, 2, 1, NA]);
    }

    #[test]
    fn an_id_that_is_there_twice_is_refused() {
        let columns = [Renamed {
            column: &[],
            from: &[1, 1],
            to: &[1, 2],
        }];
        assert!(remap(&columns, &V2[2], &mut [], &|| false).is_err());
    }
}
