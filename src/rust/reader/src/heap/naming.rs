//! Finds the path of each object: the steps from a root, along dominators, to the object or to what it belongs to.
//!
//! Only what retains a certain share of the heap has a step of its own, so the number of paths does not grow with the
//! heap. Smaller objects belong to what dominates them, by their types.

use super::dominators::Dominators;
use super::graph::{Graph, Kind, TOP, Vertex};
use super::known::Known;
use super::objects::Objects;
use super::paths::{EMPTY, Node as PathNode, PathId, Paths};
use super::roots::Root;
use super::steps::{
    Holder, Kind as StepKind, Part, Step, class_of, class_of_value, foreign_package,
};
use super::sums::Sums;
use super::texts::{FOREIGN, Texts};
use super::ways::{Target, Ways};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, owned};
use profile_core::model::heap::{RootName, SEVERAL};
use profile_runtime::objects::{CHARSXP, SYMSXP};
use std::collections::HashMap;

mod shared;

/// The bits for the number of a path. What a vertex is a part of is in three bits above.
const PATH_BITS: u32 = 28;
/// Set if a vertex has a path.
const DECIDED: u32 = 1 << 31;

/// What snapshots say about objects: their paths and sums.
pub struct Named<'n, 'm> {
    pub texts_of: Texts<'n, 'm>,
    pub paths: Paths,
    /// The names of roots, and of steps to objects with several holders.
    texts: Vec<String>,
    pub sums: Sums,
}

struct Naming<'g, 'n, 'm> {
    known: &'n Known,
    objects: &'n Objects<'m>,
    graph: &'g Graph,
    dominators: &'g Dominators,
    /// What retains less has no step.
    least: u64,
    named: Named<'n, 'm>,
    text_numbers: HashMap<String, u64, foldhash::fast::RandomState>,
    /// For each vertex: what it retains, until it has a path; then the path, what it is a part of, and [`DECIDED`].
    vertices: Vec<u32>,
    /// The paths of objects without vertices that are large enough.
    leaves: HashMap<u32, PathId, foldhash::fast::RandomState>,
    /// For vertices: the number of the reference that was found last, see `step_between()`.
    last_references: HashMap<Vertex, u32, foldhash::fast::RandomState>,
}

