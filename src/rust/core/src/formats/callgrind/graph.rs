//! The graph of calls: self values of lines of functions, and values of calls.

use crate::analysis::frame_names::FrameNames;
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryText, filled, with_room};
use crate::model::{FunctionId, LocationId, Profile, StringId};

/// The sums of the samples of one stack: first the number of samples, then the value of each event.
pub type Sums<'s> = &'s [i128];

/// The place that values belong to: a line of a function, or a call from that line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Row of `names`.
    pub function: u32,
    /// One more than the row of the function that is called; 0 for self values, which come first.
    callee: u32,
    /// 0 if it is unknown.
    pub line: i32,
}

impl Place {
    /// The function that is called.
    pub fn callee(&self) -> Option<u32> {
        self.callee.checked_sub(1)
    }
}

#[derive(Default)]
pub struct Graph {
    pub names: Interner<TextList>,
    /// The file of each function; `None` if it is unknown.
    pub files: Vec<Option<StringId>>,
    /// The first line of each function; 0 if it is unknown.
    pub starts: Vec<i64>,
    places: Interner<Vec<Place>>,
    /// For each place a sum for each event.
    sums: Vec<i128>,
    /// The number of sums of a place.
    width: usize,
    /// The number of names that were changed.
    pub changed: usize,
    /// The number of functions with several files, of which only one is written.
    pub left_out: usize,
    /// By location.
    function_of: Vec<u32>,
    line_of: Vec<i32>,
    /// By function: the last stack in which it was found.
    found_in: Vec<usize>,
}

impl Graph {
    /// The graph of stacks with these sums, `width` for each.
    pub fn new(profile: &Profile, by_stack: &[i128], width: usize, stop: Stop) -> Result<Graph> {
        let mut graph = Graph {
            width,
            ..Graph::default()
        };
        graph.add_functions(profile)?;
        graph.choose_files(profile, by_stack, stop)?;
        graph.found_in = filled(graph.names.len(), usize::MAX)?;
        let mut space = Vec::new();
        for (stack, sums) in profile.stacks.ids().zip(by_stack.chunks_exact(width)) {
            cancel::at_row(stack.row(), stop)?;
            if sums.iter().any(|sum| *sum != 0) {
                let frames = profile.stacks.get(stack).unpacked(&mut space)?;
                graph.add(stack.row(), frames, sums)?;
            }
        }
        Ok(graph)
    }

    /// Places in the order in which they are written, with their sums.
    pub fn places(&self) -> Result<Vec<(Place, Sums<'_>)>> {
        let all = self.places.iter().copied();
        let mut all = all.zip(self.sums.chunks_exact(self.width)).try_vec()?;
        all.sort_unstable_by_key(|(place, _)| *place);
        Ok(all)
    }

    /// Assigns functions to locations, by their names.
    fn add_functions(&mut self, profile: &Profile) -> Result<()> {
        let names = FrameNames::new(profile)?;
        let mut of_name = with_room(names.count())?;
        let mut text = String::new();
        for row in 0..names.count() as u32 {
            text.clear();
            let name = names.get(row);
            for c in name.chars() {
                text.try_push_char(if c.is_control() { ' ' } else { c })?;
            }
            self.changed += usize::from(text != name);
            let name = match text.as_str() {
                // A number without a name would refer to a name that was written before.
                "" => "<Anonymous>",
                name => name,
            };
            of_name.try_push(self.names.intern(name)?)?;
        }
        for location in profile.locations.ids() {
            let function = of_name[names.row(location) as usize];
            self.function_of.try_push(function)?;
        }
        Ok(())
    }

    /// Chooses a file for each function: the one with the largest sum of the first event. Lines in other
    /// files become 0.
    fn choose_files(&mut self, profile: &Profile, by_stack: &[i128], stop: Stop) -> Result<()> {
        let mut sums = filled(profile.functions.len(), 0_i128)?;
        let mut space = Vec::new();
        for (stack, values) in profile.stacks.ids().zip(by_stack.chunks_exact(self.width)) {
            cancel::at_row(stack.row(), stop)?;
            let value = values.get(1).copied().unwrap_or(0);
            if value == 0 {
                continue;
            }
            for location in profile.stacks.get(stack).unpacked(&mut space)? {
                if let Some(id) = profile.locations.get(*location).function {
                    sums[id.row()] += value;
                }
            }
        }
        // For each name the function with the largest sum among those with a file.
        let mut best: Vec<Option<FunctionId>> = filled(self.names.len(), None)?;
        let mut several = filled(self.names.len(), false)?;
        let has_file = |id: FunctionId| {
            !profile
                .strings
                .get(profile.functions.get(id).filename)
                .is_empty()
        };
        for (row, location) in profile.locations.iter().enumerate() {
            let Some(id) = location.function.filter(|id| has_file(*id)) else {
                continue;
            };
            let name = self.function_of[row] as usize;
            let file = |id| profile.functions.get(id).filename;
            best[name] = match best[name] {
                Some(other) => {
                    several[name] |= file(other) != file(id) && sums[id.row()] != 0;
                    let is_better = sums[id.row()] > sums[other.row()];
                    Some(if is_better { id } else { other })
                }
                None => Some(id),
            };
        }
        self.left_out = several.iter().filter(|several| **several).count();
        for best in &best {
            let function = best.map(|id| profile.functions.get(id));
            self.files.try_push(function.map(|f| f.filename))?;
            let start = function.map_or(0, |f| f.start_line.max(0));
            self.starts.try_push(start)?;
        }
        for (row, location) in profile.locations.iter().enumerate() {
            let file = location
                .function
                .map(|id| profile.functions.get(id).filename);
            let is_written = file == self.files[self.function_of[row] as usize];
            let line = if is_written { location.line_for_r() } else { 0 };
            self.line_of.try_push(line)?;
        }
        Ok(())
    }

    /// Adds a stack, innermost frame first.
    fn add(&mut self, stack: usize, frames: &[LocationId], sums: Sums) -> Result<()> {
        let mut callee = 0;
        for location in frames {
            let function = self.function_of[location.row()];
            let found_in = &mut self.found_in[function as usize];
            if std::mem::replace(found_in, stack) == stack {
                continue;
            }
            let place = Place {
                function,
                callee,
                line: self.line_of[location.row()],
            };
            callee = function + 1;
            let row = self.places.intern(place)? as usize * self.width;
            self.sums.try_fill(self.places.len() * self.width, 0)?;
            for (sum, value) in self.sums[row..].iter_mut().zip(sums) {
                *sum += value;
            }
        }
        Ok(())
    }
}
