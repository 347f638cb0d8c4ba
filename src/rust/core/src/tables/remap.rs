//! Replaces ids by new ones.

use crate::error::Result;
use crate::limits::cancel::{self, ROWS, Stop};
use crate::schema::{Ids, Key, NA};

/// A column of ids, and the new id for each id of its table.
#[derive(Debug, Clone, Copy)]
pub struct Renamed<'a> {
    pub column: &'a [i32],
    /// The ids of the table, without duplicates.
    pub from: &'a [i32],
    pub to: &'a [i32],
}

/// Fills `out`, which is as long as all columns together, with the new ids, one column
/// after the other. Ids that the table of `key` does not contain become NA.
pub fn remap(columns: &[Renamed], key: Key, out: &mut [i32], stop: Stop) -> Result<()> {
    let mut rest = out;
    for renamed in columns {
        let ids = Ids::new(key.table(), key.name(), renamed.from)?;
        let (own, left) = rest.split_at_mut(renamed.column.len().min(rest.len()));
        rest = left;
        for (slots, old) in own.chunks_mut(ROWS).zip(renamed.column.chunks(ROWS)) {
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
        remap(&columns, Key::Sample, &mut out, &|| false).unwrap();
        assert_eq!(out, [20, 10, 20, NA, 2, 1, NA]);
    }

    #[test]
    fn duplicate_ids_are_refused() {
        let columns = [Renamed {
            column: &[],
            from: &[1, 1],
            to: &[1, 2],
        }];
        assert!(remap(&columns, Key::Sample, &mut [], &|| false).is_err());
    }
}
