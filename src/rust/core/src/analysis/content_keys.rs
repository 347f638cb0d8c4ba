//! Keys of the content of rows, by which the tables of a store refer to each other.
//!
//! A key is a hash of the cells of a row, independent of the order of columns. A missing value adds nothing to the
//! hash, so a column that another profile lacks makes no difference. The key of a list of rows, such as a stack, is
//! computed from their keys in their order. Equal keys therefore mean equal content, in every profile and every version
//! of this package. Stores contain keys, so the way in which they are computed must never change. They are the first half
//! of SHA-256, so nobody can create two rows with the same key. Databases use the first 53 bits: equal keys of different
//! rows are unlikely there, but somebody who wants to can create them.

use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, owned, with_room};
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

/// The keys of the `count` rows of a table.
pub fn content_keys(
    columns: &mut [(&str, Cells)],
    count: usize,
    stop: Stop,
) -> Result<Vec<String>> {
    columns.sort_unstable_by_key(|(name, _)| *name);
    let mut keys = with_room(count)?;
    for row in 0..count {
        cancel::at_row(row, stop)?;
        let mut hash = Hash::new();
        for (name, cells) in &*columns {
            cells.add_to(name, row, &mut hash);
        }
        // Marks the end of the row; no cell type has this letter.
        hash.update([b'.']);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut columns: Vec<(&str, Cells)>, count: usize) -> Vec<String> {
        content_keys(&mut columns, count, &|| false).unwrap()
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
        let columns = vec![
            ("name", texts(&["f", "g", "NA"])),
            ("line", Cells::Integers(&[1, NA, 3])),
        ];
        assert_eq!(
            keys(columns, 3),
            [
                "1YXVTgcc8S79OPNN6MQhxA",
                "f5mwKQcVjUDSaJZ9X-B0iw",
                "BZG5DrntVOAyzggWdbwc6Q"
            ]
        );
    }

    #[test]
    fn columns_in_another_order_and_without_values_make_no_difference() {
        let one = keys(vec![("a", texts(&["x"])), ("b", Cells::Integers(&[1]))], 1);
        let none = ("c", Cells::Numbers(&[f64::NAN]));
        let other = keys(
            vec![none, ("b", Cells::Numbers(&[1.0])), ("a", texts(&["x"]))],
            1,
        );
        assert_eq!(one, other);
    }

    #[test]
    fn other_content_has_other_keys() {
        let all = [
            keys(vec![("a", texts(&["x"]))], 1),
            keys(vec![("b", texts(&["x"]))], 1),
            keys(vec![("a", texts(&["y"]))], 1),
            keys(vec![("a", texts(&[""]))], 1),
            keys(vec![("a", texts(&["NA"]))], 1),
            keys(vec![("a", texts(&["1"]))], 1),
            keys(vec![("a", Cells::Integers(&[1]))], 1),
            keys(vec![("a", Cells::Integers(&[-1]))], 1),
            keys(vec![("ax", texts(&[""]))], 1),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
