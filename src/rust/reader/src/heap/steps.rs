//! What a reference from one object to another means to people: a binding, an element, an attribute, an environment.
//!
//! Some objects are only means: cells of lists, hash tables, promises, calls, byte code. A reference to or from them is
//! no step of its own, but determines the meaning of the references that follow ([`Part`]).

use super::known::Known;
use super::objects::Objects;
use profile_core::model::HeapFrame;
use profile_runtime::node::{Node, reference};
use profile_runtime::objects::{
    ATTRIBUTES, BCODESXP, CHARSXP, CLOSXP, DOTSXP, ENVSXP, EXPRSXP, EXTPTRSXP, FIRST, LANGSXP,
    LISTSXP, PRINTNAME, PROMSXP, SECOND, STRSXP, SYMSXP, TAG, THIRD, Type, VECSXP, WEAKREFSXP,
};

/// What an object is a part of, which decides what its references mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    None,
    /// The variables of an environment.
    Variables,
    Attributes,
    /// A pairlist.
    List,
    Code,
}

impl Part {
    const ALL: [Part; 5] = [
        Part::None,
        Part::Variables,
        Part::Attributes,
        Part::List,
        Part::Code,
    ];

    /// The part with this number.
    pub fn from_number(number: u32) -> Part {
        Part::ALL
            .get(number as usize)
            .copied()
            .unwrap_or(Part::None)
    }
}

/// The kinds of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Root,
    Binding,
    Element,
    Attribute,
    Closure,
    Parent,
    Promise,
    Code,
    Pointer,
    PointerTag,
    /// The value of a weak reference.
    Value,
    Finalizer,
}

impl Kind {
    pub fn frame(self) -> HeapFrame {
        match self {
            Kind::Root => HeapFrame::Root,
            Kind::Binding => HeapFrame::Binding,
            Kind::Element | Kind::Pointer | Kind::PointerTag | Kind::Value | Kind::Finalizer => {
                HeapFrame::Element
            }
            Kind::Attribute => HeapFrame::Attribute,
            Kind::Closure | Kind::Parent | Kind::Promise => HeapFrame::Environment,
            Kind::Code => HeapFrame::Code,
        }
    }
}

/// A step: its kind, and the address of its name, or 0.
pub type Step = (Kind, u64);

/// An object whose references are steps, or parts of them.
pub struct Holder<'h, 'm> {
    known: &'h Known,
    objects: &'h Objects<'m>,
    pub node: Node<'m>,
    part: Part,
    /// The names of its elements.
    names: Option<Node<'m>>,
}

impl<'h, 'm> Holder<'h, 'm> {
    /// `part` is what the object is a part of.
    pub fn new(
        known: &'h Known,
        objects: &'h Objects<'m>,
        object: u32,
        part: Part,
    ) -> Holder<'h, 'm> {
        let node = objects.node(object);
        Holder {
            known,
            objects,
            node,
            part,
            names: names_of(known, objects, node),
        }
    }

