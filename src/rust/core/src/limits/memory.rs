//! Memory allocation that can fail.
//!
//! Rust's collections abort the process, and R with it, if memory runs out. Collections whose size
//! depends on the input therefore grow through the functions in this file, which return
//! [`Error::Memory`]. `clippy.toml` lists the methods that may abort, so that clippy rejects them.

use crate::error::{Error, Result};
use crate::message::GrowingText;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, TryReserveError};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::io::{self, Write};

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Error {
        Error::Memory
    }
}

impl From<hashbrown::TryReserveError> for Error {
    fn from(_: hashbrown::TryReserveError) -> Error {
        Error::Memory
    }
}

pub trait TryGrow<T> {
    /// Appends one element.
    fn try_push(&mut self, value: T) -> Result<()>;
    /// Appends a slice.
    fn try_extend(&mut self, values: &[T]) -> Result<()>
    where
        T: Copy;
    /// Appends the elements of an iterator of known length.
    fn try_extend_from(&mut self, values: impl ExactSizeIterator<Item = T>) -> Result<()>;
    /// Grows to `len` elements, all new ones equal to `value`.
    fn try_fill(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Clone;
}

#[expect(clippy::disallowed_methods, reason = "there is room for what is added")]
impl<T> TryGrow<T> for Vec<T> {
    #[inline]
    fn try_push(&mut self, value: T) -> Result<()> {
        if self.len() == self.capacity() {
            self.try_reserve(1)?;
        }
        self.push(value);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, values: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.try_reserve(values.len())?;
        self.extend_from_slice(values);
        Ok(())
    }

    fn try_extend_from(&mut self, values: impl ExactSizeIterator<Item = T>) -> Result<()> {
        self.try_reserve(values.len())?;
        self.extend(values);
        Ok(())
    }

    fn try_fill(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Clone,
    {
        let more = len.saturating_sub(self.len());
        self.try_reserve(more)?;
        self.resize(self.len() + more, value);
        Ok(())
    }
}

/// An empty vector with room for `len` elements.
pub fn with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(len)?;
    Ok(all)
}

/// A vector of `len` equal elements.
pub fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut all = with_room(len)?;
    all.try_fill(len, value)?;
    Ok(all)
}

/// A vector with a copy of the elements of a slice.
pub fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut all = with_room(values.len())?;
    all.try_extend(values)?;
    Ok(all)
}

pub trait TryCollect: Iterator + Sized {
    /// All elements as a vector.
    fn try_vec(self) -> Result<Vec<Self::Item>> {
        let mut all = with_room(self.size_hint().0)?;
        for value in self {
            all.try_push(value)?;
        }
        Ok(all)
    }

    /// All elements as a vector, or the first error among them.
    fn try_vec_of<T>(self) -> Result<Vec<T>>
    where
        Self: Iterator<Item = Result<T>>,
    {
        let mut all = with_room(self.size_hint().0)?;
        for value in self {
            all.try_push(value?)?;
        }
        Ok(all)
    }
}

impl<I: Iterator> TryCollect for I {}

/// Adds to a map.
pub trait TryPut<K, V> {
    /// Returns the previous value.
    fn try_put(&mut self, key: K, value: V) -> Result<Option<V>>;
}

#[expect(clippy::disallowed_methods, reason = "there is room for what is added")]
impl<K: Eq + Hash, V, S: BuildHasher> TryPut<K, V> for HashMap<K, V, S> {
    #[inline]
    fn try_put(&mut self, key: K, value: V) -> Result<Option<V>> {
        self.try_reserve(1)?;
        Ok(self.insert(key, value))
    }
}

/// Adds to a set.
pub trait TryAdd<T> {
    /// Returns whether the value is new.
    fn try_add(&mut self, value: T) -> Result<bool>;
}

#[expect(clippy::disallowed_methods, reason = "there is room for what is added")]
impl<T: Eq + Hash, S: BuildHasher> TryAdd<T> for HashSet<T, S> {
    #[inline]
    fn try_add(&mut self, value: T) -> Result<bool> {
        self.try_reserve(1)?;
        Ok(self.insert(value))
    }
}

