//! Stacks: one row for each list of locations, innermost first.
//!
//! Real profiles repeat their stacks (for example a million samples with thirteen thousand
//! stacks). Therefore a sample contains a [`StackId`], and stacks are processed once for each row
//! of this table.
//!
//! In an aggregated pprof file nine of ten stacks are distinct. Finding equal ones and decoding
//! all of them would take most of the time of reading, so these stacks stay encoded as in the
//! file ([`packed`]), and equal stacks may have several rows. Packed stacks are the first rows.
//! Code that has to know whether stacks are equal compares their locations.

use super::locations::LocationId;
use super::packed;
use crate::collections::{Interner, Lists, SharedLists, id, next_row};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, with_room};

id!(StackId, "stacks");

/// A table of lists of locations, in which equal lists can be found.
pub type LocationLists = Interner<SharedLists<LocationId>, StackId>;

#[derive(Debug, Default, Clone)]
pub struct Stacks {
    packed: SharedLists<u8>,
    lists: LocationLists,
}

impl Stacks {
    /// Creates the table from packed stacks of a profile with this number of locations. Returns
    /// `None` if a stack is invalid.
    pub fn from_packed(packed: Lists<u8>, locations: usize) -> Option<Stacks> {
        let ends = |list: &[u8]| list.last().is_none_or(|&byte| byte < 0x80);
        let is_valid = packed::are_valid(packed.items(), locations) && packed.iter().all(ends);
        is_valid.then(|| Stacks {
            packed: packed.into(),
            lists: LocationLists::default(),
        })
    }

    /// A table with these stacks, which are not copied. R's columns are computed from them (`model/frames.rs`).
    /// `intern()` does not find rows of the shared table.
    pub fn share(&self) -> Stacks {
        Stacks {
            packed: self.packed.clone(),
            lists: self.lists.share(),
        }
    }

    /// Some of these stacks, in this order.
    pub fn selected(&self, ids: &[StackId]) -> Result<Stacks> {
        let mut selected = Stacks::default();
        let mut space = Vec::new();
        for &id in ids {
            match self.get(id) {
                // Packed stacks come first.
                Stack::Packed(list) if self.lists.is_empty() => {
                    selected.packed.push(list)?;
                }
                stack => {
                    selected.push(stack.unpacked(&mut space)?)?;
                }
            }
        }
        Ok(selected)
    }

    /// Adds the stacks of another table, whose locations have new numbers here. Returns the new id of
    /// each. Lists of locations are interned; packed stacks are not, since most of them are distinct,
    /// and stay packed if possible.
    pub fn add_renumbered(
        &mut self,
        others: &Stacks,
        numbers: &Renumbering,
        stop: Stop,
    ) -> Result<Vec<StackId>> {
        let mut new = with_room(others.len())?;
        let mut space = Vec::new();
        let (mut old, mut stack) = (Vec::new(), Vec::new());
        for (row, id) in others.ids().enumerate() {
            cancel::at_row(row, stop)?;
            let own = others.get(id);
            let id = match (own, &numbers.codes) {
                // Packed stacks come first.
                (Stack::Packed(list), Some(codes)) if self.lists.is_empty() => {
                    let size = packed::renumber(list, codes, &mut space)?;
                    let id = next_row(self.packed.len(), "stacks").map(StackId)?;
                    self.packed.push(&space[..size])?;
                    id
                }
                _ => {
                    stack.clear();
                    for location in own.unpacked(&mut old)? {
                        stack.try_push(numbers.new[location.row()])?;
                    }
                    match own {
                        Stack::Packed(_) => self.push(&stack)?,
                        Stack::Locations(_) => self.intern(&stack)?,
                    }
                }
            };
            new.try_push(id)?;
        }
        Ok(new)
    }

    /// The number of packed stacks, and the locations of all other stacks in one list, with the end
    /// of each stack.
    pub fn parts(&self) -> (usize, &[LocationId], &[usize]) {
        let (locations, ends) = self.lists.parts();
        (self.packed.len(), locations, ends)
    }

    /// The memory that the stacks take, in bytes.
    pub fn bytes(&self) -> usize {
        let (_, locations, ends) = self.parts();
        let packed = self.packed.items().len() + size_of_val(self.packed.ends());
        packed + size_of_val(locations) + size_of_val(ends)
    }

    /// Returns the interned row that equals this stack, or adds one. Rows that are packed or were
    /// pushed are not found.
    pub fn intern(&mut self, stack: &[LocationId]) -> Result<StackId> {
        let row = self.lists.intern(stack)?;
        self.id(row)
    }

    /// Whether `intern()` finds an equal row.
    pub fn contains(&self, stack: &[LocationId]) -> bool {
        self.lists.find(stack).is_some()
    }

    /// Adds a stack without looking for an equal one.
    #[inline]
    pub fn push(&mut self, stack: &[LocationId]) -> Result<StackId> {
        let row = self.lists.push(stack)?;
        self.id(row)
    }

    #[inline]
    fn id(&self, row: StackId) -> Result<StackId> {
        next_row(self.packed.len() + row.row(), "stacks").map(StackId)
    }

    #[inline]
    pub fn get(&self, id: StackId) -> Stack<'_> {
        match id.0.checked_sub(self.packed.len() as u32) {
            None => Stack::Packed(self.packed.get(id.row())),
            Some(row) => Stack::Locations(self.lists.get(StackId(row))),
        }
    }

    pub fn len(&self) -> usize {
        self.packed.len() + self.lists.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = StackId> + use<> {
        (0..self.len() as u32).map(StackId)
    }
}

