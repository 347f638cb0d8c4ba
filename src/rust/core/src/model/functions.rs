//! Functions: one row for each distinct function of a source file.
//!
//! Functions of the same name in two source files are two rows, as in pprof. `system_name`
//! is the linker's name of native code; R functions have one name, so both are equal, except that
//! the name may have the title of a call, see [`super::titled`].
//! `start_line` 0 means unknown: Rprof does not record where a function starts.

use super::native_id::NativeId;
use super::strings::{StringId, Strings};
use super::titled::without_title;
use crate::collections::{Interner, id};
use crate::error::Result;

id!(FunctionId, "functions");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function {
    pub name: StringId,
    pub system_name: StringId,
    pub filename: StringId,
    pub start_line: i64,
    pub recorded: Names,
    pub native_id: Option<NativeId>,
    /// The package to which it belongs, and how that was determined.
    pub package: Option<StringId>,
    pub package_from: Option<StringId>,
}

impl Function {
    /// A function with one name, of which nothing else is known.
    pub fn named(name: StringId, filename: StringId) -> Function {
        Function {
            name,
            system_name: name,
            filename,
            start_line: 0,
            recorded: Names::Name,
            native_id: None,
            package: None,
            package_from: None,
        }
    }

    /// Sets the name to this one, which may have the title of a call. The system name is the name without the title.
    pub fn set_name(&mut self, name: &str, strings: &mut Strings) -> Result<()> {
        self.name = strings.intern(name)?;
        self.system_name = strings.intern(without_title(name))?;
        if self.name != self.system_name {
            self.recorded = Names::Both;
        }
        Ok(())
    }

    /// A function as a file records it: its name, its system name and its source file, each
    /// of which may be empty.
    pub fn recorded(
        [name, system_name]: [StringId; 2],
        filename: StringId,
        start_line: i64,
        strings: &mut Strings,
    ) -> Result<Function> {
        let is_recorded = |text| !strings.get(text).is_empty();
        let (name, system_name, recorded) = match (is_recorded(name), is_recorded(system_name)) {
            (true, true) => (name, system_name, Names::Both),
            (true, false) => (name, name, Names::Name),
            (false, true) => (system_name, system_name, Names::SystemName),
            (false, false) => {
                let unknown = strings.intern(UNKNOWN)?;
                (unknown, unknown, Names::Neither)
            }
        };
        Ok(Function {
            system_name,
            start_line,
            recorded,
            ..Function::named(name, filename)
        })
    }
}

/// The name of a function without a recorded name.
pub const UNKNOWN: &str = "<unknown>";
/// The names of the innermost frames during a garbage collection of R, and while R copies an object.
pub const COLLECTION: &str = "<GC>";
pub const COPYING: &str = "<copy>";
/// The name of the only frame while R runs a finalizer that is not R code, wherever the garbage collection happens.
pub const FINALIZER: &str = "<finalizer>";

/// Which names of a function a profile records. If only one is recorded, the other is a copy of it;
/// if none is recorded, both are [`UNKNOWN`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    Name,
    SystemName,
    Both,
    Neither,
}

pub type Functions = Interner<Vec<Function>, FunctionId>;