pub trait TryText {
    fn try_push_str(&mut self, text: &str) -> Result<()>;
    fn try_push_char(&mut self, c: char) -> Result<()>;
    /// Appends the text of `format_args!()`.
    fn try_write(&mut self, text: fmt::Arguments) -> Result<()>;
}

#[expect(clippy::disallowed_methods, reason = "there is room for what is added")]
impl TryText for String {
    #[inline]
    fn try_push_str(&mut self, text: &str) -> Result<()> {
        self.try_reserve(text.len())?;
        self.push_str(text);
        Ok(())
    }

    #[inline]
    fn try_push_char(&mut self, c: char) -> Result<()> {
        self.try_reserve(c.len_utf8())?;
        self.push(c);
        Ok(())
    }

    fn try_write(&mut self, text: fmt::Arguments) -> Result<()> {
        // None of our implementations of `Display` fails, so the reason of an error is memory.
        fmt::write(&mut GrowingText(self), text).map_err(|_| Error::Memory)
    }
}

/// A copy of a text.
pub fn owned(text: &str) -> Result<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len())?;
    copy.try_push_str(text)?;
    Ok(copy)
}

/// The text of `format_args!()`, like `format!()`.
pub fn written(text: fmt::Arguments) -> Result<String> {
    let mut all = String::new();
    all.try_write(text)?;
    Ok(all)
}

/// Checks that there is memory for code of other crates that would abort otherwise.
pub fn ensure(bytes: usize) -> Result<()> {
    with_room::<u8>(bytes).map(drop)
}

/// Checks that there is memory for a tree of JSON text of this length. An element of an array takes at least two bytes
/// of JSON, and its node up to 128 times as many.
pub fn ensure_tree(json: usize) -> Result<()> {
    ensure(json.saturating_mul(128))
}

/// Sorts elements; those with equal keys keep their order. Only rows are sorted, and then elements are moved: Rust's own
/// stable sort is 8 KB of code for each type of elements.
pub fn sort_by_key<T, K: Ord>(values: &mut [T], mut key: impl FnMut(&T) -> K) -> Result<()> {
    if values.is_sorted_by_key(&mut key) {
        return Ok(());
    }
    let mut compare = |a: usize, b: usize| key(&values[a]).cmp(&key(&values[b]));
    let mut rows = sorted_rows(values.len(), &mut compare)?;
    for first in 0..rows.len() {
        let mut to = first;
        loop {
            let from = std::mem::replace(&mut rows[to], to);
            if from == first {
                break;
            }
            values.swap(to, from);
            to = from;
        }
    }
    Ok(())
}

fn sorted_rows(
    count: usize,
    compare: &mut dyn FnMut(usize, usize) -> Ordering,
) -> Result<Vec<usize>> {
    let mut rows = (0..count).try_vec()?;
    rows.sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
    Ok(rows)
}

/// Writes to a vector; a lack of memory is an I/O error.
pub struct Growing<'m>(pub &'m mut Vec<u8>);

impl Write for Growing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.try_extend(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More memory than any computer has, in bytes.
    const ALL: usize = usize::MAX / 4;

    #[test]
    fn a_lack_of_memory_is_an_error() {
        let is_error = |result| matches!(result, Err(Error::Memory));
        assert!(is_error(with_room::<u8>(ALL).map(drop)));
        assert!(is_error(filled(ALL, 0_u8).map(drop)));
        assert!(is_error(Vec::new().try_fill(ALL, 0_u8)));
        assert!(is_error((0..ALL).try_vec().map(drop)));
        assert!(is_error((0..ALL).map(Ok).try_vec_of().map(drop)));
        assert!(is_error(ensure(ALL)));
        assert!(is_error(ensure_tree(usize::MAX / 2)));
    }

    #[test]
    fn equal_keys_keep_their_order() {
        for count in 0..40_usize {
            for step in [1, 7, 11] {
                let keys = (0..count).map(|i| (i * step % 13, i));
                let mut sorted: Vec<_> = keys.collect();
                sort_by_key(&mut sorted, |&(key, _)| key).unwrap();
                assert!(sorted.is_sorted(), "{sorted:?}");
                let mut rows: Vec<_> = sorted.iter().map(|&(_, row)| row).collect();
                rows.sort();
                assert!(rows.into_iter().eq(0..count));
            }
        }
    }
}
