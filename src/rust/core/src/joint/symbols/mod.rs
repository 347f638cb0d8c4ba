//! Symbolization: finds the functions, files and lines of addresses, after the run.
//!
//! Names are taken from the first of these sources that has one:
//!
//! 1. Debug information (`dwarf`, `lines`), in the file itself or in a separate file
//!    (`separate`): functions, including inlined ones, with files and lines.
//! 2. The symbol table of the file (`elf`), if the address is inside a symbol. The nearest symbol
//!    before the address is not used: a stripped library has few symbols, and all its other
//!    functions would get their names.
//! 3. The procedure linkage table (`stubs`): `memcpy@plt` is the code that calls a function of another file.
//! 4. `module+0x1234`, with the start address of the function ([`bounds`]) or, if that is unknown,
//!    the address itself.
//!
//! A file may have changed since it was loaded, so it is used only if its build id equals the one
//! in memory. If a source is damaged, the next one is used; the only error is a lack of memory.

#[cfg(target_os = "linux")]
mod bounds;
#[cfg(target_os = "linux")]
mod debug_info;
#[cfg(target_os = "linux")]
mod dwarf;
#[cfg(target_os = "linux")]
mod elf;
mod files;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod lines;
#[cfg_attr(target_os = "linux", path = "module.rs")]
#[cfg_attr(not(target_os = "linux"), path = "unsupported.rs")]
mod module;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod ranges;
#[cfg(target_os = "linux")]
mod separate;
#[cfg(target_os = "linux")]
mod stubs;
mod symbol;
#[cfg(target_os = "linux")]
mod units;

pub use files::Files;
pub use symbol::{NameSource, Symbol};

use super::recording::Module;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow};
use crate::model::Symbols;
use module::ModuleSymbols;
use std::path::PathBuf;
use symbol::unnamed;

/// The folder with separate debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// Looks up addresses in the files of modules. Each file is opened when it is first needed.
pub struct Symbolizer<'a> {
    modules: &'a [Module],
    files: &'a Files,
    debug_folders: Vec<PathBuf>,
    opened: Vec<Opened<'a>>,
}

#[derive(Default)]
struct Opened<'a> {
    symbols: Option<ModuleSymbols<'a>>,
    /// The information that the symbols contained so far.
    found: Symbols,
}

impl<'a> Symbolizer<'a> {
    /// `files` owns the bytes that are read.
    pub fn new(modules: &'a [Module], files: &'a Files) -> Symbolizer<'a> {
        Symbolizer::with_debug_folders(modules, files, Vec::from([PathBuf::from(DEBUG_FOLDER)]))
    }

    /// A symbolizer that looks for separate files with debug information in these folders instead of `/usr/lib/debug`.
    pub fn with_debug_folders(
        modules: &'a [Module],
        files: &'a Files,
        debug_folders: Vec<PathBuf>,
    ) -> Symbolizer<'a> {
        Symbolizer {
            modules,
            files,
            debug_folders,
            opened: Vec::new(),
        }
    }

    /// The functions at an address, innermost first, at least one. All except the last one are
    /// inlined.
    ///
    /// `module` is a row in the modules. The address is an address in memory inside an instruction;
    /// for a call, it is not the return address.
    pub fn at(&mut self, module: usize, address: u64) -> Result<Vec<Symbol>> {
        let Some(about) = self.modules.get(module) else {
            return [unnamed("", address)?].into_iter().try_vec();
        };
        let opened = match self.opened.get_mut(module) {
            Some(opened) => opened,
            None => {
                let more = (self.opened.len()..self.modules.len()).map(|_| Opened::default());
                self.opened.try_extend_from(more)?;
                &mut self.opened[module]
            }
        };
        let source = match &mut opened.symbols {
            Some(source) => source,
            unopened => {
                unopened.insert(ModuleSymbols::open(about, self.files, &self.debug_folders)?)
            }
        };
        // Addresses below the bias wrap around, and the results are not in the file either.
        let address = address.wrapping_sub(about.bias);
        let mut symbols = source.at(address)?;
        for symbol in &symbols {
            opened.found.functions |= symbol.name_source != NameSource::Address;
            opened.found.filenames |= !symbol.filename.is_empty();
            opened.found.line_numbers |= symbol.line != 0;
            // Debug information contains all inlined functions, so a viewer would not find more.
            opened.found.inline_frames |= symbol.name_source == NameSource::DebugInformation;
        }
        let outermost = symbols.last_mut();
        if let Some(outermost) =
            outermost.filter(|symbol| symbol.name_source == NameSource::Address)
        {
            let start = source.start(address)?.unwrap_or(address);
            let unnamed = unnamed(&about.path, start)?;
            outermost.name = unnamed.name;
            outermost.system_name = unnamed.system_name;
        }
        Ok(symbols)
    }

    /// The hash of the file of a module that OpenTelemetry defines. `None` if the file cannot be read,
    /// or is not the one that was loaded.
    pub fn file_hash(&self, module: usize) -> Result<Option<[u8; 16]>> {
        match self.modules.get(module) {
            Some(about) => module::file_hash(about, self.files),
            None => Ok(None),
        }
    }

    /// The information that the symbols of a module contained so far.
    pub fn found(&self, module: usize) -> Symbols {
        self.opened
            .get(module)
            .map_or_else(Symbols::default, |opened| opened.found)
    }
}
