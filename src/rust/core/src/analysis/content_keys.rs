//! Keys of the content of rows, with which a database recognises rows that it already contains, and by which the tables
//! of a data set refer to each other.
//!
//! A key is a hash of the cells of a row, independent of the order of columns. A missing value adds nothing to the
//! hash, so a column that another profile lacks makes no difference. The key of a row that refers to another row
//! includes the key of that row, and the key of a set of rows, such as a stack, is computed from its rows in their
//! order. Equal keys therefore mean equal content, in every profile and every version of this package. Keys are
//! stored in databases, so the way in which they are computed must never change. They are the first half of SHA-256,
//! so nobody can create two rows with the same key.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, filled, owned, with_room};
use crate::schema::NA;
use data_encoding::BASE64URL_NOPAD;
use hmac_sha256::Hash;

/// The number of bytes of a key.
const SIZE: usize = 16;
/// The number of characters of a key as text.
const LENGTH: usize = 22;

/// A column, by the type of its cells.
#[derive(Debug)]
pub enum Cells<'a> {
    Integers(&'a [i32]),
    Numbers(&'a [f64]),
    Texts(Vec<Option<&'a str>>),
    /// Rows of another table, counted from 1, and the keys of its rows.
    Rows(&'a [i32], Vec<&'a str>),
}

impl Cells<'_> {
    /// Adds a cell with the name of its column. Whole numbers are the same in columns of either type.
    fn add_to(&self, name: &str, row: usize, hash: &mut Hash) {
        match self {
            Cells::Integers(cells) => {
                if let Some(&cell) = cells.get(row).filter(|cell| **cell != NA) {
                    add(hash, name, b'n', &f64::from(cell).to_le_bytes());
                }
            }
            Cells::Numbers(cells) => {
                if let Some(&cell) = cells.get(row).filter(|cell| !cell.is_nan()) {
                    // Negative zero is equal to zero.
                    add(hash, name, b'n', &(cell + 0.0).to_le_bytes());
                }
            }
            Cells::Texts(cells) => {
                if let Some(&Some(cell)) = cells.get(row) {
                    add(hash, name, b't', cell.as_bytes());
                }
            }
            Cells::Rows(cells, keys) => {
                let other = cells.get(row).and_then(|&cell| usize::try_from(cell).ok());
                if let Some(key) = other.and_then(|other| keys.get(other.checked_sub(1)?)) {
                    add(hash, name, b'r', key.as_bytes());
                }
            }
        }
    }
}

/// Names and texts are preceded by their lengths, so that different lists of cells never have the same bytes.
fn add(hash: &mut Hash, name: &str, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    for part in [name.as_bytes(), bytes] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
}

/// The keys of the `count` rows of a table. If there are `sets`, which contain for each row the number of its set,
/// counted from 1: the keys of `count` sets of rows.
pub fn content_keys(
    columns: &mut [(&str, Cells)],
    sets: Option<&[i32]>,
    count: usize,
    stop: Stop,
) -> Result<Vec<String>> {
    columns.sort_unstable_by_key(|(name, _)| *name);
    let sets = sets.map(|sets| rows_of_sets(sets, count)).transpose()?;
    let mut keys = with_room(count)?;
    let mut start = 0;
    for number in 0..count {
        cancel::at_row(number, stop)?;
        let mut hash = Hash::new();
        match &sets {
            None => add_row(columns, number, &mut hash),
            Some((order, ends)) => {
                let end = ends.get(number).copied().unwrap_or(start);
                for &row in order.get(start..end).unwrap_or_default() {
                    add_row(columns, row as usize, &mut hash);
                }
                start = end;
            }
        }
        keys.try_push(key(hash)?)?;
    }
    Ok(keys)
}

/// The key of what was added to a hash.
pub(super) fn key(hash: Hash) -> Result<String> {
    let mut key = [0; LENGTH];
    let digest = hash.finalize();
    BASE64URL_NOPAD.encode_mut(digest.get(..SIZE).unwrap_or_default(), &mut key);
    owned(std::str::from_utf8(&key).unwrap_or_default())
}

fn add_row(columns: &[(&str, Cells)], row: usize, hash: &mut Hash) {
    for (name, cells) in columns {
        cells.add_to(name, row, hash);
    }
    // Marks the end of the row; no cell type has this letter.
    hash.update([b'.']);
}

/// The rows in the order of their sets, and where each set ends.
fn rows_of_sets(sets: &[i32], count: usize) -> Result<(Vec<u32>, Vec<usize>)> {
    let number = |set: i32| {
        usize::try_from(set)
            .ok()?
            .checked_sub(1)
            .filter(|&n| n < count)
    };
    let mut ends = filled(count, 0_usize)?;
    for set in sets.iter().filter_map(|&set| number(set)) {
        if let Some(size) = ends.get_mut(set) {
            *size += 1;
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        // The start of the set for now. It is advanced with each row of the set, up to its end.
        (*end, sum) = (sum, sum + *end);
    }
    let mut order = filled(sum, 0_u32)?;
    for (row, &set) in sets.iter().enumerate() {
        let Some(position) = number(set).and_then(|set| ends.get_mut(set)) else {
            continue;
        };
        if let Some(slot) = order.get_mut(*position) {
            *slot = row as u32;
        }
        *position += 1;
    }
    Ok((order, ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(columns: Vec<(&str, Cells)>, sets: Option<&[i32]>, count: usize) -> Vec<String> {
        let mut columns = columns;
        content_keys(&mut columns, sets, count, &|| false).unwrap()
    }

    fn texts<'a>(texts: &[&'a str]) -> Cells<'a> {
        Cells::Texts(
            texts
                .iter()
                .map(|text| Some(*text).filter(|text| *text != "NA"))
                .collect(),
        )
    }

    /// The keys are stored in databases of users. Python's `hashlib` computes the same ones.
    #[test]
    fn keys_never_change() {
        let columns = || {
            vec![
                ("name", texts(&["f", "g", "NA"])),
                ("line", Cells::Integers(&[1, NA, 3])),
                ("location_id", Cells::Rows(&[1, 2, NA], vec!["a", "b"])),
            ]
        };
        assert_eq!(
            keys(columns(), None, 3),
            [
                "cq9rMRpKeOkRJC3NOWdGyg",
                "ouh-JWvN2voU_jWCSde7xw",
                "BZG5DrntVOAyzggWdbwc6Q"
            ]
        );
        assert_eq!(
            keys(columns(), Some(&[2, 2, 1]), 3),
            [
                "BZG5DrntVOAyzggWdbwc6Q",
                "3TX83QDPFSx247DBX9Q83w",
                "47DEQpj8HBSa-_TImW-5JA"
            ]
        );
    }

    #[test]
    fn columns_in_another_order_and_without_values_make_no_difference() {
        let one = keys(
            vec![("a", texts(&["x"])), ("b", Cells::Integers(&[1]))],
            None,
            1,
        );
        let none = ("c", Cells::Numbers(&[f64::NAN]));
        let other = keys(
            vec![none, ("b", Cells::Numbers(&[1.0])), ("a", texts(&["x"]))],
            None,
            1,
        );
        assert_eq!(one, other);
    }

    #[test]
    fn other_content_has_other_keys() {
        let all = [
            keys(vec![("a", texts(&["x"]))], None, 1),
            keys(vec![("b", texts(&["x"]))], None, 1),
            keys(vec![("a", texts(&["y"]))], None, 1),
            keys(vec![("a", texts(&[""]))], None, 1),
            keys(vec![("a", texts(&["NA"]))], None, 1),
            keys(vec![("a", texts(&["1"]))], None, 1),
            keys(vec![("a", Cells::Integers(&[1]))], None, 1),
            keys(vec![("a", Cells::Integers(&[-1]))], None, 1),
            keys(vec![("a", Cells::Rows(&[1], vec!["x"]))], None, 1),
            keys(vec![("ax", texts(&[""]))], None, 1),
            // Sets of two rows, in both orders, of one row, and of none.
            keys(vec![("a", texts(&["x", "y"]))], Some(&[1, 1]), 1),
            keys(vec![("a", texts(&["y", "x"]))], Some(&[1, 1]), 1),
            keys(vec![("a", texts(&["xy"]))], Some(&[1]), 1),
            keys(vec![("a", texts(&["x"]))], Some(&[2]), 1),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_set_has_the_key_of_its_rows_wherever_they_are() {
        let together = keys(vec![("a", texts(&["x", "y", "z"]))], Some(&[1, 1, 2]), 2);
        let apart = keys(vec![("a", texts(&["x", "z", "y"]))], Some(&[1, 2, 1]), 2);
        assert_eq!(together, apart);
        assert_eq!(keys(vec![("a", texts(&["z"]))], None, 1)[0], together[1]);
        // Rows with an invalid set number are ignored.
        let columns = vec![("a", texts(&["z", "x", "y"]))];
        assert_eq!(keys(columns, Some(&[1, 5, NA]), 1)[0], together[1]);
    }
}
