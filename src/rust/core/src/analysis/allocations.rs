//! Which frames have allocated what samples report.
//!
//! R's profiler reports the memory that was allocated since the previous sample, wherever the new one is. Three kinds of
//! frames allocate nothing themselves, so what they seem to have allocated belongs to the function of R that called them:
//!
//! - Garbage collections, which profilers show as a frame `<GC>` below the function that was allocating: it has allocated
//!   before the collection began.
//! - Copies, which recordings with native code show as a frame `<copy>`: it runs after the memory was allocated.
//! - Native functions. The memory of R grows in the function of R, not in the function of a library that happens to run when
//!   the next sample is taken, such as one of the mathematical library.
//!
//! Such amounts are lower bounds: what was freed before the next sample is missing.

use super::frame_names::FrameNames;
use super::recorded::Recorded;
use crate::error::Result;
use crate::limits::memory::TryCollect;
use crate::model::known_types::{
    ALLOC_SIZE, ALLOC_SPACE, DEALLOC_SIZE, RPROF_COPIES, Role, known_type,
};
use crate::model::{COLLECTION, COPYING, LocationId, NATIVE, Profile, Values};

/// Finds the frames to which allocations belong.
pub struct AllocatingFrames<'p> {
    names: &'p FrameNames,
    /// The row of the name of collections, `None` to find none.
    collection: Option<u32>,
    /// Whether a location is native code or a copy; empty if these may have allocated.
    is_native: Vec<bool>,
}

impl<'p> AllocatingFrames<'p> {
    /// For the sums of these values: finds nothing unless they are allocations.
    pub fn among(
        profile: &Profile,
        names: &'p FrameNames,
        values: &[Option<&Values>],
    ) -> Result<AllocatingFrames<'p>> {
        let is_any =
            |is: &dyn Fn(&Values) -> bool| values.iter().flatten().any(|values| is(values));
        let is_needed = is_any(&|values| is_allocation(Some(values)));
        let is_sampled =
            is_needed && is_any(&|values| Measured::of(profile, Some(values)).since_previous);
        let is_native = |location: LocationId| {
            let is_copy = names.of(location) == COPYING;
            let location = profile.locations.get(location);
            is_copy || profile.frame_type_of(&location) == Some(NATIVE)
        };
        let locations = profile.locations.ids().filter(|_| is_sampled);
        Ok(AllocatingFrames {
            names,
            collection: is_needed.then(|| names.find(COLLECTION)).flatten(),
            is_native: locations.map(is_native).try_vec()?,
        })
    }

    /// The frames of a stack, innermost first, to which its allocations belong. A stack that consists of such frames only
    /// keeps them.
    #[inline]
    pub fn of<'f>(&self, frames: &'f [LocationId]) -> &'f [LocationId] {
        self.without_native(self.without_collection(frames))
    }

    #[inline]
    fn without_collection<'f>(&self, frames: &'f [LocationId]) -> &'f [LocationId] {
        let (Some(row), [called @ .., _]) = (self.collection, frames) else {
            return frames;
        };
        let outermost = called
            .iter()
            .rposition(|frame| self.names.row(*frame) == row);
        outermost.map_or(frames, |at| &frames[at + 1..])
    }

    #[inline]
    fn without_native<'f>(&self, frames: &'f [LocationId]) -> &'f [LocationId] {
        let is_native = |frame: &LocationId| self.is_native.get(frame.row()) == Some(&true);
        let innermost = frames.iter().position(|frame| !is_native(frame));
        innermost.map_or(frames, |at| &frames[at..])
    }
}

/// How values were measured by R's profiler.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Whether they are what has happened since the previous sample, so that some of it belongs to code that ran before.
    pub since_previous: bool,
    /// Whether they are lower bounds: memory that was freed before the next sample is missing.
    pub is_lower_bound: bool,
}

impl Measured {
    pub fn of(profile: &Profile, values: Option<&Values>) -> Measured {
        let Some(Values { type_, .. }) = values else {
            return Measured::default();
        };
        let is_lower_bound = ALLOC_SIZE == *type_
            || DEALLOC_SIZE == *type_
            || ALLOC_SPACE == *type_ && is_renamed(profile);
        Measured {
            since_previous: is_lower_bound || RPROF_COPIES == *type_,
            is_lower_bound,
        }
    }
}

