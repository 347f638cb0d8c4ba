//! The words of heap snapshots: the kind of their sources, the types of their frames, and the names of their roots.
//!
//! The stacks of a snapshot are not calls: the outermost frame is a root, such as the global environment, the frames below
//! it are what holds objects, and the innermost one is the type of these objects. The reader writes these words, and
//! analyses and views recognise snapshots by them; the page and R get them from here.

use super::SourceKind;
use crate::error::Result;
use crate::limits::memory::{owned, written};

/// The kind of sources that are snapshots.
pub const SNAPSHOT: SourceKind = SourceKind::named("heap");

/// What follows the name of an object that has several holders.
pub const SHARED: &str = " [shared]";

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapFrame {
    Root,
    Binding,
    Element,
    Environment,
    Type,
    Attribute,
    Code,
}

impl HeapFrame {
    /// In the order in which the page gives them colours: the first ones differ most.
    pub const ALL: [HeapFrame; 7] = [
        HeapFrame::Root,
        HeapFrame::Binding,
        HeapFrame::Element,
        HeapFrame::Environment,
        HeapFrame::Type,
        HeapFrame::Attribute,
        HeapFrame::Code,
    ];

    pub fn name(self) -> &'static str {
        match self {
            HeapFrame::Root => "root",
            HeapFrame::Binding => "binding",
            HeapFrame::Element => "element",
            HeapFrame::Environment => "environment",
            HeapFrame::Type => "type",
            HeapFrame::Attribute => "attribute",
            HeapFrame::Code => "code",
        }
    }

    /// For the help page.
    pub fn doc(self) -> &'static str {
        match self {
            HeapFrame::Root => "where R begins to look for objects in use",
            HeapFrame::Binding => "a variable, or a named element of a list",
            HeapFrame::Element => {
                "elements without names, what native objects keep, and parts of memory that is not R's heap"
            }
            HeapFrame::Environment => {
                "the environment of a function or promise, or the parent of an environment"
            }
            HeapFrame::Type => "the class or type of the objects, innermost",
            HeapFrame::Attribute => "an attribute",
            HeapFrame::Code => "constants and functions in code",
        }
    }

    pub fn named(name: &str) -> Option<HeapFrame> {
        HeapFrame::ALL
            .into_iter()
            .find(|frame| frame.name() == name)
    }
}

/// The name of a root, or the start of the names of roots that are followed by a name of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootName {
    text: &'static str,
    is_start: bool,
}

impl RootName {
    /// The name of a root without a name of its own.
    pub fn text(self) -> &'static str {
        self.text
    }

    /// The name of the root with this name of its own.
    pub fn of(self, own: &str) -> Result<String> {
        if self.is_start {
            written(format_args!("{}{own}", self.text))
        } else {
            owned(self.text)
        }
    }

    fn is(self, name: &str) -> bool {
        match name.strip_prefix(self.text) {
            Some("") => true,
            // An object with several holders, the first one of which is this root.
            Some(rest) => self.is_start || rest.starts_with(' ') && rest.ends_with(SHARED),
            None => false,
        }
    }
}

macro_rules! roots {
    ($($name:ident $text:literal $(+ $own:ident)?,)*) => {
        $(pub const $name: RootName = RootName { text: $text, is_start: roots!(@ $($own)?) };)*
        const ROOTS: &[RootName] = &[$($name),*];
    };
    (@) => { false };
    (@ $own:ident) => { true };
}

roots! {
    SEVERAL "several roots",
    GLOBAL "globalenv",
    NAMESPACE "namespace:" + name,
    R_ITSELF "R itself",
    BASE "base",
    CALLS "calls",
    CALL "call of " + function,
    LAZY_LOADING "lazy loading",
    PACKAGE "package:" + name,
    ATTACHED "attached " + name,
    IMPORTS "imports of " + package,
    LAST_VALUE ".Last.value",
    PROTECT_STACK "protect stack",
    BYTE_CODE_STACK "byte code stack",
    TASK_CALLBACK "task callback " + name,
    CONNECTION "connection " + name,
    DEVICE "graphics device " + number,
    WEAK "finalizers and weak references",
    VARIABLES "C variables of " + library,
    SYMBOL_TABLE "symbol table",
    NO_HOLDER "no holder found",
    GARBAGE "garbage not collected yet",
    FREE "free cells of R",
    NOT_R "not R's heap",
}

/// Whether a frame is a root by its name. Formats such as pprof have no types of frames.
pub fn is_root_name(name: &str) -> bool {
    ROOTS.iter().any(|root| root.is(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_recognised_by_their_names() {
        let names = [
            "globalenv",
            "base",
            "namespace:stats",
            "package:stats",
            "attached mtcars",
            "base $x & namespace:stats $y [shared]",
            "globalenv $one & call of f() $x [shared]",
        ];
        for name in names {
            assert!(is_root_name(name), "{name}");
        }
        let others = [
            "",
            "global",
            "globalenv2",
            "base $x",
            "base::print",
            "my base $x [shared]",
            "numeric",
        ];
        for name in others {
            assert!(!is_root_name(name), "{name}");
        }
        assert_eq!(NAMESPACE.of("stats").unwrap(), "namespace:stats");
        assert_eq!(GLOBAL.of("").unwrap(), "globalenv");
    }

    #[test]
    fn types_of_frames_have_different_names() {
        for frame in HeapFrame::ALL {
            assert_eq!(HeapFrame::named(frame.name()), Some(frame));
        }
        assert_eq!(HeapFrame::named("native"), None);
    }
}