    /// The step to a child, if it is one, and what the child is a part of.
    pub fn step(&self, reference: u32, child: Node) -> (Option<Step>, Part) {
        let (node, part) = (self.node, self.part);
        let inside = match child.type_() {
            LISTSXP => Part::List,
            LANGSXP | DOTSXP | BCODESXP => Part::Code,
            _ => Part::None,
        };
        if reference == reference::ATTRIBUTES {
            return (None, Part::Attributes);
        }
        if node.is_altrep() {
            return (None, inside);
        }
        // Constants and functions in code have no names.
        let in_code = || {
            if is_means(child.type_()) || child.type_() == VECSXP {
                (None, Part::Code)
            } else {
                (Some((Kind::Code, 0)), Part::None)
            }
        };
        match (node.type_(), reference) {
            (SYMSXP, reference::SYMBOL_VALUE) => {
                (Some((Kind::Binding, node.word(PRINTNAME))), inside)
            }
            (SYMSXP | STRSXP, _) => (None, Part::None),
            (LISTSXP, reference::REST) => (None, part),
            (LISTSXP, reference::NAME) => (None, Part::None),
            (LISTSXP, _) => match part {
                Part::Attributes => (Some((Kind::Attribute, node.word(TAG))), inside),
                Part::Code => in_code(),
                _ if node.word(TAG) == self.known.nil => (Some((Kind::Element, 0)), inside),
                _ => (Some((Kind::Binding, node.word(TAG))), inside),
            },
            (CLOSXP, reference::CLOSURE_ENVIRONMENT) => (Some((Kind::Closure, 0)), Part::None),
            (ENVSXP, reference::FRAME | reference::HASH_TABLE) => (None, Part::Variables),
            (ENVSXP, _) => (Some((Kind::Parent, 0)), Part::None),
            // The value of a promise has the name of the promise.
            (PROMSXP, reference::PROMISE_VALUE) => (None, inside),
            (PROMSXP, reference::PROMISE_ENVIRONMENT) => (Some((Kind::Promise, 0)), Part::None),
            (CLOSXP | PROMSXP | LANGSXP | DOTSXP | BCODESXP, _) => in_code(),
            (VECSXP | EXPRSXP, _) => match part {
                Part::Variables => (None, Part::Variables),
                Part::Code => in_code(),
                _ => (Some(self.element(reference)), inside),
            },
            (EXTPTRSXP, reference::PROTECTED) => (Some((Kind::Pointer, 0)), inside),
            (EXTPTRSXP, _) => (Some((Kind::PointerTag, 0)), inside),
            (WEAKREFSXP, reference::WEAK_VALUE) => (Some((Kind::Value, 0)), inside),
            (WEAKREFSXP, _) => (Some((Kind::Finalizer, 0)), inside),
            _ => (None, inside),
        }
    }

    /// The step to an element of a list.
    fn element(&self, reference: u32) -> Step {
        let number = u64::from(reference - reference::FIRST_ELEMENT);
        let name = self.names.map_or(0, |names| names.element(number));
        let is_name = |name: Node| !name.text().is_empty();
        if self.objects.typed(name, CHARSXP).is_some_and(is_name) {
            (Kind::Binding, name)
        } else {
            (Kind::Element, 0)
        }
    }
}

/// Whether objects of this type are only means.
pub fn is_means(type_: Type) -> bool {
    matches!(
        type_,
        SYMSXP | LISTSXP | PROMSXP | LANGSXP | CHARSXP | DOTSXP | BCODESXP
    )
}

/// The names of the elements of a list.
fn names_of<'m>(known: &Known, objects: &Objects<'m>, node: Node) -> Option<Node<'m>> {
    if !matches!(node.type_(), VECSXP | EXPRSXP) || node.is_altrep() {
        return None;
    }
    let names = known.attribute(objects, node, known.names_symbol)?;
    let names = objects.typed(names, STRSXP)?;
    let fits = !names.is_altrep() && names.pointers() == node.pointers();
    fits.then_some(names)
}

/// The class of an object: the address of its name, or, if it has none, the number of its type.
pub fn class_of(known: &Known, objects: &Objects, node: Node) -> u64 {
    if node.has_class() {
        let class = known.attribute(objects, node, known.class_symbol);
        if let Some(class) = class.and_then(|class| known.first_text(objects, class)) {
            return class;
        }
    }
    u64::from(node.type_().0)
}

/// The class of the value that a binding has: that of a promise is the class of its value.
pub fn class_of_value(known: &Known, objects: &Objects, node: Node) -> u64 {
    if node.type_() == PROMSXP && node.field(reference::PROMISE_VALUE) == Some(FIRST) {
        // Before it is evaluated, its value is a symbol.
        let value = objects.at(node.word(FIRST));
        if let Some(value) = value.filter(|value| !is_means(value.type_())) {
            return class_of(known, objects, value);
        }
    }
    class_of(known, objects, node)
}

/// The symbol of the package that defines the class of an ALTREP object, unless it is one of R's own classes. The attributes
/// of the class are a list of the symbols of the class and of the package.
pub fn foreign_package(known: &Known, objects: &Objects, node: Node) -> Option<u64> {
    if !node.is_altrep() {
        return None;
    }
    let class = objects.at(node.word(THIRD))?;
    let first = objects.typed(class.word(ATTRIBUTES), LISTSXP)?;
    let package = objects.typed(first.word(SECOND), LISTSXP)?.word(FIRST);
    let name = known.text_bytes(objects, package);
    (!name.is_empty() && name != b"base").then_some(package)
}
