//! The names of objects that have several holders.

use super::Naming;
use crate::heap::graph::{TOP, Vertex};
use crate::heap::paths::{EMPTY, Node as PathNode, PathId};
use crate::heap::steps::{Kind as StepKind, Part, Step, class_of, is_means};
use crate::heap::ways::{Target, Ways};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut, TryText};
use profile_core::model::heap::SHARED;
use profile_runtime::node::Node;

/// The most steps of a way that are shown for an object with several holders.
const MOST_STEPS: usize = 8;

impl Naming<'_, '_, '_> {
    /// The path of an object with several holders. It has one step from the dominator, named after the shortest way, since
    /// what is on the way does not retain the object.
    pub(super) fn shared(
        &mut self,
        ways: &mut Ways,
        target: Target,
        object: u32,
        dominator: Vertex,
    ) -> Result<(PathId, Part)> {
        let found = ways.find(target, dominator)?;
        let class = class_of(self.known, self.objects, self.objects.node(object));
        let is_means = is_means(self.objects.node(object).type_());
        let mut text = String::new();
        let (mut kind, mut part) = (None, Part::None);
        for way in &found {
            let (start, inner) = match way.split_first() {
                Some((root, rest)) if dominator == TOP => (*root, rest),
                _ => (dominator, way.as_slice()),
            };
            let (steps, inside) = self.steps_along(start, inner, object)?;
            if !text.is_empty() {
                text.try_push_str(" & ")?;
            }
            if dominator == TOP {
                let root = self.named.paths.upwards(self.path(start)).last();
                let root = root.and_then(|root| self.named.texts.get(root.name as usize));
                text.try_push_str(root.map_or("", String::as_str))?;
            }
            let hidden = steps.len().saturating_sub(MOST_STEPS);
            for step in steps.iter().skip(hidden) {
                if !text.is_empty() {
                    text.try_push_char(' ')?;
                }
                text.try_push_str(&self.named.texts_of.step(*step, 0)?)?;
            }
            kind = steps.last().map(|step| step.0);
            part = inside;
        }
        if dominator == TOP {
            kind = Some(StepKind::Root);
        }
        let start = self.path(dominator);
        // An object that is only a means, on a way without steps, belongs to its dominator.
        let Some(kind) = kind.filter(|_| !text.is_empty()) else {
            return Ok((start, part));
        };
        if !is_means {
            text.try_push_str(&self.named.texts_of.suffix(class)?)?;
        }
        text.try_push_str(SHARED)?;
        let path = PathNode {
            up: if dominator == TOP { EMPTY } else { start },
            kind,
            name: self.text_number(text)?,
            class: 0,
            has_text: true,
        };
        Ok((self.named.paths.enter(path)?, part))
    }

    /// The steps from a vertex along a way to an object, and what the object is a part of.
    fn steps_along(
        &mut self,
        start: Vertex,
        way: &[Vertex],
        object: u32,
    ) -> Result<(Vec<Step>, Part)> {
        let mut steps = Vec::new();
        let (mut from, mut part) = (start, self.part(start));
        for &vertex in way {
            let (step, inside) = match self.dominators.object(vertex) {
                Some(next) => self.step_between(from, next, part)?,
                None => (None, Part::None),
            };
            steps.try_extend_from(step.into_iter())?;
            (from, part) = (vertex, inside);
        }
        let (step, inside) = self.step_between(from, object, part)?;
        steps.try_extend_from(step.into_iter())?;
        Ok((steps, inside))
    }

    /// The step from a vertex to an object that it refers to.
    fn step_between(
        &mut self,
        vertex: Vertex,
        object: u32,
        part: Part,
    ) -> Result<(Option<Step>, Part)> {
        let Some(holder) = self.holder(vertex, part) else {
            return Ok((None, Part::None));
        };
        let address = self.objects.address(object);
        // Children of a long list are looked for in their order.
        let start = self.last_references.get(&vertex).copied().unwrap_or(0);
        let Some(reference) = reference_to(holder.node, address, start) else {
            return Ok((None, Part::None));
        };
        self.last_references.try_put(vertex, reference)?;
        Ok(holder.step(reference, self.objects.node(object)))
    }
}

/// The number of a reference to an address; the first one from `start` on, if there are several.
fn reference_to(node: Node, address: u64, start: u32) -> Option<u32> {
    let is_it = |number: &u32| node.reference(*number) == Some(address);
    let is_in = |number: &u32| node.reference(*number).is_some();
    let behind = (start..).take_while(is_in).find(is_it);
    behind.or_else(|| (0..start).find(is_it))
}
