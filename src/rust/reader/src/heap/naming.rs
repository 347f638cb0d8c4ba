//! Finds the path of each object: the steps from a root, along dominators, to the object or to what it belongs to.
//!
//! Only what retains a certain share of the heap has a step of its own, so the number of paths does not grow with the
//! heap. Smaller objects belong to what dominates them, by their types.

use super::dominators::{Dominators, has_object};
use super::graph::{Graph, Kind, TOP, Vertex};
use super::known::Known;
use super::objects::Objects;
use super::paths::{EMPTY, Node as PathNode, PathId, Paths};
use super::roots::Root;
use super::steps::{
    Kind as StepKind, Part, Step, class_of, class_of_value, foreign_package, names_of, step,
};
use super::sums::Sums;
use super::texts::{FOREIGN, Texts};
use super::ways::{Target, Ways};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, filled, owned};
use profile_core::model::heap::{NO_HOLDER, SEVERAL};
use profile_runtime::objects::{CHARSXP, SYMSXP};
use std::collections::HashMap;

mod shared;

/// The number of the path of a vertex, and in the upper bits what the vertex is a part of.
const PATH_BITS: u32 = 28;
const UNDECIDED: u32 = u32::MAX;

pub struct Naming<'n, 'm> {
    known: &'n Known,
    objects: &'n Objects<'m>,
    pub texts_of: Texts<'n, 'm>,
    graph: &'n Graph,
    dominators: &'n Dominators,
    /// What retains less has no step.
    least: u64,
    pub paths: Paths,
    /// The names of roots, and of steps to objects with several holders.
    pub texts: Vec<String>,
    text_numbers: HashMap<String, u64, foldhash::fast::RandomState>,
    of: Vec<u32>,
    /// The paths of objects without vertices that are large enough.
    leaves: HashMap<u32, PathId, foldhash::fast::RandomState>,
    pub sums: Sums,
    /// For vertices: the number of the reference that was found last, see `step_between()`.
    found_last: HashMap<Vertex, u32, foldhash::fast::RandomState>,
}

impl<'n, 'm> Naming<'n, 'm> {
    pub fn find(
        known: &'n Known,
        objects: &'n Objects<'m>,
        graph: &'n Graph,
        dominators: &'n Dominators,
        roots: &[Root],
        least: u64,
    ) -> Result<Naming<'n, 'm>> {
        let mut naming = Naming {
            known,
            objects,
            texts_of: Texts { known, objects },
            graph,
            dominators,
            least,
            paths: Paths::new()?,
            texts: Vec::new(),
            text_numbers: HashMap::default(),
            of: filled(graph.objects.len(), UNDECIDED)?,
            leaves: HashMap::default(),
            sums: Sums::default(),
            found_last: HashMap::default(),
        };
        naming.text_number(owned(SEVERAL.text())?)?;
        naming.of[TOP as usize] = EMPTY;
        for &(vertex, row) in &graph.roots {
            let name = roots.get(row).map_or(NO_HOLDER.text(), |root| &root.name);
            let path = naming.root_path(owned(name)?)?;
            naming.of[vertex as usize] = path;
        }
        naming.name_vertices()?;
        naming.add_leaves()?;
        naming.sums.finish()?;
        Ok(naming)
    }

    fn name_vertices(&mut self) -> Result<()> {
        let mut ways = Ways::new(self.graph, self.objects);
        for vertex in TOP + 1..self.graph.objects.len() as u32 {
            if !has_object(self.graph, vertex) {
                continue;
            }
            let object = self.graph.objects[vertex as usize];
            let node = self.objects.node(object);
            let is_large = self.dominators.retained(vertex) >= self.least;
            if self.of[vertex as usize] == UNDECIDED {
                let dominator = self.dominators.of[vertex as usize];
                let is_held_by_root = !has_object(self.graph, dominator)
                    && self.graph.parents[vertex as usize] == dominator;
                let has_no_step = !is_large || node.type_() == SYMSXP || is_held_by_root;
                let (path, part) = if has_no_step {
                    (self.path(dominator), Part::None)
                } else {
                    self.shared(&mut ways, Target::Vertex(vertex), object, dominator)?
                };
                self.decide(vertex, path, part);
            }
            let class = match foreign_package(self.known, self.objects, node) {
                Some(package) => FOREIGN | package,
                None => class_of(self.known, self.objects, node),
            };
            self.sums
                .add(self.path(vertex), class, self.objects.size(object))?;
            if is_large {
                self.look_at_references(vertex, object)?;
            }
        }
        Ok(())
    }

