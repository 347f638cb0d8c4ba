//! Walks from the roots through all objects, depth first, in the phases of the roots.
//!
//! Each object that refers to others becomes a vertex, with a number in the order in which vertices are found, as
//! dominators need it. Strings and vectors of data refer to nothing, and are most objects of most heaps. Those with one
//! holder do not become vertices: they belong to their holder. This saves memory.

use super::damage::too_many_objects;
use super::graph::{Edge, Graph, Holders, Kind, MOST, Place, TOP, Vertex};
use super::objects::Objects;
use super::roots::{Phase, Root, Symbols};
use super::wrong::Wrong;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled, with_room};
use profile_runtime::node::{Node, reference};
use profile_runtime::objects::{CHARSXP, ENVSXP, LISTSXP, SYMSXP, TAG, VECSXP};

struct Walk<'w, 'm> {
    objects: &'w Objects<'m>,
    symbols: &'w Symbols,
    places: Vec<Place>,
    /// For each vertex: the one from which it was found, and the last one that had a reference to it.
    parents: Vec<Vertex>,
    last: Vec<Vertex>,
    /// All other references between vertices of the same phase.
    edges: Vec<Edge>,
    /// For each shared leaf: the first and the last one of its holders so far.
    shared: Vec<(Vertex, Vertex)>,
    /// The number of the row of a shared leaf, and a holder.
    shared_edges: Vec<Edge>,
    wrong: Wrong,
    /// Objects, and the number of the next reference that is to be followed.
    stack: Vec<(u32, u32)>,
    phase: Phase,
    /// The first vertex of the phase.
    start: Vertex,
    lazy: Vec<u64>,
}

/// The graph, and for each vertex the one from which it was found. `roots` are in the order of their phases.
pub fn walk(objects: &Objects, symbols: &Symbols, roots: &[Root]) -> Result<(Graph, Vec<Vertex>)> {
    // There is a vertex for each object and root at most. Memory that is not used takes nothing, but vectors that grow
    // may be in memory twice.
    let most = objects.count as usize + roots.len() + 3;
    let mut walk = Walk {
        objects,
        symbols,
        places: filled(objects.count as usize, Place::UNREACHED)?,
        parents: with_room(most)?,
        last: with_room(most)?,
        edges: Vec::new(),
        shared: Vec::new(),
        shared_edges: Vec::new(),
        wrong: Wrong::default(),
        stack: Vec::new(),
        phase: Phase::Names,
        start: TOP,
        lazy: Vec::new(),
    };
    walk.parents.try_fill(2, 0)?;
    walk.last.try_fill(2, 0)?;
    let own = roots.iter().flat_map(|root| &root.own);
    for number in own.filter_map(|&address| objects.number(address)) {
        walk.places[number as usize] = Place::RESERVED;
    }
    let (mut vertices, mut taken) = (Vec::new(), Vec::new());
    for (row, root) in roots.iter().enumerate() {
        let vertex = walk.root(root.phase)?;
        vertices.try_push((vertex, row))?;
        for &address in &root.own {
            let number = objects.number(address);
            let is_free = |number: &u32| walk.places[*number as usize] == Place::RESERVED;
            if let Some(number) = number.filter(is_free) {
                let found = walk.vertex(vertex)?;
                walk.places[number as usize] = Place::TAKEN;
                taken.try_push((number, found))?;
                walk.follow(found, number)?;
            }
        }
        let lazy = if root.takes_lazy {
            std::mem::take(&mut walk.lazy)
        } else {
            Vec::new()
        };
        for &address in root.held.iter().chain(&lazy) {
            walk.hold(vertex, address)?;
        }
    }
    let unheld = walk.root(Phase::None)?;
    vertices.try_push((unheld, roots.len()))?;
    for number in 0..objects.count {
        let is_reached = walk.places[number as usize] != Place::UNREACHED;
        if objects.is_used(number) && !is_reached {
            walk.hold(unheld, objects.address(number))?;
        }
    }
    for (number, vertex) in taken {
        walk.places[number as usize] = Place::vertex(vertex);
    }
    walk.finish(vertices, unheld)
}

impl Walk<'_, '_> {
    fn root(&mut self, phase: Phase) -> Result<Vertex> {
        let vertex = self.vertex(TOP)?;
        if phase != self.phase {
            self.phase = phase;
            self.start = vertex;
        }
        Ok(vertex)
    }

    /// A new vertex.
    fn vertex(&mut self, parent: Vertex) -> Result<Vertex> {
        let vertex = self.parents.len() as u32;
        if vertex >= MOST {
            return Err(too_many_objects());
        }
        self.parents.try_push(parent)?;
        self.last.try_push(0)?;
        Ok(vertex)
    }

