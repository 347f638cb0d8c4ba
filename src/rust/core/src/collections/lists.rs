//! Lists of different lengths that are stored one after the other in one buffer, so that one
//! allocation serves all of them.

use crate::error::Result;
use crate::limits::memory::{TryGrow, TryText, copied, filled};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The offset in the buffer at which each list ends.
#[derive(Debug, Default, Clone)]
struct Ends(Vec<usize>);

impl Ends {
    #[inline]
    fn range(&self, row: usize) -> Range<usize> {
        let start = if row == 0 { 0 } else { self.0[row - 1] };
        start..self.0[row]
    }
}

#[derive(Debug, Clone)]
pub struct Lists<T> {
    items: Vec<T>,
    ends: Ends,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists {
            items: Vec::new(),
            ends: Ends::default(),
        }
    }
}

impl<T: Copy> Lists<T> {
    /// Adds a list.
    #[inline]
    pub fn push(&mut self, list: &[T]) -> Result<()> {
        self.items.try_extend(list)?;
        self.close()
    }

    /// Adds an item to the current list, which [`close()`](Lists::close) completes.
    pub fn push_item(&mut self, item: T) -> Result<()> {
        self.items.try_push(item)
    }

    /// Completes the current list: the items that were added since the last one.
    #[inline]
    pub fn close(&mut self) -> Result<()> {
        self.ends.0.try_push(self.items.len())
    }

    #[inline]
    pub fn get(&self, row: usize) -> &[T] {
        &self.items[self.ends.range(row)]
    }

    /// The items of all lists.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The end of each list in the items.
    pub fn ends(&self) -> &[usize] {
        &self.ends.0
    }

    pub fn len(&self) -> usize {
        self.ends.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.len()).map(|row| self.get(row))
    }
}

/// Lists that several owners share without copying them. An owner that adds a list while
/// there are others gets its own copy first.
#[derive(Debug)]
pub struct SharedLists<T>(Arc<Lists<T>>);

impl<T> Default for SharedLists<T> {
    fn default() -> Self {
        SharedLists(Arc::default())
    }
}

impl<T> Clone for SharedLists<T> {
    fn clone(&self) -> Self {
        SharedLists(Arc::clone(&self.0))
    }
}

impl<T> From<Lists<T>> for SharedLists<T> {
    fn from(lists: Lists<T>) -> Self {
        SharedLists(Arc::new(lists))
    }
}

impl<T> Deref for SharedLists<T> {
    type Target = Lists<T>;

    #[inline]
    fn deref(&self) -> &Lists<T> {
        &self.0
    }
}

impl<T: Copy> SharedLists<T> {
    /// Adds a list.
    #[inline]
    pub fn push(&mut self, list: &[T]) -> Result<()> {
        if let Some(lists) = Arc::get_mut(&mut self.0) {
            return lists.push(list);
        }
        let mut own = Lists {
            items: copied(&self.0.items)?,
            ends: Ends(copied(&self.0.ends.0)?),
        };
        own.push(list)?;
        self.0 = Arc::new(own);
        Ok(())
    }
}

impl Lists<u32> {
    /// For each of `count` groups the list of its members, in order. `group_of` yields the group of
    /// each member.
    pub fn grouped(
        count: usize,
        group_of: impl ExactSizeIterator<Item = usize> + Clone,
    ) -> Result<Lists<u32>> {
        let mut items = filled(group_of.len(), 0)?;
        let mut ends = filled(count, 0)?;
        for group in group_of.clone() {
            ends[group] += 1;
        }
        // Converts sizes to starts. Filling a list then moves its start to its end.
        let mut end = 0;
        for slot in &mut ends {
            end += *slot;
            *slot = end - *slot;
        }
        for (member, group) in (0..).zip(group_of) {
            items[ends[group]] = member;
            ends[group] += 1;
        }
        let ends = Ends(ends);
        Ok(Lists { items, ends })
    }
}

/// Texts, stored one after the other in one buffer.
#[derive(Debug, Default, Clone)]
pub struct TextList {
    text: String,
    ends: Ends,
}

impl TextList {
    pub fn push(&mut self, text: &str) -> Result<()> {
        self.text.try_push_str(text)?;
        self.ends.0.try_push(self.text.len())
    }

    pub fn get(&self, row: usize) -> &str {
        &self.text[self.ends.range(row)]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.0.len()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_returned_as_they_were_added() {
        let mut lists = Lists::default();
        for list in [&[1, 2][..], &[], &[3]] {
            lists.push(list).unwrap();
        }
        lists.push_item(4).unwrap();
        lists.push_item(5).unwrap();
        lists.close().unwrap();
        let all: Vec<&[i32]> = lists.iter().collect();
        assert_eq!(all, [&[1, 2][..], &[], &[3], &[4, 5]]);
        assert_eq!(lists.items(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn whoever_adds_to_shared_lists_leaves_those_of_others() {
        let mut one = SharedLists::default();
        one.push(&[1, 2]).unwrap();
        let mut other = one.clone();
        assert_eq!(one.items().as_ptr(), other.items().as_ptr());
        other.push(&[3]).unwrap();
        assert_eq!((one.len(), other.len()), (1, 2));
        assert_eq!(one.ends(), [2]);
        assert_eq!(other.items(), [1, 2, 3]);
    }

    #[test]
    fn groups_keep_the_order_of_their_members() {
        let lists = Lists::grouped(4, [2, 0, 2, 3, 0].into_iter()).unwrap();
        let all: Vec<&[u32]> = lists.iter().collect();
        assert_eq!(all, [&[1, 4][..], &[], &[0, 2], &[3]]);
    }
}
