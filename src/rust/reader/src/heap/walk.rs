//! Walks from the roots through all objects, depth first, in the phases of the roots.
//!
//! Each object that refers to others becomes a vertex, with a number in the order in which vertices are found, as
//! dominators need it. Strings and vectors of data refer to nothing, and are most objects of most heaps. Those with one
//! holder do not become vertices: they belong to their holder. This saves memory.

use super::damage::too_many_objects;
use super::graph::{Edge, Graph, Kind, MOST, NONE, Place, Shared, TOP, Vertex};
use super::objects::Objects;
use super::roots::{Phase, Root, Symbols};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, filled};
use profile_runtime::node::{Node, reference};
use profile_runtime::objects::{CHARSXP, ENVSXP, LISTSXP, SYMSXP, TAG, VECSXP};

struct Walk<'w, 'm> {
    objects: &'w Objects<'m>,
    symbols: &'w Symbols,
    graph: Graph,
    /// For each vertex: the last one that had a reference to it.
    last: Vec<Vertex>,
    /// Vertices and the number of the next reference that is to be followed.
    stack: Vec<(Vertex, u32)>,
    phase: Phase,
    /// The first vertex of the phase.
    start: Vertex,
    lazy: Vec<u64>,
}

/// `roots` are in the order of their phases.
pub fn walk(objects: &Objects, symbols: &Symbols, roots: &[Root]) -> Result<Graph> {
    let mut walk = Walk {
        objects,
        symbols,
        graph: Graph {
            places: filled(objects.count as usize, Place::UNREACHED)?,
            objects: filled(2, NONE)?,
            parents: filled(2, 0)?,
            edges: Vec::new(),
            shared: Vec::new(),
            shared_edges: Vec::new(),
            roots: Vec::new(),
            unheld: 0,
            wrong: 0,
        },
        last: filled(2, 0)?,
        stack: Vec::new(),
        phase: Phase::Names,
        start: TOP,
        lazy: Vec::new(),
    };
    let own = roots.iter().flat_map(|root| &root.own);
    for number in own.filter_map(|&address| objects.number(address)) {
        walk.graph.places[number as usize] = Place::RESERVED;
    }
    let mut taken = Vec::new();
    for (row, root) in roots.iter().enumerate() {
        let vertex = walk.root(root.phase)?;
        walk.graph.roots.try_push((vertex, row))?;
        for &address in &root.own {
            let number = objects.number(address);
            let is_free = |number: &u32| walk.graph.places[*number as usize] == Place::RESERVED;
            if let Some(number) = number.filter(is_free) {
                let found = walk.vertex(number, vertex)?;
                walk.graph.places[number as usize] = Place::TAKEN;
                taken.try_push((number, found))?;
                walk.follow(found)?;
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
    let vertex = walk.root(Phase::None)?;
    walk.graph.roots.try_push((vertex, roots.len()))?;
    walk.graph.unheld = vertex;
    for number in 0..objects.count {
        let is_reached = walk.graph.places[number as usize] != Place::UNREACHED;
        if objects.is_used(number) && !is_reached {
            walk.hold(vertex, objects.address(number))?;
        }
    }
    let mut graph = walk.graph;
    for (number, vertex) in taken {
        graph.places[number as usize] = Place::vertex(vertex);
    }
    graph.edges.sort_unstable();
    graph.shared_edges.sort_unstable();
    Ok(graph)
}

impl Walk<'_, '_> {
    fn root(&mut self, phase: Phase) -> Result<Vertex> {
        let vertex = self.vertex(NONE, TOP)?;
        if phase != self.phase {
            self.phase = phase;
            self.start = vertex;
        }
        Ok(vertex)
    }

    /// A new vertex.
    fn vertex(&mut self, object: u32, parent: Vertex) -> Result<Vertex> {
        let vertex = self.graph.objects.len() as u32;
        if vertex >= MOST {
            return Err(too_many_objects());
        }
        self.graph.objects.try_push(object)?;
        self.graph.parents.try_push(parent)?;
        self.last.try_push(0)?;
        Ok(vertex)
    }

    /// A reference of a root.
    fn hold(&mut self, root: Vertex, address: u64) -> Result<()> {
        if let Some(number) = self.objects.number(address) {
            let node = self.objects.node(number);
            if let Some(found) = self.reach(root, number, node)? {
                self.follow(found)?;
            }
        }
        Ok(())
    }

    /// Adds a reference to an object. Returns its vertex if it is a new one.
    #[inline]
    fn reach(&mut self, from: Vertex, number: u32, node: Node) -> Result<Option<Vertex>> {
        let place = self.graph.places[number as usize];
        match place.kind() {
            Kind::Unreached if node.is_leaf(self.objects.nil) => {
                self.graph.places[number as usize] = Place::leaf(from);
            }
            Kind::Unreached => {
                let vertex = self.vertex(number, from)?;
                self.graph.places[number as usize] = Place::vertex(vertex);
                return Ok(Some(vertex));
            }
            Kind::Vertex(to) => {
                let last = &mut self.last[to as usize];
                let is_new = *last != from && self.graph.parents[to as usize] != from;
                if to >= self.start && is_new {
                    *last = from;
                    self.graph.edges.try_push(Edge::new(to, from))?;
                }
            }
            Kind::Leaf(first) => {
                if first >= self.start && first != from {
                    let row = self.graph.shared.len() as u32;
                    if row >= MOST {
                        return Err(too_many_objects());
                    }
                    self.graph.shared.try_push(Shared { first, last: from })?;
                    self.graph.places[number as usize] = Place::shared(row);
                    self.graph.shared_edges.try_push(Edge::new(row, first))?;
                    self.graph.shared_edges.try_push(Edge::new(row, from))?;
                }
            }
            Kind::Shared(row) => {
                let shared = &mut self.graph.shared[row as usize];
                if shared.first >= self.start && shared.last != from && shared.first != from {
                    shared.last = from;
                    self.graph.shared_edges.try_push(Edge::new(row, from))?;
                }
            }
            Kind::Reserved => {}
        }
        Ok(None)
    }

    /// Follows all references from a vertex on.
    fn follow(&mut self, vertex: Vertex) -> Result<()> {
        self.stack.clear();
        self.stack.try_push((vertex, 0))?;
        while let Some((vertex, mut reference)) = self.stack.pop() {
            let node = self.objects.node(self.graph.objects[vertex as usize]);
            while let Some(address) = node.reference(reference) {
                reference += 1;
                if address == self.objects.nil || address == 0 {
                    continue;
                }
                let Some(number) = self.objects.number(address) else {
                    // What nothing holds yet may be an object that R is just making.
                    self.graph.wrong += u64::from(self.phase < Phase::None);
                    continue;
                };
                let child = self.objects.node(number);
                if self.is_skipped(vertex, node, reference - 1, child) {
                    if child.type_() == ENVSXP {
                        self.lazy.try_push(address)?;
                    }
                    continue;
                }
                if let Some(found) = self.reach(vertex, number, child)? {
                    if node.reference(reference).is_some() {
                        self.stack.try_push((vertex, reference))?;
                    }
                    self.stack.try_push((found, 0))?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether a reference does not count, or not in this phase.
    #[inline]
    fn is_skipped(&self, vertex: Vertex, node: Node, reference: u32, child: Node) -> bool {
        if node.is_altrep() {
            // Its class, which belongs to the library that defines it, or to R.
            return reference == reference::ALTREP_CLASS && self.phase < Phase::Libraries;
        }
        match node.type_() {
            // R's table of all strings, which does not keep them.
            VECSXP => child.type_() == CHARSXP,
            SYMSXP if reference == reference::SYMBOL_VALUE => {
                let object = self.graph.objects[vertex as usize];
                self.symbols.last.contains(&self.objects.address(object))
            }
            LISTSXP if reference == reference::VALUE && self.phase < Phase::Copies => {
                child.type_() == ENVSXP && self.symbols.lazy.binary_search(&node.word(TAG)).is_ok()
            }
            _ => false,
        }
    }
}