/// New numbers of locations.
pub struct Renumbering {
    /// The new location of each old row.
    new: Vec<LocationId>,
    /// The code of each new location in packed stacks, if all can be packed.
    codes: Option<Vec<u32>>,
}

impl Renumbering {
    /// `new`: the new row of each location; any row for locations that no stack has.
    pub fn new(new: Vec<LocationId>) -> Result<Renumbering> {
        let mut codes = with_room(new.len())?;
        for code in new.iter().map_while(|&location| packed::code(location)) {
            codes.try_push(code)?;
        }
        let codes = (codes.len() == new.len()).then_some(codes);
        Ok(Renumbering { new, codes })
    }
}

/// A stack in one of its two forms.
#[derive(Debug, Clone, Copy)]
pub enum Stack<'a> {
    Locations(&'a [LocationId]),
    /// Numbers of locations, counted from 1, as varints.
    Packed(&'a [u8]),
}

impl<'a> Stack<'a> {
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Stack::Locations(stack) => stack.len(),
            Stack::Packed(list) => packed::count(list),
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            Stack::Locations(stack) => stack.is_empty(),
            Stack::Packed(list) => list.is_empty(),
        }
    }

    pub fn first(self) -> Option<LocationId> {
        match self {
            Stack::Locations(stack) => stack.first().copied(),
            Stack::Packed(list) => packed::iter(list).next(),
        }
    }

    pub fn try_for_each(self, each: impl FnMut(LocationId) -> Result<()>) -> Result<()> {
        match self {
            Stack::Locations(stack) => stack.iter().copied().try_for_each(each),
            Stack::Packed(list) => packed::iter(list).try_for_each(each),
        }
    }

    /// Writes the rows of the locations to `out`, which has room for all.
    pub fn fill(self, out: &mut [u32]) {
        match self {
            Stack::Locations(stack) => stack.iter().zip(out).for_each(|(id, slot)| *slot = id.0),
            Stack::Packed(list) => packed::fill(list, out),
        }
    }

    /// The locations; a packed stack is decoded into `space`.
    #[inline]
    pub fn unpacked<'s>(self, space: &'s mut Vec<LocationId>) -> Result<&'s [LocationId]>
    where
        'a: 's,
    {
        match self {
            Stack::Locations(stack) => Ok(stack),
            Stack::Packed(list) => {
                space.clear();
                packed::append(list, space)?;
                Ok(space)
            }
        }
    }

    /// Appends the locations.
    pub fn append_to(self, out: &mut Vec<LocationId>) -> Result<()> {
        match self {
            Stack::Locations(stack) => out.try_extend(stack),
            Stack::Packed(list) => packed::append(list, out),
        }
    }

    pub fn to_vec(self) -> Result<Vec<LocationId>> {
        let mut all = Vec::new();
        self.append_to(&mut all)?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_get_new_numbers() {
        let mut packed = Lists::default();
        for list in [&[1, 2][..], &[], &[2]] {
            packed.push(list).unwrap();
        }
        let mut old = Stacks::from_packed(packed, 2).unwrap();
        old.push(&[LocationId(1), LocationId(0)]).unwrap();
        old.push(&[LocationId(1), LocationId(0)]).unwrap();
        // The last one is too great for packed stacks.
        for first in [0, 199, 5_000_000] {
            let numbers = Renumbering::new(vec![LocationId(first), LocationId(7)]).unwrap();
            let mut new = Stacks::default();
            for _ in 0..2 {
                let ids = new.add_renumbered(&old, &numbers, &|| false).unwrap();
                let lists: Vec<_> = ids
                    .iter()
                    .map(|&id| new.get(id).to_vec().unwrap())
                    .collect();
                let [one, other] = [LocationId(first), LocationId(7)];
                let back = vec![other, one];
                assert_eq!(
                    lists,
                    [vec![one, other], vec![], vec![other], back.clone(), back]
                );
                // Equal lists of locations are interned.
                assert_eq!(ids[3], ids[4]);
            }
            assert_eq!(new.parts().0, if first < 1 << 21 { 3 } else { 0 });
        }
    }

    #[test]
    fn packed_stacks_come_before_others() {
        let mut packed = Lists::default();
        for list in [&[1, 0x80, 1][..], &[], &[2]] {
            packed.push(list).unwrap();
        }
        assert!(Stacks::from_packed(packed.clone(), 127).is_none());
        let mut stacks = Stacks::from_packed(packed, 128).unwrap();
        let two = [LocationId(1)];
        assert_eq!(stacks.intern(&two).unwrap(), StackId(3));
        assert_eq!(stacks.intern(&two).unwrap(), StackId(3));
        assert_eq!(stacks.push(&two).unwrap(), StackId(4));
        let all = stacks.ids().map(|id| stacks.get(id).to_vec().unwrap());
        let expected = [&[LocationId(0), LocationId(127)][..], &[], &two, &two, &two];
        assert_eq!(all.collect::<Vec<_>>(), expected);
        let lengths = stacks.ids().map(|id| stacks.get(id).len());
        assert_eq!(lengths.collect::<Vec<_>>(), [2, 0, 1, 1, 1]);
        assert!(stacks.get(StackId(1)).is_empty());
        assert_eq!(stacks.get(StackId(2)).first(), Some(LocationId(1)));
    }

    #[test]
    fn a_list_ends_with_a_whole_number() {
        let mut packed = Lists::default();
        packed.push(&[0x81]).unwrap();
        packed.push(&[1]).unwrap();
        assert!(Stacks::from_packed(packed, 500).is_none());
    }
}