    /// Decides the paths of what a vertex holds alone.
    fn look_at_references(&mut self, vertex: Vertex, object: u32) -> Result<()> {
        let node = self.objects.node(object);
        let (path, part) = (self.path(vertex), self.part(vertex));
        let names = names_of(self.known, self.objects, node);
        let mut reference = 0;
        while let Some(address) = node.reference(reference) {
            let number = match address {
                0 => None,
                address => self.objects.number(address),
            };
            let Some(number) = number.filter(|_| address != self.objects.nil) else {
                reference += 1;
                continue;
            };
            let child = self.objects.node(number);
            let is_here = match self.graph.places[number as usize].kind() {
                Kind::Vertex(to) => {
                    self.dominators.of[to as usize] == vertex
                        && self.of[to as usize] == UNDECIDED
                        && self.dominators.retained(to) >= self.least
                }
                Kind::Leaf(holder) => {
                    holder == vertex
                        && self.objects.size(number) >= self.least
                        && child.type_() != CHARSXP
                }
                Kind::Shared(row) => {
                    self.dominators.of_shared[row as usize] == vertex
                        && self.objects.size(number) >= self.least
                        && child.type_() != CHARSXP
                }
                Kind::Unreached | Kind::Reserved => false,
            };
            if is_here {
                let (step, inside) = step(
                    self.known,
                    self.objects,
                    node,
                    reference,
                    child,
                    part,
                    names,
                );
                let path = self.take(path, step, number)?;
                match self.graph.places[number as usize].kind() {
                    Kind::Vertex(to) => self.decide(to, path, inside),
                    _ => {
                        self.leaves.try_put(number, path)?;
                    }
                }
            }
            reference += 1;
        }
        Ok(())
    }

    /// The path with a step, if there is one.
    fn take(&mut self, path: PathId, step: Option<Step>, object: u32) -> Result<PathId> {
        let Some((kind, name)) = step else {
            return Ok(path);
        };
        self.paths.enter(PathNode {
            up: path,
            kind,
            name,
            class: class_of_value(self.known, self.objects, self.objects.node(object)),
            has_text: false,
        })
    }

    fn root_path(&mut self, name: String) -> Result<PathId> {
        let name = self.text_number(name)?;
        self.paths.enter(PathNode {
            up: EMPTY,
            kind: StepKind::Root,
            name,
            class: 0,
            has_text: true,
        })
    }

    fn text_number(&mut self, text: String) -> Result<u64> {
        if let Some(&number) = self.text_numbers.get(&text) {
            return Ok(number);
        }
        let number = self.texts.len() as u64;
        self.text_numbers.try_put(owned(&text)?, number)?;
        self.texts.try_push(text)?;
        Ok(number)
    }

    /// Adds the objects without vertices.
    fn add_leaves(&mut self) -> Result<()> {
        let mut ways = Ways::new(self.graph, self.objects);
        for object in 0..self.objects.count {
            let (holder, target) = match self.graph.places[object as usize].kind() {
                Kind::Leaf(holder) => (holder, None),
                Kind::Shared(row) => (
                    self.dominators.of_shared[row as usize],
                    Some(Target::Shared(row)),
                ),
                Kind::Unreached | Kind::Vertex(_) | Kind::Reserved => continue,
            };
            let node = self.objects.node(object);
            let size = self.objects.size(object);
            let is_large = size >= self.least && node.type_() != CHARSXP;
            let path = match self.leaves.get(&object) {
                Some(&path) => path,
                None => match target.filter(|_| is_large) {
                    Some(target) => self.shared(&mut ways, target, object, holder)?.0,
                    None => self.path(holder),
                },
            };
            self.sums.add(path, u64::from(node.type_().0), size)?;
        }
        Ok(())
    }

    fn decide(&mut self, vertex: Vertex, path: PathId, part: Part) {
        self.of[vertex as usize] = path | (part as u32) << PATH_BITS;
    }

    fn path(&self, vertex: Vertex) -> PathId {
        match self.of[vertex as usize] {
            UNDECIDED => EMPTY,
            of => of & ((1 << PATH_BITS) - 1),
        }
    }

    fn part(&self, vertex: Vertex) -> Part {
        Part::of_number(self.of[vertex as usize] >> PATH_BITS)
    }

    /// The text of the last step of a path.
    pub fn text(&self, node: PathNode) -> Result<String> {
        if node.has_text {
            let text = self.texts.get(node.name as usize);
            return owned(text.map_or("", String::as_str));
        }
        self.texts_of.step((node.kind, node.name), node.class)
    }
}
