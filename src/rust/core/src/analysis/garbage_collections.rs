//! Garbage collections of R, which profilers show as a frame `<GC>` below the function that was allocating.
//!
//! A collection takes time, but allocates nothing. If a sample in a collection reports allocated memory, its caller has
//! allocated it, before the collection began. So allocations of this frame and of its callees are attributed to the
//! caller.

use super::frame_names::FrameNames;
use crate::model::known_types::{Role, known_type};
use crate::model::{LocationId, Values};

pub const COLLECTION: &str = "<GC>";

/// Finds collections in stacks.
pub struct Collections<'p> {
    names: &'p FrameNames,
    /// The row of the name, `None` to find nothing.
    row: Option<u32>,
}

impl<'p> Collections<'p> {
    /// For the sums of these values: finds nothing unless they are allocations.
    pub fn among(names: &'p FrameNames, values: &[Option<&Values>]) -> Collections<'p> {
        let is_needed = values.iter().any(|values| is_allocation(*values));
        Collections {
            names,
            row: is_needed.then(|| names.find(COLLECTION)).flatten(),
        }
    }

    /// The frames of a stack, innermost first, to which its allocations belong. A stack that begins with a collection
    /// keeps it.
    #[inline]
    pub fn allocating<'f>(&self, frames: &'f [LocationId]) -> &'f [LocationId] {
        let (Some(row), [called @ .., _]) = (self.row, frames) else {
            return frames;
        };
        let outermost = called
            .iter()
            .rposition(|frame| self.names.row(*frame) == row);
        outermost.map_or(frames, |at| &frames[at + 1..])
    }
}

/// Whether values are memory, objects or copies that were made since the previous sample.
pub fn is_allocation(values: Option<&Values>) -> bool {
    let type_ = values.map(|values| &values.type_);
    let known = type_.and_then(|type_| known_type(&type_.name, &type_.unit));
    known.is_some_and(|known| matches!(known.role, Role::Allocated | Role::Copies))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::call_tree::{TreePart, call_tree};
    use crate::analysis::description::describe;
    use crate::analysis::groups::By;
    use crate::analysis::runs::by_run;
    use crate::analysis::summary::summarise;
    use crate::analysis::testing::profile;
    use crate::model::known_types::ALLOC_SIZE;

    #[test]
    fn allocations_belong_to_the_caller_of_a_collection() {
        let mut profile = profile(&[
            ("p.f:1>g:2", 1.0),
            ("p.f:1>g:2>collection", 2.0),
            ("p.f:1>g:2>collection>native", 4.0),
            ("p.f:1>collection", 8.0),
            ("collection", 16.0),
        ]);
        let mut bytes = Values::absent_known(&ALLOC_SIZE, 0).unwrap();
        for value in [100.0, 200.0, 400.0, 800.0, 1600.0] {
            bytes.column.try_push(value).unwrap();
        }
        profile.values.push(bytes);
        let names = FrameNames::new(&profile).unwrap();
        let never = &|| false;

        // Samples, with allocations beside them.
        let found = summarise(&profile, &names, None, never).unwrap();
        let (values, bytes) = (found.functions.values, found.functions.allocated.unwrap());
        let keys = found.functions.keys.iter();
        let rows = keys.enumerate().map(|(i, name)| {
            let of = |sums: &Vec<f64>| sums[i];
            let [a, b] = [&values, &bytes].map(|both| [of(&both.self_), of(&both.total)]);
            (*name, a, b)
        });
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [
                (COLLECTION, [26.0, 30.0], [1600.0, 1600.0]),
                ("native", [4.0, 4.0], [0.0, 0.0]),
                ("g", [1.0, 7.0], [700.0, 700.0]),
                ("p.f", [0.0, 15.0], [800.0, 1500.0]),
            ]
        );
        let bytes = found.lines.allocated.unwrap();
        assert_eq!(found.lines.keys, [("file.R", 1), ("file.R", 2)]);
        assert_eq!(bytes.self_, [800.0, 700.0]);
        assert_eq!(found.lines.values.self_, [8.0, 7.0]);

        // Allocations alone.
        let wanted = Some(ALLOC_SIZE.name);
        let found = describe(&profile, &names, wanted, never).unwrap();
        assert_eq!(found.summary.functions.keys, [COLLECTION, "p.f", "g"]);
        assert_eq!(found.summary.functions.values.self_, [1600.0, 800.0, 700.0]);
        assert_eq!(
            found.packages,
            [
                (Some(COLLECTION), 1600.0),
                (Some("p"), 800.0),
                (None, 700.0)
            ]
        );
        let (by, part) = (By::Function, TreePart::Whole);
        let tree = call_tree(&profile, &names, wanted, by, part, |_| true, never).unwrap();
        let nodes = tree.nodes.iter();
        let nodes = nodes.map(|node| (tree.groups[node.group as usize].name, node.self_));
        assert_eq!(
            nodes.collect::<Vec<_>>(),
            [
                (Some(COLLECTION), 1600.0),
                (Some("p.f"), 800.0),
                (Some("g"), 700.0)
            ]
        );
        let runs = by_run(&profile, &names, wanted, by, never).unwrap();
        let sums = runs.figures.iter().map(|figure| figure.self_);
        assert_eq!(sums.sum::<f64>(), 3100.0);
        let of_collection = runs
            .figures
            .iter()
            .find(|figure| runs.groups[figure.group as usize].name == Some(COLLECTION));
        assert_eq!(of_collection.unwrap().total, 1600.0);
    }
}