    /// A reference of a root.
    fn hold(&mut self, root: Vertex, address: u64) -> Result<()> {
        if let Some(number) = self.objects.number(address) {
            let node = self.objects.node(number);
            if let Some(found) = self.reach(root, number, node)? {
                self.follow(found, number)?;
            }
        }
        Ok(())
    }

    /// Adds a reference to an object. Returns its vertex if it is a new one.
    #[inline]
    fn reach(&mut self, from: Vertex, number: u32, node: Node) -> Result<Option<Vertex>> {
        let place = self.places[number as usize];
        match place.kind() {
            Kind::Unreached if node.is_leaf(self.objects.nil) => {
                self.places[number as usize] = Place::leaf(from);
            }
            Kind::Unreached => {
                let vertex = self.vertex(from)?;
                self.places[number as usize] = Place::vertex(vertex);
                return Ok(Some(vertex));
            }
            Kind::Vertex(to) => {
                let last = &mut self.last[to as usize];
                let is_new = *last != from && self.parents[to as usize] != from;
                if to >= self.start && is_new {
                    *last = from;
                    self.edges.try_push(Edge::new(to, from))?;
                }
            }
            Kind::Leaf(first) => {
                if first >= self.start && first != from {
                    let row = self.shared.len() as u32;
                    if row >= MOST {
                        return Err(too_many_objects());
                    }
                    self.shared.try_push((first, from))?;
                    self.places[number as usize] = Place::shared(row);
                    self.shared_edges.try_push(Edge::new(row, first))?;
                    self.shared_edges.try_push(Edge::new(row, from))?;
                }
            }
            Kind::Shared(row) => {
                let (first, last) = &mut self.shared[row as usize];
                if *first >= self.start && *last != from && *first != from {
                    *last = from;
                    self.shared_edges.try_push(Edge::new(row, from))?;
                }
            }
            Kind::Reserved => {}
        }
        Ok(None)
    }

    /// Follows all references from a vertex on.
    fn follow(&mut self, start: Vertex, object: u32) -> Result<()> {
        self.stack.clear();
        self.stack.try_push((object, 0))?;
        while let Some((object, mut reference)) = self.stack.pop() {
            let node = self.objects.node(object);
            let vertex = match self.places[object as usize].kind() {
                Kind::Vertex(vertex) => vertex,
                // The object of a root, which was just taken.
                _ => start,
            };
            while let Some(address) = node.reference(reference) {
                reference += 1;
                if address == self.objects.nil || address == 0 {
                    continue;
                }
                let Some(number) = self.objects.number(address) else {
                    // What nothing holds yet may be an object that R is just making.
                    if self.phase < Phase::None {
                        let holder = self.objects.address(object);
                        self.wrong.add((holder, reference - 1, address))?;
                    }
                    continue;
                };
                let child = self.objects.node(number);
                if self.is_skipped(object, node, reference - 1, child) {
                    if child.type_() == ENVSXP {
                        self.lazy.try_push(address)?;
                    }
                    continue;
                }
                if self.reach(vertex, number, child)?.is_some() {
                    if node.reference(reference).is_some() {
                        self.stack.try_push((object, reference))?;
                    }
                    self.stack.try_push((number, 0))?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// What is only needed for the walk is dropped before the holders are put together.
    fn finish(self, roots: Vec<(Vertex, usize)>, unheld: Vertex) -> Result<(Graph, Vec<Vertex>)> {
        drop((self.last, self.shared, self.stack));
        let parents = self.parents;
        let graph = Graph {
            places: self.places,
            count: parents.len(),
            holders: Holders::new(self.edges, |vertex| parents.get(vertex as usize).copied())?,
            shared: Holders::new(self.shared_edges, |_| None)?,
            roots,
            unheld,
            wrong: self.wrong,
        };
        Ok((graph, parents))
    }

    /// Whether a reference does not count, or not in this phase.
    #[inline]
    fn is_skipped(&self, object: u32, node: Node, reference: u32, child: Node) -> bool {
        if node.is_altrep() {
            // Its class, which belongs to the library that defines it, or to R.
            return reference == reference::ALTREP_CLASS && self.phase < Phase::Libraries;
        }
        match node.type_() {
            // R's table of all strings, which does not keep them.
            VECSXP => child.type_() == CHARSXP,
            SYMSXP if reference == reference::SYMBOL_VALUE => {
                self.symbols.last.contains(&self.objects.address(object))
            }
            LISTSXP if reference == reference::VALUE && self.phase < Phase::Copies => {
                child.type_() == ENVSXP && self.symbols.lazy.binary_search(&node.word(TAG)).is_ok()
            }
            _ => false,
        }
    }
}
