//! A snapshot of R's heap as a profile: a sample is a group of objects of one class and one path, its stack is the path
//! from the class, innermost, to the root.

use super::dominators::Dominators;
use super::graph::Graph;
use super::known::Known;
use super::lists::Lists;
use super::naming::Named;
use super::objects::Objects;
use super::paths::{Node, PathId};
use super::resident::Resident;
use super::resident::rest::Rest;
use super::resident::rows::{POOL, Row};
use super::resident::split::{Claim, Owner};
use super::roots::{self, Library, Root, Symbols};
use super::steps::Kind;
use super::sums::Sum;
use super::walk::walk;
use super::wrong::Wrong;
use crate::recorded::source::add_numbers;
use crate::running_r::RunningR;
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow, TryPut, owned};
use profile_core::message;
use profile_core::model::heap::{FREE, NOT_R, RootName, SEVERAL};
use profile_core::model::known_types::{INUSE_OBJECTS, INUSE_SPACE};
use profile_core::model::{
    HeapFrame, Location, LocationId, Profile, SampleType, Source, SourceId, StringId, Values,
};
use profile_runtime::memory::View;
use std::collections::HashMap;
use std::ops::Range;

/// The sample types.
const TYPES: [(&str, &str); 2] = [INUSE_SPACE.key(), INUSE_OBJECTS.key()];

/// What retains less than this part of the heap, or less than this number of bytes, has no step of its own.
const SHARE: u64 = 20_000;
const LEAST: u64 = 2048;
/// The most steps of all paths. With more of them, what retains little has no step of its own.
const MOST_STEPS: usize = 4_500;

/// A snapshot, and what it says about the heap as a whole.
pub struct Snapshot {
    pub profile: Profile,
    pub heap: Heap,
    pub wrong: Wrong,
}

/// Sizes are in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// In use: all objects that something holds, and those that R has not freed yet.
    pub used: u64,
    pub objects: u64,
    /// The data of vectors: 8 times the `Vcells` of R's `gc()`.
    pub data: u64,
    /// Memory of R's pages that no object uses.
    pub free: u64,
    /// Objects that nothing holds, as far as is known.
    pub unheld: u64,
    /// The number of objects that something holds, although R has not marked them as in use yet, because it was stopped
    /// during a garbage collection.
    pub unmarked: u64,
    /// References that lead to no object.
    pub wrong: u64,
}

/// What is known about R in a process before its heap is read.
pub struct About<'a> {
    pub r: &'a RunningR,
    pub known: &'a Known,
    pub lists: &'a Lists,
    pub libraries: &'a [Library],
    /// The memory of the process that is in RAM.
    pub resident: &'a Resident,
    /// The name of what nothing holds, as far as is known.
    pub unheld: RootName,
    /// What retains fewer bytes has no step of its own; `None` for a number that fits the heap.
    pub least: Option<u64>,
}

/// Takes a snapshot. `source` is added to `profile`.
pub fn take<'m>(
    memory: &mut impl View<'m>,
    about: &About,
    mut profile: Profile,
    mut source: Source,
) -> Result<Snapshot> {
    let known = about.known;
    let objects = Objects::read(memory, about.lists, known.nil)?;
    let libraries = about.libraries;
    let (roots, symbols) = roots::find(memory, about.r, known, libraries, &objects, about.lists)?;
    let (named, heap, wrong) = name(about, &objects, &roots, &symbols)?;
    source.default_type = Some(owned(TYPES[0].0)?);
    let numbers = [
        ("profile.heap.used", heap.used),
        ("profile.heap.objects", heap.objects),
        ("profile.heap.data", heap.data),
        ("profile.heap.free", heap.free),
        ("profile.heap.unheld", heap.unheld),
        ("profile.heap.wrong_references", heap.wrong),
    ];
    add_numbers(&mut source, &numbers, &mut profile)?;
    let rest = Rest::of(about.resident, &objects, &claims(about)?)?;
    rest.describe(&mut source, &mut profile)?;
    if objects.unchecked > 0 {
        let unchecked = [("profile.heap.unchecked", objects.unchecked)];
        add_numbers(&mut source, &unchecked, &mut profile)?;
    }
    for (name, unit) in TYPES {
        let type_ = SampleType::new(owned(name)?, owned(unit)?, &source.types)?;
        source.types.try_push(type_)?;
        profile.values.try_push(Values::absent(name, unit, 0)?)?;
    }
    let mut builder = Builder {
        source: profile.add_source(source)?,
        none: profile.strings.intern("")?,
        profile,
        locations: HashMap::default(),
    };
    builder.add_paths(&named)?;
    builder.add_free(heap.free)?;
    for row in &rest.rows {
        builder.add_row(row)?;
    }
    Ok(Snapshot {
        profile: builder.profile,
        heap,
        wrong,
    })
}

/// Names all objects. The graph is dropped before the profile is made.
fn name<'n, 'm>(
    about: &'n About,
    objects: &'n Objects<'m>,
    roots: &[Root],
    symbols: &Symbols,
) -> Result<(Named<'n, 'm>, Heap, Wrong)> {
    let (graph, parents) = walk(objects, symbols, roots)?;
    let dominators = Dominators::find(&graph, parents)?;
    let mut least = about
        .least
        .unwrap_or((objects.used_bytes / SHARE).max(LEAST));
    loop {
        let (known, unheld) = (about.known, about.unheld);
        let named = Named::find(known, objects, &graph, &dominators, roots, unheld, least)?;
        // Roots always have a step, and there may be many of them.
        let is_most = least > objects.used_bytes;
        if about.least.is_some() || is_most || named.paths.nodes.len() <= MOST_STEPS {
            let heap = heap(&graph, &dominators, objects);
            return Ok((named, heap, graph.wrong));
        }
        least = least.saturating_mul(2);
    }
}

