//! The stacks of a file as lists of rows of `frames`, which may come later in the file.

use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::formats::json_file::Reader;
use crate::limits::memory::TryGrow;
use crate::message;
use crate::model::{LocationId, Profile, StackId};

#[derive(Default)]
pub struct RawStacks {
    /// Distinct lists, outermost frame first.
    lists: Interner<Lists<u32>>,
    /// The position at which each list occurred first.
    positions: Vec<u64>,
    /// The texts of lists, and the list of each: comparing a text takes a tenth of the time of parsing it.
    texts: Interner<Lists<u8>>,
    of_text: Vec<u32>,
    list: Vec<u32>,
}

impl RawStacks {
    /// The stack of a list of rows.
    pub fn intern(&mut self, list: &[u32], json: &mut Reader) -> Result<u32> {
        let known = self.lists.len();
        let row = self.lists.intern(list)?;
        if self.lists.len() > known {
            json.take(size_of_val(list) * 2)?;
            self.positions.try_push(json.position())?;
        }
        Ok(row)
    }

    /// The stack that is the next value.
    pub fn read(&mut self, json: &mut Reader) -> Result<u32> {
        let start = json.position();
        let Some(text) = json.numbers_as_text()? else {
            return Err(json.expected("an array of numbers"));
        };
        let known = self.texts.len();
        let row = self.texts.intern(text)?;
        if let Some(&stack) = self.of_text.get(row as usize) {
            return Ok(stack);
        }
        let text = self.texts.get(row);
        self.list.clear();
        let mut items = text.split(|&byte| byte == b',');
        let is_empty = text.trim_ascii().is_empty();
        while let Some(item) = items.next().filter(|_| !is_empty) {
            let item = std::str::from_utf8(item.trim_ascii());
            let Some(frame) = item.ok().and_then(|item| item.parse().ok()) else {
                return Err(json.error_at(start, message!("This stack is not a list of indices.")));
            };
            self.list.try_push(frame)?;
        }
        debug_assert!(known == self.of_text.len());
        let taken = text.len();
        json.take(taken)?;
        let list = std::mem::take(&mut self.list);
        let stack = self.intern(&list, json)?;
        self.list = list;
        self.of_text.try_push(stack)?;
        Ok(stack)
    }

    /// The number of frames of a stack.
    pub fn depth(&self, stack: u32) -> usize {
        self.lists.get(stack).len()
    }

    /// Adds the stacks to a profile, in which `frames` has the location of each row.
    pub fn resolve(
        &self,
        frames: &[LocationId],
        profile: &mut Profile,
        json: &Reader,
    ) -> Result<Vec<StackId>> {
        let mut stacks = Vec::new();
        let mut stack = Vec::new();
        for (list, &position) in self.lists.iter().zip(&self.positions) {
            stack.clear();
            for &row in list.iter().rev() {
                let Some(&location) = frames.get(row as usize) else {
                    return Err(json.error_at(
                        position,
                        message!(
                            "Frame index {row} is out of range ({} frames).",
                            frames.len()
                        ),
                    ));
                };
                stack.try_push(location)?;
            }
            let id = profile.stacks.intern(&stack)?;
            stacks.try_push(id)?;
        }
        Ok(stacks)
    }
}