impl<'n, 'm> Named<'n, 'm> {
    pub fn find(
        known: &'n Known,
        objects: &'n Objects<'m>,
        graph: &Graph,
        dominators: &Dominators,
        roots: &[Root],
        unheld: RootName,
        least: u64,
    ) -> Result<Named<'n, 'm>> {
        let mut naming = Naming {
            known,
            objects,
            graph,
            dominators,
            least,
            named: Named {
                texts_of: Texts { known, objects },
                paths: Paths::new()?,
                texts: Vec::new(),
                sums: Sums::default(),
            },
            text_numbers: HashMap::default(),
            vertices: dominators.retained(graph, objects)?,
            leaves: HashMap::default(),
            last_references: HashMap::default(),
        };
        naming.text_number(owned(SEVERAL.text())?)?;
        naming.set_path(TOP, EMPTY, Part::None);
        for &(vertex, row) in &graph.roots {
            let name = roots.get(row).map_or(unheld.text(), |root| &root.name);
            let path = naming.root_path(owned(name)?)?;
            naming.set_path(vertex, path, Part::None);
        }
        naming.name_vertices()?;
        naming.add_leaves()?;
        naming.named.sums.finish()?;
        Ok(naming.named)
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

impl<'n, 'm> Naming<'_, 'n, 'm> {
    fn name_vertices(&mut self) -> Result<()> {
        let (graph, dominators) = (self.graph, self.dominators);
        let mut ways = Ways::new(graph, dominators, self.objects);
        for vertex in TOP + 1..graph.count as u32 {
            let Some(object) = dominators.object(vertex) else {
                continue;
            };
            let node = self.objects.node(object);
            // Only large vertices have a path before it is their turn.
            let is_decided = self.is_decided(vertex);
            let is_large = is_decided || self.is_large(vertex);
            if !is_decided {
                let dominator = dominators.immediate[vertex as usize];
                let is_held_by_root = || {
                    dominators.object(dominator).is_none()
                        && dominators.holders(graph, vertex).first() == Some(&dominator)
                };
                let has_no_step = !is_large || node.type_() == SYMSXP || is_held_by_root();
                let (path, part) = if has_no_step {
                    (self.path(dominator), Part::None)
                } else {
                    self.shared(&mut ways, Target::Vertex(vertex), object, dominator)?
                };
                self.set_path(vertex, path, part);
            }
            let class = match foreign_package(self.known, self.objects, node) {
                Some(package) => FOREIGN | package,
                None => class_of(self.known, self.objects, node),
            };
            let (path, size) = (self.path(vertex), self.objects.size(object));
            self.named.sums.add(path, class, size)?;
            if is_large {
                self.name_children(vertex)?;
            }
        }
        Ok(())
    }

    /// Sets the paths of what a vertex dominates and refers to.
    fn name_children(&mut self, vertex: Vertex) -> Result<()> {
        let path = self.path(vertex);
        let Some(holder) = self.holder(vertex, self.part(vertex)) else {
            return Ok(());
        };
        for reference in 0.. {
            let Some(address) = holder.node.reference(reference) else {
                break;
            };
            if address == 0 || address == self.objects.nil {
                continue;
            }
            let Some(number) = self.objects.number(address) else {
                continue;
            };
            let place = self.graph.places[number as usize].kind();
            let is_dominated = self.dominators.dominator(place) == Some(vertex);
            if !is_dominated || !self.is_worth_a_step(place, number) {
                continue;
            }
            let (step, part) = holder.step(reference, self.objects.node(number));
            let path = self.path_with_step(path, step, number)?;
            match place {
                Kind::Vertex(child) => self.set_path(child, path, part),
                _ => {
                    self.leaves.try_put(number, path)?;
                }
            }
        }
        Ok(())
    }

    /// Whether an object is large enough for a step of its own, and has none yet.
    fn is_worth_a_step(&self, place: Kind, object: u32) -> bool {
        match place {
            Kind::Vertex(vertex) => !self.is_decided(vertex) && self.is_large(vertex),
            _ => {
                self.objects.size(object) >= self.least
                    && self.objects.node(object).type_() != CHARSXP
            }
        }
    }

    /// `None` for a root.
    fn holder(&self, vertex: Vertex, part: Part) -> Option<Holder<'n, 'm>> {
        let object = self.dominators.object(vertex)?;
        Some(Holder::new(self.known, self.objects, object, part))
    }

    /// The path with a step, if there is one.
    fn path_with_step(&mut self, path: PathId, step: Option<Step>, object: u32) -> Result<PathId> {
        let Some((kind, name)) = step else {
            return Ok(path);
        };
        self.named.paths.enter(PathNode {
            up: path,
            kind,
            name,
            class: class_of_value(self.known, self.objects, self.objects.node(object)),
            has_text: false,
        })
    }

    fn root_path(&mut self, name: String) -> Result<PathId> {
        let name = self.text_number(name)?;
        self.named.paths.enter(PathNode {
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
        let number = self.named.texts.len() as u64;
        self.text_numbers.try_put(owned(&text)?, number)?;
        self.named.texts.try_push(text)?;
        Ok(number)
    }

    /// Adds the objects without vertices.
    fn add_leaves(&mut self) -> Result<()> {
        let mut ways = Ways::new(self.graph, self.dominators, self.objects);
        for object in 0..self.objects.count {
            let place = self.graph.places[object as usize].kind();
            let (Kind::Leaf(_) | Kind::Shared(_), Some(dominator)) =
                (place, self.dominators.dominator(place))
            else {
                continue;
            };
            let path = match (self.leaves.get(&object), place) {
                (Some(&path), _) => path,
                (None, Kind::Shared(row)) if self.is_worth_a_step(place, object) => {
                    let target = Target::Shared(row);
                    self.shared(&mut ways, target, object, dominator)?.0
                }
                _ => self.path(dominator),
            };
            let type_ = self.objects.node(object).type_();
            let size = self.objects.size(object);
            self.named.sums.add(path, u64::from(type_.0), size)?;
        }
        Ok(())
    }

    fn set_path(&mut self, vertex: Vertex, path: PathId, part: Part) {
        self.vertices[vertex as usize] = path | (part as u32) << PATH_BITS | DECIDED;
    }

    fn is_decided(&self, vertex: Vertex) -> bool {
        self.vertices[vertex as usize] & DECIDED != 0
    }

    /// Whether a vertex without a path is large enough for a step of its own.
    fn is_large(&self, vertex: Vertex) -> bool {
        u64::from(self.vertices[vertex as usize]) * 8 >= self.least
    }

    fn path(&self, vertex: Vertex) -> PathId {
        match self.vertices[vertex as usize] {
            decided if decided & DECIDED != 0 => decided % (1 << PATH_BITS),
            _ => EMPTY,
        }
    }

    fn part(&self, vertex: Vertex) -> Part {
        Part::from_number((self.vertices[vertex as usize] & !DECIDED) >> PATH_BITS)
    }
}
