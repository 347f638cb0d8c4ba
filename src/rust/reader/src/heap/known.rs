//! What is known of R's objects by the addresses that R exports, and texts of names.

use super::damage::Damage;
use super::objects::Objects;
use crate::running_r::Named;
use crate::running_r::exports::Exports;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, TryGrow, owned};
use profile_core::message;
use profile_core::text::decode;
use profile_runtime::memory::{Memory, Piece, at};
use profile_runtime::node::{LONGEST_TEXT, Node};
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CHARSXP, ENVSXP, FRAME, HASHTAB, LISTSXP, PRINTNAME, STRSXP, SYMSXP, TAG,
    VECSXP,
};
use profile_runtime::variables;
use std::ops::Range;

/// Addresses of objects and stacks.
#[derive(Debug, Clone)]
pub struct Known {
    pub nil: u64,
    pub global: u64,
    pub base: u64,
    pub empty: u64,
    pub unbound: u64,
    pub missing: u64,
    /// The registry of namespaces, an environment.
    pub namespaces: u64,
    /// Symbols.
    pub names_symbol: u64,
    pub class_symbol: u64,
    pub name_symbol: u64,
    /// The stack of protected objects.
    pub protected: Range<u64>,
    pub node_stack_top: u64,
    /// The function `R_ReleaseObject()`, or 0.
    pub release: u64,
}

/// R's variables with these addresses. Without [`STACKS`], what only they refer to has no known holder.
const NAMES: [&str; 10] = [
    variables::NIL,
    variables::GLOBAL,
    variables::BASE,
    variables::EMPTY,
    variables::UNBOUND,
    variables::MISSING,
    variables::NAMESPACES,
    variables::NAMES_SYMBOL,
    variables::CLASS_SYMBOL,
    variables::NAME_SYMBOL,
];
const STACKS: [&str; 3] = [
    variables::PROTECTED,
    variables::PROTECTED_TOP,
    variables::NODE_STACK_TOP,
];

/// More attributes than an object has.
const MOST_ATTRIBUTES: usize = 1000;

/// Where these variables are.
#[derive(Debug, Clone)]
pub struct Places {
    objects: [Piece; NAMES.len()],
    /// Empty if R does not export all of them.
    stacks: Vec<Piece>,
    release: u64,
}

impl Places {
    /// `modules` are [`RunningR::modules`].
    pub fn find(memory: &mut impl Memory, modules: &[u64], named: &Named) -> Result<Places> {
        let mut names = [variables::RELEASE; 1 + STACKS.len() + NAMES.len()];
        names[1..=STACKS.len()].copy_from_slice(&STACKS);
        names[1 + STACKS.len()..].copy_from_slice(&NAMES);
        let exports = Exports::find(memory, modules.iter().copied(), names)?;
        let piece = |name| exports.get(name).map(|address| Piece { address, size: 8 });
        let mut objects = [Piece {
            address: 0,
            size: 8,
        }; NAMES.len()];
        for (place, name) in objects.iter_mut().zip(NAMES) {
            let why = || message!("it exports no variable `{name}`");
            *place = piece(name).ok_or_else(|| named.unknown("objects", &why()))?;
        }
        let mut stacks = STACKS.into_iter().filter_map(piece).try_vec()?;
        if stacks.len() < STACKS.len() {
            stacks.clear();
        }
        Ok(Places {
            objects,
            stacks,
            release: exports.get(variables::RELEASE).unwrap_or(0),
        })
    }
}

impl Known {
    pub fn read(memory: &mut impl Memory, places: &Places) -> Result<Known> {
        let mut words = [0; 8 * NAMES.len()];
        let mut stacks = [0; 8 * STACKS.len()];
        if memory.read_pieces(&places.objects, &mut words) < places.objects.len()
            || memory.read_pieces(&places.stacks, &mut stacks) < places.stacks.len()
        {
            return Err(Error::Process(message!("Its memory cannot be read.")));
        }
        let [
            nil,
            global,
            base,
            empty,
            unbound,
            missing,
            namespaces,
            names,
            class,
            name,
        ] = std::array::from_fn(|number| at(&words, 8 * number));
        let [stack, top, node_stack_top] = std::array::from_fn(|number| at(&stacks, 8 * number));
        // A number of pointers, an `int`.
        let protected = top & 0x7fff_ffff;
        Ok(Known {
            nil,
            global,
            base,
            empty,
            unbound,
            missing,
            namespaces,
            names_symbol: names,
            class_symbol: class,
            name_symbol: name,
            protected: stack..stack.saturating_add(protected * 8),
            node_stack_top,
            release: places.release,
        })
    }

    /// The bytes of a string or of the name of a symbol; empty for other objects.
    pub fn text_bytes<'m>(&self, objects: &Objects<'m>, address: u64) -> &'m [u8] {
        let text = match objects.typed(address, SYMSXP) {
            Some(symbol) => symbol.word(PRINTNAME),
            None => address,
        };
        let text = objects.typed(text, CHARSXP).map_or(&[][..], Node::text);
        text.get(..LONGEST_TEXT as usize).unwrap_or(text)
    }

    /// A string or the name of a symbol as text; empty for other objects.
    pub fn text(&self, objects: &Objects, address: u64) -> Result<String> {
        owned(&decode(self.text_bytes(objects, address))?.text)
    }

    /// The value of an attribute.
    pub fn attribute(&self, objects: &Objects, node: Node, name: u64) -> Option<u64> {
        if node.type_() == CHARSXP {
            return None;
        }
        let mut cell = node.word(ATTRIBUTES);
        for _ in 0..MOST_ATTRIBUTES {
            if cell == self.nil {
                return None;
            }
            let attribute = objects.typed(cell, LISTSXP)?;
            if attribute.word(TAG) == name {
                return Some(attribute.word(CAR));
            }
            cell = attribute.word(CDR);
        }
        None
    }

    /// The first string of a character vector.
    pub fn first_text(&self, objects: &Objects, address: u64) -> Option<u64> {
        let vector = objects.typed(address, STRSXP)?;
        let is_plain = !vector.is_altrep() && vector.pointers() > 0;
        is_plain.then(|| vector.element(0))
    }
}

/// The variables of an environment: their names, which are symbols, and values.
pub fn bindings(objects: &Objects, address: u64) -> Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let Some(environment) = objects.typed(address, ENVSXP) else {
        return Ok(found);
    };
    let table = objects.typed(environment.word(HASHTAB), VECSXP);
    let in_table = table.map_or(0, |table| table.pointers());
    let chains = (0..in_table).filter_map(|number| Some(table?.element(number)));
    let mut left = objects.count;
    let damage = Damage::Variables(address);
    for mut cell in chains.chain([environment.word(FRAME)]) {
        while let Some(node) = objects.typed(cell, LISTSXP) {
            found.try_push((node.word(TAG), node.word(CAR)))?;
            cell = node.word(CDR);
            left = left.checked_sub(1).ok_or(damage)?;
        }
    }
    Ok(found)
}
