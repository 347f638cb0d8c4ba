//! What R itself holds: the roots of all references.
//!
//! R's global environment and its namespaces give good names, but what is bound there is referred to from many other
//! places as well: from attached packages, caches and the stack of protected objects. If all of these were equal, most
//! objects would be held by several roots, and only the whole session would hold them all. So roots have phases, and an
//! object belongs to the first phase that reaches it.
//!
//! These are all places at which R's collector begins (`RunGenCollect()` in `memory.c`). They are the same in R 4.2.2 and
//! 4.4.1; `test-memory-roots.R` puts an object in each, in every version of R that it runs with:
//!
//! | in `RunGenCollect()` | where it is found | [`Phase`] |
//! |---|---|---|
//! | `R_GlobalEnv`, `R_BaseEnv`, `R_EmptyEnv`, `R_SymbolTable` | variables that R exports; all symbols | `Names` |
//! | `R_NilValue`, `R_UnboundValue` and other constants | the same; variables of R | `Names`, `R` |
//! | contexts: `cloenv` | the list of contexts | `Calls` |
//! | contexts: `promargs`, `callfun`, `conexit`, `sysparent`, `call`, `bcbody`, `handlerstack`, `restartstack`, `srcref`, `returnValue`; also `vmax`, the `R_VStack` when the call was made | all other words of contexts | `Contexts` |
//! | `R_PPStack`, the node stack | variables that R exports | `Stacks` |
//! | devices: `displayList`, `savedSnapshot`, `eventEnv` | the table of devices | `Listed` |
//! | `R_weak_refs`: values and finalizers | all weak references | `Weak` |
//! | `R_PreciousList`, `R_VStack`, `R_Warnings`, `R_ReturnedValue`, `R_HandlerStack`, `R_RestartStack`, `R_BCbody`, `R_Srcref`, `R_CurrentExpr`, `R_print` | all words of R's variables, whose places are unknown | `R` |
//!
//! The other roots are parts of these that have better names: namespaces and attached packages, the data of callbacks and
//! connections, which are on the precious list, and variables of libraries, whose objects are protected in one of these ways.

use super::known::{Known, bindings};
use super::lists::Lists;
use super::objects::Objects;
use super::running::calls;
use super::variables::{held_by_r, without, words};
use crate::running_r::RunningR;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_core::model::heap::{
    ATTACHED, BASE, BYTE_CODE_STACK, CONNECTION, DEVICE, GLOBAL, IMPORTS, LAST_VALUE, LAZY_LOADING,
    NAMESPACE, PACKAGE, PROTECT_STACK, R_ITSELF, SYMBOL_TABLE, TASK_CALLBACK, VARIABLES, WEAK,
};
use profile_runtime::contexts::objects_on_node_stack;
use profile_runtime::memory::Memory;
use profile_runtime::node::Node;
use profile_runtime::objects::{CDR, ENVSXP, SYMSXP, VALUE};
use std::ops::Range;

/// The phases, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The global environment, namespaces and the base environment.
    Names,
    /// The variables of calls of functions.
    Calls,
    /// What else the contexts of calls refer to, such as the handlers of conditions, which all inner calls share.
    Contexts,
    /// Environments that have the same objects as namespaces: attached packages, imports, tables of lazy loading.
    Copies,
    /// R's stacks of objects.
    Stacks,
    /// Callbacks, connections and graphics devices that R lists.
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
    r: &RunningR,
    known: &Known,
    libraries: &[Library],
    objects: &Objects,
    lists: &Lists,
) -> Result<(Vec<Root>, Symbols)> {
    let mut finder = Finder {
        known,
        objects,
        roots: Vec::new(),
    };
    let (symbols, last_values) = finder.special_symbols()?;
    let namespaces = finder.namespaces()?;
    finder.add_names(&namespaces)?;
    let calls = calls(memory, r, known, objects)?;
    for call in &calls {
        // The environment of the outermost code is the global one.
        let is_own = call.environment != known.global && call.environment != 0;
        let own = [call.environment];
        let own = if is_own { own.as_slice() } else { &[] };
        finder.add(Phase::Calls, &call.name, own, Vec::new())?;
    }
    for call in calls {
        finder.add(Phase::Contexts, &call.name, &[], call.held)?;
    }
    finder.add_copies(&namespaces)?;
    finder.add(Phase::Copies, LAST_VALUE.text(), &[], last_values)?;
    finder.add_stacks(memory, r)?;
    let variables = without(&r.variables, &lists.variable())?;
    let by_r = held_by_r(memory, &variables, known, objects)?;
    for callback in by_r.callbacks {
        let name = TASK_CALLBACK.of(&callback.name)?;
        finder.add_holder(Phase::Listed, &name, [callback.data])?;
    }
    for connection in by_r.connections {
        let name = CONNECTION.of(&connection.name)?;
        finder.add_holder(Phase::Listed, &name, [connection.object])?;
    }
    for device in by_r.devices {
        let name = DEVICE.of(&message!("{}", device.number))?;
        finder.add_holder(Phase::Listed, &name, device.objects)?;
    }
    let weak = objects.weak_references.iter();
    let weak = weak.map(|&number| objects.address(number));
    finder.add_holder(Phase::Weak, WEAK.text(), weak)?;
    finder.add_libraries(memory, libraries)?;
    finder.add(Phase::R, &VARIABLES.of("R")?, &[], by_r.held)?;
    finder.add(Phase::R, SYMBOL_TABLE.text(), &[], by_r.tables)?;
    Ok((finder.roots, symbols))
}

struct Finder<'f, 'm> {
    known: &'f Known,
    objects: &'f Objects<'m>,
    roots: Vec<Root>,
}

