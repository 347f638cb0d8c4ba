//! What R itself holds: the roots of all references.
//!
//! R's global environment and its namespaces give good names, but what is bound there is referred to from many other
//! places as well: from attached packages, caches and the stack of protected objects. If all of these were equal, most
//! objects would be held by several roots, and only the whole session would hold them all. So roots have phases, and an
//! object belongs to the first phase that reaches it.

use super::damage::Damage;
use super::known::Known;
use super::lists::Lists;
use super::objects::Objects;
use super::running::calls;
use super::variables::{of_r, without, words};
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::model::heap::{
    ATTACHED, BASE, BYTE_CODE_STACK, CONNECTION, GLOBAL, IMPORTS, LAST_VALUE, LAZY_LOADING,
    NAMESPACE, PACKAGE, PROTECT_STACK, R_ITSELF, SYMBOL_TABLE, TASK_CALLBACK, VARIABLES, WEAK,
};
use profile_runtime::contexts::objects_on_node_stack;
use profile_runtime::memory::Memory;
use profile_runtime::objects::{
    CAR, CDR, ENVSXP, FRAME, HASHTAB, LISTSXP, SYMSXP, TAG, VALUE, VECSXP,
};
use std::ops::Range;

/// The phases, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The global environment, namespaces and the base environment.
    Names,
    /// Calls of functions.
    Calls,
    /// Environments that have the same objects as namespaces: attached packages, imports, tables of lazy loading.
    Copies,
    /// R's stacks of objects.
    Stacks,
    /// Callbacks and connections that R lists.
    Listed,
    /// Finalizers, and values of weak references.
    Weak,
    /// Variables of libraries.
    Libraries,
    /// Variables of R.
    R,
    /// Objects that nothing holds, as far as is known.
    None,
}

/// A root, and the objects that it holds.
#[derive(Debug)]
pub struct Root {
    pub phase: Phase,
    pub name: String,
    /// Addresses of objects that belong to this root, whatever else refers to them.
    pub own: Vec<u64>,
    /// Addresses of other objects that it refers to; they need not be valid.
    pub held: Vec<u64>,
    /// Whether it also holds the environments that were skipped so far, see [`Symbols::lazy`].
    pub takes_lazy: bool,
}

/// Symbols with a special role.
#[derive(Debug, Default)]
pub struct Symbols {
    /// `.Last.value` and `.Traceback`, whose values have other names in most cases.
    pub last: Vec<u64>,
    /// `env::1`, `env::2`, ...: by these names, the table of lazy loading of a package refers to its environments.
    pub lazy: Vec<u64>,
}

/// A library, and the ranges of its variables.
#[derive(Debug)]
pub struct Library {
    pub name: String,
    pub variables: Vec<Range<u64>>,
}