/// Whether allocated memory of R's profiler has the name under which it is written to other formats.
fn is_renamed(profile: &Profile) -> bool {
    profile.known(&ALLOC_SIZE).is_none()
        && profile
            .sources
            .iter()
            .any(|source| Recorded::of(profile, source) == Recorded::Sampled)
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
    use crate::model::RprofOptions;
    use crate::model::SourceKind;
    use crate::model::known_types::{KnownType, SAMPLES};

    #[test]
    fn sampled_memory_belongs_to_the_caller_of_a_copy() {
        let of = |known: &KnownType| {
            let mut profile = profile(&[("p.f>copy", 1.0), ("copy", 1.0)]);
            let mut bytes = Values::absent_known(known, 0).unwrap();
            for value in [8.0, 16.0] {
                bytes.column.try_push(value).unwrap();
            }
            profile.values.push(bytes);
            let names = FrameNames::new(&profile).unwrap();
            let wanted = Some(known.name);
            let found = summarise(&profile, &names, By::Function, wanted, &|| false).unwrap();
            let all = found.functions.keys.into_iter().flatten();
            let rows = all.zip(found.functions.values.self_);
            let rows = rows.map(|(name, bytes)| format!("{name} {bytes}"));
            rows.collect::<Vec<_>>()
        };
        assert_eq!(of(&ALLOC_SIZE), ["<copy> 16", "p.f 8"]);
        // Where exact allocations were made is known.
        assert_eq!(of(&ALLOC_SPACE), ["<copy> 24", "p.f 0"]);
    }

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
        let found = summarise(&profile, &names, By::Function, None, never).unwrap();
        let (values, bytes) = (found.functions.values, found.functions.allocated.unwrap());
        let keys = found.functions.keys.iter().flatten();
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
        assert_eq!(
            found.summary.functions.keys,
            [COLLECTION, "p.f", "g"].map(Some)
        );
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

    /// Marks the locations of functions that are named `native...` as native code.
    fn with_native_frames(profile: &mut Profile) {
        let native = profile.frame_type(NATIVE).unwrap();
        let locations: Vec<_> = profile.locations.iter().copied().collect();
        profile.locations = Default::default();
        for mut location in locations {
            let function = profile.functions.get(location.function.unwrap());
            let is_native = profile.strings.get(function.name).starts_with("native");
            location.frame_type = native.filter(|_| is_native);
            profile.locations.push(location).unwrap();
        }
    }

    fn with_values(profile: &mut Profile, type_: &KnownType, values: &[f64]) {
        let mut column = Values::absent_known(type_, 0).unwrap();
        for value in values {
            column.column.try_push(*value).unwrap();
        }
        profile.values.push(column);
    }

    #[test]
    fn measured_allocations_do_not_belong_to_native_code() {
        let mut profile = profile(&[
            ("f>g>native", 1.0),
            ("f>native>g>native>native2", 1.0),
            ("f>collection>native", 1.0),
            ("f>native>collection", 1.0),
            ("native>native2", 1.0),
            ("f>g", 1.0),
        ]);
        with_native_frames(&mut profile);
        with_values(&mut profile, &ALLOC_SIZE, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        with_values(
            &mut profile,
            &ALLOC_SPACE,
            &[1.0, 2.0, 0.0, 0.0, 16.0, 32.0],
        );
        with_values(
            &mut profile,
            &RPROF_COPIES,
            &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
        );
        let names = FrameNames::new(&profile).unwrap();
        let own = |wanted: &KnownType| {
            let found =
                summarise(&profile, &names, By::Function, Some(wanted.name), &|| false).unwrap();
            let keys = found.functions.keys.iter().flatten().copied();
            let rows = keys.zip(found.functions.values.self_);
            rows.filter(|(_, value)| *value != 0.0).collect::<Vec<_>>()
        };
        let of_r = [("g", 35.0), ("native2", 16.0), ("f", 12.0)];
        assert_eq!(own(&ALLOC_SIZE), of_r);
        assert_eq!(own(&RPROF_COPIES), of_r);
        let samples = summarise(&profile, &names, By::Function, None, &|| false).unwrap();
        let bytes = samples.functions.allocated.unwrap().self_;
        let rows = samples.functions.keys.iter().flatten().copied().zip(bytes);
        let mut rows: Vec<_> = rows.filter(|(_, value)| *value != 0.0).collect();
        rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        assert_eq!(rows, of_r);

        // Alone, what a profiler has seen at each allocation stays where it is.
        profile.values.retain(|values| ALLOC_SPACE == values.type_);
        let found = summarise(&profile, &names, By::Function, None, &|| false).unwrap();
        let keys = found.functions.keys.iter().flatten().copied();
        let own: Vec<_> = keys.zip(found.functions.values.self_).collect();
        assert!(own.contains(&("native2", 18.0)), "{own:?}");
        assert!(own.contains(&("native", 1.0)), "{own:?}");
    }

    #[test]
    fn bounds_are_known_by_type_and_source() {
        let mut profile = profile(&[("f", 1.0)]);
        for type_ in [&ALLOC_SIZE, &DEALLOC_SIZE, &RPROF_COPIES, &ALLOC_SPACE] {
            with_values(&mut profile, type_, &[1.0]);
        }
        let measured = |profile: &Profile, type_: &KnownType| {
            let Measured {
                since_previous,
                is_lower_bound,
            } = Measured::of(profile, profile.known(type_));
            [since_previous, is_lower_bound]
        };
        assert_eq!(measured(&profile, &ALLOC_SIZE), [true, true]);
        assert_eq!(measured(&profile, &DEALLOC_SIZE), [true, true]);
        assert_eq!(measured(&profile, &RPROF_COPIES), [true, false]);
        assert_eq!(measured(&profile, &SAMPLES), [false, false]);
        assert_eq!(Measured::of(&profile, None), Measured::default());

        // Of other profilers, and of Rprofmem() beside Rprof(), each allocation is known.
        let options = RprofOptions {
            memory: true,
            ..RprofOptions::default()
        };
        assert_eq!(measured(&profile, &ALLOC_SPACE), [false, false]);
        profile.sources[0].kind = SourceKind::RPROF;
        profile.sources[0].options = Some(options);
        assert_eq!(measured(&profile, &ALLOC_SPACE), [false, false]);

        // Written to another format.
        profile.values.retain(|values| ALLOC_SIZE != values.type_);
        assert_eq!(measured(&profile, &ALLOC_SPACE), [true, true]);
        profile.sources[0].options = Some(RprofOptions::default());
        assert_eq!(measured(&profile, &ALLOC_SPACE), [false, false]);
        profile.sources[0].kind = SourceKind::PPROF;
        for (comment, is_measured) in [
            ("Rprof: 10000 us, gc line", false),
            ("Rprof: memory", true),
            ("memory", false),
            ("Rprof: a.out, 10000 us, memory gc", true),
        ] {
            let comment = profile.strings.intern(comment).unwrap();
            profile.sources[0].comments = vec![comment];
            let expected = [is_measured; 2];
            assert_eq!(measured(&profile, &ALLOC_SPACE), expected, "{comment:?}");
        }
    }
}