impl Finder<'_, '_> {
    fn add(&mut self, phase: Phase, name: &str, own: &[u64], held: Vec<u64>) -> Result<()> {
        let mut root = Root {
            phase,
            name: owned(name)?,
            own: Vec::new(),
            held,
            takes_lazy: name == LAZY_LOADING.text(),
        };
        root.own.try_extend(own)?;
        self.roots.try_push(root)
    }

    /// Adds a root without objects of its own.
    fn add_holder(
        &mut self,
        phase: Phase,
        name: &str,
        objects: impl IntoIterator<Item = u64>,
    ) -> Result<()> {
        let mut held = Vec::new();
        for object in objects {
            held.try_push(object)?;
        }
        self.add(phase, name, &[], held)
    }

    /// The symbols with a special role, and the values of [`Symbols::last`].
    fn special_symbols(&self) -> Result<(Symbols, Vec<u64>)> {
        let mut symbols = Symbols::default();
        let mut last_values = Vec::new();
        for &number in &self.objects.symbols {
            let address = self.objects.address(number);
            let name = self.known.text_bytes(self.objects, address);
            if name.starts_with(b"env::") {
                symbols.lazy.try_push(address)?;
            }
            if name == b".Last.value" || name == b".Traceback" {
                symbols.last.try_push(address)?;
                last_values.try_push(self.objects.node(number).word(VALUE))?;
            }
        }
        symbols.last.sort_unstable();
        symbols.lazy.sort_unstable();
        Ok((symbols, last_values))
    }

    /// The names and environments of all namespaces.
    fn namespaces(&self) -> Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for (name, environment) in bindings(self.objects, self.known.namespaces)? {
            found.try_push((self.known.text(self.objects, name)?, environment))?;
        }
        Ok(found)
    }

    /// The global environment, namespaces, and what R itself has.
    fn add_names(&mut self, namespaces: &[(String, u64)]) -> Result<()> {
        let known = self.known;
        self.add(Phase::Names, GLOBAL.text(), &[known.global], Vec::new())?;
        for (name, environment) in namespaces {
            let name = NAMESPACE.of(name)?;
            self.add(Phase::Names, &name, &[*environment], Vec::new())?;
        }
        let constants = [
            known.namespaces,
            self.objects.nil,
            known.empty,
            known.unbound,
            known.missing,
            known.base,
        ];
        self.add(Phase::Names, R_ITSELF.text(), &constants, Vec::new())?;
        // Symbols are never freed. Their values are the variables of the base environment.
        let mut symbols = Vec::new();
        for &number in &self.objects.symbols {
            symbols.try_push(self.objects.address(number))?;
        }
        self.add(Phase::Names, BASE.text(), &symbols, Vec::new())
    }

    /// Tables of lazy loading, attached packages, and imports of namespaces.
    fn add_copies(&mut self, namespaces: &[(String, u64)]) -> Result<()> {
        let (known, objects) = (self.known, self.objects);
        self.add(Phase::Copies, LAZY_LOADING.text(), &[], Vec::new())?;
        let mut environment = objects.at(known.global).map_or(0, |node| node.word(CDR));
        for _ in 0..MOST_ATTACHED {
            let Some(node) = objects.typed(environment, ENVSXP) else {
                break;
            };
            if environment != known.base && environment != known.empty {
                let name = self.name_of_attached(node)?;
                self.add(Phase::Copies, &name, &[environment], Vec::new())?;
            }
            environment = node.word(CDR);
        }
        for (name, environment) in namespaces.iter().filter(|(name, _)| name != "base") {
            if let Some(node) = objects.typed(*environment, ENVSXP) {
                let name = IMPORTS.of(name)?;
                self.add(Phase::Copies, &name, &[node.word(CDR)], Vec::new())?;
            }
        }
        Ok(())
    }

    fn name_of_attached(&self, environment: Node) -> Result<String> {
        let (known, objects) = (self.known, self.objects);
        let name = known.attribute(objects, environment, known.name_symbol);
        let name = match name.and_then(|name| known.first_text(objects, name)) {
            Some(name) => known.text(objects, name)?,
            None => owned("environment")?,
        };
        // Users attach data frames with other names.
        if name.starts_with(PACKAGE.text()) {
            Ok(name)
        } else {
            ATTACHED.of(&name)
        }
    }

    fn add_stacks(&mut self, memory: &mut impl Memory, r: &RunningR) -> Result<()> {
        let protected = words(memory, self.known.protected.clone())?;
        self.add(Phase::Stacks, PROTECT_STACK.text(), &[], protected)?;
        let end = self.known.node_stack_top.min(r.node_stack.end);
        let nodes = words(memory, r.node_stack.start..end)?;
        let name = BYTE_CODE_STACK.text();
        self.add_holder(Phase::Stacks, name, objects_on_node_stack(&nodes))
    }

    fn add_libraries(&mut self, memory: &mut impl Memory, libraries: &[Library]) -> Result<()> {
        for library in libraries {
            let mut held = Vec::new();
            for range in &library.variables {
                for word in words(memory, range.clone())? {
                    let node = self.objects.at(word);
                    let is_held = node.is_some_and(|node| node.type_() != SYMSXP);
                    if is_held && self.objects.is_used_at(word) {
                        held.try_push(word)?;
                    }
                }
            }
            if !held.is_empty() {
                let name = VARIABLES.of(&library.name)?;
                self.add(Phase::Libraries, &name, &[], held)?;
            }
        }
        Ok(())
    }
}

/// More environments than anybody attaches.
const MOST_ATTACHED: usize = 10_000;