/// Finds all roots, in the order of their phases.
pub fn find(
    memory: &mut impl Memory,
    target: &Target,
    known: &Known,
    libraries: &[Library],
    objects: &Objects,
    lists: &Lists,
) -> Result<(Vec<Root>, Symbols)> {
    let mut roots = Vec::new();
    let mut symbols = Symbols::default();
    let mut last_values = Vec::new();
    let mut all_symbols = Vec::new();
    for &number in &objects.symbols {
        let (address, node) = (objects.address(number), objects.node(number));
        let name = known.text_bytes(objects, address);
        if name.starts_with(b"env::") {
            symbols.lazy.try_push(address)?;
        }
        if name == b".Last.value" || name == b".Traceback" {
            symbols.last.try_push(address)?;
            last_values.try_push(node.word(VALUE))?;
        }
        all_symbols.try_push(address)?;
    }
    symbols.last.sort_unstable();
    symbols.lazy.sort_unstable();

    let mut add = |phase, name: &str, own: &[u64], held: Vec<u64>| {
        let mut root = Root {
            phase,
            name: owned(name)?,
            own: Vec::new(),
            held,
            takes_lazy: false,
        };
        root.own.try_extend(own)?;
        roots.try_push(root)
    };
    add(Phase::Names, GLOBAL.text(), &[known.global], Vec::new())?;
    let mut imports = Vec::new();
    for (name, environment) in bindings(objects, known.namespaces)? {
        let name = known.text(objects, name)?;
        let root = NAMESPACE.of(&name)?;
        add(Phase::Names, &root, &[environment], Vec::new())?;
        if let Some(node) = objects.typed(environment, ENVSXP) {
            if name != "base" {
                imports.try_push((name, node.word(CDR)))?;
            }
        }
    }
    let constants = [
        known.namespaces,
        objects.nil,
        known.empty,
        known.unbound,
        known.missing,
        known.base,
    ];
    add(Phase::Names, R_ITSELF.text(), &constants, Vec::new())?;
    // Symbols are never freed. Their values are the variables of the base environment.
    add(Phase::Names, BASE.text(), &all_symbols, Vec::new())?;
    for call in calls(memory, target, known, objects)? {
        // The environment of the outermost code is the global one.
        let is_own = call.environment != known.global && call.environment != 0;
        let own = [call.environment];
        let own = if is_own { own.as_slice() } else { &[] };
        add(Phase::Calls, &call.name, own, call.held)?;
    }
    add(Phase::Copies, LAZY_LOADING.text(), &[], Vec::new())?;
    // Attached packages.
    let mut environment = objects.at(known.global).map_or(0, |node| node.word(CDR));
    for _ in 0..MOST_ATTACHED {
        let Some(node) = objects.typed(environment, ENVSXP) else {
            break;
        };
        let name = known.attribute(objects, node, known.name_symbol);
        let name = match name.and_then(|name| known.first_text(objects, name)) {
            Some(name) => known.text(objects, name)?,
            None => owned("environment")?,
        };
        // Such as the data frames that users attach.
        let name = if name.starts_with(PACKAGE.text()) {
            name
        } else {
            ATTACHED.of(&name)?
        };
        if environment != known.base && environment != known.empty {
            add(Phase::Copies, &name, &[environment], Vec::new())?;
        }
        environment = node.word(CDR);
    }
    for (name, environment) in imports {
        let name = IMPORTS.of(&name)?;
        add(Phase::Copies, &name, &[environment], Vec::new())?;
    }
    add(Phase::Copies, LAST_VALUE.text(), &[], last_values)?;
    let protected = words(memory, known.protected.clone())?;
    add(Phase::Stacks, PROTECT_STACK.text(), &[], protected)?;
    let nodes = target.node_stack.start..known.node_stack_top.min(target.node_stack.end);
    let nodes = words(memory, nodes)?;
    let mut on_stack = Vec::new();
    for object in objects_on_node_stack(&nodes) {
        on_stack.try_push(object)?;
    }
    add(Phase::Stacks, BYTE_CODE_STACK.text(), &[], on_stack)?;
    let variables = without(&target.variables, &lists.variable())?;
    let of_r = of_r(memory, &variables, known, objects)?;
    for callback in of_r.callbacks {
        let mut held = Vec::new();
        held.try_push(callback.data)?;
        let name = TASK_CALLBACK.of(&callback.name)?;
        add(Phase::Listed, &name, &[], held)?;
    }
    for connection in of_r.connections {
        let mut held = Vec::new();
        held.try_push(connection.object)?;
        let name = CONNECTION.of(&connection.name)?;
        add(Phase::Listed, &name, &[], held)?;
    }
    let mut weak = Vec::new();
    for &number in &objects.weak_references {
        weak.try_push(objects.address(number))?;
    }
    add(Phase::Weak, WEAK.text(), &[], weak)?;
    for library in libraries {
        let mut held = Vec::new();
        for range in &library.variables {
            for word in words(memory, range.clone())? {
                let is_object = objects.at(word).is_some_and(|node| node.type_() != SYMSXP);
                if is_object && objects.is_used_at(word) {
                    held.try_push(word)?;
                }
            }
        }
        if !held.is_empty() {
            let name = VARIABLES.of(&library.name)?;
            add(Phase::Libraries, &name, &[], held)?;
        }
    }
    add(Phase::R, &VARIABLES.of("R")?, &[], of_r.held)?;
    add(Phase::R, SYMBOL_TABLE.text(), &[], of_r.tables)?;
    roots
        .iter_mut()
        .for_each(|root| root.takes_lazy = root.name == LAZY_LOADING.text());
    Ok((roots, symbols))
}

/// More environments than anybody attaches.
const MOST_ATTACHED: usize = 10_000;

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