fn heap(graph: &Graph, dominators: &Dominators, objects: &Objects) -> Heap {
    let mut heap = Heap {
        data: objects.data_bytes,
        wrong: graph.wrong.count,
        ..Heap::default()
    };
    for (object, place) in graph.places.iter().enumerate() {
        let object = object as u32;
        let size = objects.size(object);
        let Some(dominator) = dominators.dominator(place.kind()) else {
            continue;
        };
        heap.objects += 1;
        heap.used = heap.used.saturating_add(size);
        heap.unmarked += u64::from(!objects.is_used(object));
        if dominator >= graph.unheld {
            heap.unheld = heap.unheld.saturating_add(size);
        }
    }
    heap.free = objects.bytes().saturating_sub(heap.used);
    heap
}

/// R's stacks, and the variables of R and of libraries.
fn claims(about: &About) -> Result<Vec<Claim>> {
    let stacks = [&about.r.node_stack, &about.known.protected];
    let stacks = stacks.into_iter().filter(|stack| stack.start > 0);
    let variables = about.libraries.iter().map(|library| &library.variables);
    let variables = variables.flatten().chain(&about.r.variables);
    let mut claims = Vec::new();
    let mut add = |addresses: &Range<u64>, owner| {
        let addresses = addresses.clone();
        claims.try_push(Claim { addresses, owner })
    };
    for stack in stacks {
        add(stack, Owner::RStacks)?;
    }
    for variables in variables {
        add(variables, Owner::Variables)?;
    }
    Ok(claims)
}

struct Builder {
    profile: Profile,
    source: SourceId,
    none: StringId,
    locations: HashMap<Node, LocationId, foldhash::fast::RandomState>,
}

impl Builder {
    fn add_paths(&mut self, named: &Named) -> Result<()> {
        // In the order of paths, so that equal heaps have equal profiles.
        let mut sums = named
            .sums
            .by_key
            .iter()
            .map(|(&key, &sum)| (key, sum))
            .try_vec()?;
        sums.sort_unstable_by_key(|&((path, class), _)| (path, class));
        for ((path, class), sum) in sums {
            self.add_path(named, path, class, sum)?;
        }
        Ok(())
    }

    fn add_path(&mut self, named: &Named, path: PathId, class: u64, sum: Sum) -> Result<()> {
        let mut stack = Vec::new();
        let text = named.texts_of.class(class)?;
        stack.try_push(self.location(&text, HeapFrame::Type)?)?;
        let mut has_root = false;
        for node in named.paths.upwards(path) {
            has_root |= node.kind == Kind::Root;
            let known = self.locations.get(&node).copied();
            let location = match known {
                Some(location) => location,
                None => {
                    let location = self.location(&named.text(node)?, node.kind.frame())?;
                    self.locations.try_put(node, location)?;
                    location
                }
            };
            stack.try_push(location)?;
        }
        if !has_root {
            stack.try_push(self.location(SEVERAL.text(), HeapFrame::Root)?)?;
        }
        self.add_sample(&stack, sum)
    }

    /// Memory of R that belongs to no object.
    fn add_free(&mut self, bytes: u64) -> Result<()> {
        let stack = [
            self.location("free cells", HeapFrame::Type)?,
            self.location(FREE.text(), HeapFrame::Root)?,
        ];
        self.add_sample(&stack, Sum { bytes, objects: 0 })
    }

    /// Memory that is not R's heap.
    fn add_row(&mut self, row: &Row) -> Result<()> {
        let mut stack = Vec::new();
        stack.try_push(self.location(&row.type_, HeapFrame::Type)?)?;
        match &row.name {
            Some(package) if row.part == POOL => {
                let pool = message!("{POOL}{package}");
                stack.try_push(self.location(&pool, HeapFrame::Element)?)?;
            }
            name => {
                if let Some(name) = name {
                    stack.try_push(self.location(name, HeapFrame::Element)?)?;
                }
                stack.try_push(self.location(row.part, HeapFrame::Element)?)?;
            }
        }
        stack.try_push(self.location(NOT_R.text(), HeapFrame::Root)?)?;
        let bytes = row.bytes;
        self.add_sample(&stack, Sum { bytes, objects: 0 })
    }

    fn add_sample(&mut self, stack: &[LocationId], sum: Sum) -> Result<()> {
        let stack = self.profile.stacks.intern(stack)?;
        self.profile.samples.stack.try_push(stack)?;
        self.profile.samples.source.try_push(self.source)?;
        for (values, value) in self.profile.values.iter_mut().zip([sum.bytes, sum.objects]) {
            values.push(i64::try_from(value).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }

    fn location(&mut self, text: &str, frame: HeapFrame) -> Result<LocationId> {
        let function = self.profile.named_function(text, self.none)?;
        let frame_type = self.profile.frame_type(frame.name())?;
        self.profile.locations.intern(Location {
            function: Some(function),
            line: Some(0),
            frame_type,
            ..Location::default()
        })
    }
}
