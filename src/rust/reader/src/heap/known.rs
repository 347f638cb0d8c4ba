//! What is known of R's objects by the addresses that R exports, and texts of names.

use super::damage::Damage;
use super::objects::Objects;
use crate::target::exports::Exports;
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryGrow, owned};
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

const NAMES: [&str; 13] = [
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
    variables::PROTECTED,
    variables::PROTECTED_TOP,
    variables::NODE_STACK_TOP,
];

/// More attributes than an object has.
const MOST_ATTRIBUTES: usize = 1000;

/// Where R's variables with these addresses are.
#[derive(Debug, Clone)]
pub struct Places {
    pieces: [Piece; NAMES.len()],
    release: u64,
}

impl Places {
    /// `modules` are [`Target::modules`].
    pub fn find(memory: &mut impl Memory, modules: &[u64]) -> Result<Places> {
        let mut names = [variables::RELEASE; NAMES.len() + 1];
        names[1..].copy_from_slice(&NAMES);
        let exports = Exports::find(memory, modules.iter().copied(), names)?;
        let mut pieces = [Piece {
            address: 0,
            size: 8,
        }; NAMES.len()];
        for (piece, name) in pieces.iter_mut().zip(NAMES) {
            piece.address = exports.get(name).ok_or_else(|| unknown(name))?;
        }
        let release = exports.get(variables::RELEASE).unwrap_or(0);
        Ok(Places { pieces, release })
    }
}

impl Known {
    pub fn read(memory: &mut impl Memory, places: &Places) -> Result<Known> {
        let mut words = [0; 8 * NAMES.len()];
        if memory.read_pieces(&places.pieces, &mut words) < places.pieces.len() {
            return Err(Error::Process(message!("Its memory cannot be read.")));
        }
        let word = |name| {
            let number = NAMES.iter().position(|known| *known == name);
            at(&words, number.unwrap_or(NAMES.len()) * 8)
        };
        // A number of pointers, an `int`.
        let protected = word(variables::PROTECTED_TOP) & 0x7fff_ffff;
        let stack = word(variables::PROTECTED);
        Ok(Known {
            nil: word(variables::NIL),
            global: word(variables::GLOBAL),
            base: word(variables::BASE),
            empty: word(variables::EMPTY),
            unbound: word(variables::UNBOUND),
            missing: word(variables::MISSING),
            namespaces: word(variables::NAMESPACES),
            names_symbol: word(variables::NAMES_SYMBOL),
            class_symbol: word(variables::CLASS_SYMBOL),
            name_symbol: word(variables::NAME_SYMBOL),
            protected: stack..stack.saturating_add(protected * 8),
            node_stack_top: word(variables::NODE_STACK_TOP),
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

fn unknown(name: &str) -> Error {
    Error::Process(message!(
        "It runs a version of R whose heap is unknown: it has no variable `{name}`."
    ))
}
