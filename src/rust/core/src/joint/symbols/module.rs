//! The symbols of one module: finds the files that contain them, and combines debug information and
//! symbol tables.

use super::bounds::Bounds;
use super::dwarf::{DebugInformation, Frame};
use super::elf::{Elf, Functions};
use super::files::Files;
use super::stubs::Stubs;
use super::symbol::{DELETED, NameSource, Symbol};
use super::{names, separate};
use crate::error::Result;
use crate::joint::recording::Module;
use crate::limits::memory::{TryCollect, TryGrow, owned, written};
use crate::model::UNKNOWN;
use std::path::{Path, PathBuf};

pub struct ModuleSymbols<'f> {
    debug: Option<DebugInformation<'f>>,
    functions: Option<Functions<'f>>,
    /// The file itself, kept for its unwind tables, which are rarely needed.
    own: Option<Elf<'f>>,
    bounds: Option<Bounds>,
    /// Read when an address has no name otherwise.
    stubs: Option<Stubs>,
}

impl<'f> ModuleSymbols<'f> {
    pub fn open(
        module: &Module,
        files: &'f Files,
        folders: &[PathBuf],
    ) -> Result<ModuleSymbols<'f>> {
        let own = loaded(module, files)?;
        let mut id = module.build_id.as_slice();
        if let (true, Some(own)) = (id.is_empty(), &own) {
            id = own.build_id()?;
        }
        let mut debug = None;
        let mut separate_file = None;
        if let Some(own) = &own {
            debug = DebugInformation::read(own, folders, files)?;
        }
        if debug.is_none() {
            // The build id suffices, even if the file itself was removed.
            separate_file = separate::by_build_id(id, folders, files)?;
            if let (None, Some(own)) = (&separate_file, &own) {
                separate_file = separate::by_link(own, id, folders, files)?;
            }
            if let Some(file) = &separate_file {
                debug = DebugInformation::read(file, folders, files)?;
            }
        }
        let mut functions = None;
        for (elf, all) in [(&own, true), (&separate_file, true), (&own, false)] {
            if let (None, Some(elf)) = (&functions, elf) {
                functions = elf.functions(all)?;
            }
        }
        Ok(ModuleSymbols {
            debug,
            functions,
            own,
            bounds: None,
            stubs: None,
        })
    }

    /// The start of the function that contains an address, by the unwind tables.
    pub fn start(&mut self, address: u64) -> Result<Option<u64>> {
        let (None, Some(own)) = (&self.bounds, &self.own) else {
            let bounds = self.bounds.as_ref();
            return Ok(bounds.and_then(|bounds| bounds.start(address)));
        };
        let bounds = self.bounds.insert(Bounds::read(own)?);
        Ok(bounds.start(address))
    }

    /// The functions at an address of the file, at least one. The last one may be unnamed.
    pub fn at(&mut self, address: u64) -> Result<Vec<Symbol>> {
        let frames = match &mut self.debug {
            Some(debug) => debug.at(address)?,
            None => Vec::new(),
        };
        let mut symbols = frames.into_iter().map(Symbol::from).try_vec()?;
        if symbols.is_empty() {
            symbols.try_push(Symbol::default())?;
        }
        if let Some((_, inlined)) = symbols.split_last_mut() {
            for symbol in inlined.iter_mut().filter(|symbol| symbol.name.is_empty()) {
                symbol.name = owned(UNKNOWN)?;
                symbol.system_name = owned(UNKNOWN)?;
                symbol.name_source = NameSource::DebugInformation;
            }
        }
        let outermost = symbols.last_mut();
        let Some(outermost) = outermost.filter(|symbol| symbol.name_source == NameSource::Address)
        else {
            return Ok(symbols);
        };
        let functions = self.functions.as_ref();
        if let Some(system_name) = functions.and_then(|functions| functions.at(address)) {
            outermost.name = names::demangle(&system_name).unwrap_or_else(|| system_name.clone());
            outermost.system_name = system_name;
            outermost.name_source = NameSource::SymbolTable;
            return Ok(symbols);
        }
        let stubs = match (&mut self.stubs, &self.own) {
            (Some(stubs), _) => stubs,
            (unread, Some(own)) => unread.insert(Stubs::read(own)?),
            (None, None) => return Ok(symbols),
        };
        if let Some(system_name) = stubs.at(address) {
            let name = names::demangle(system_name);
            let name = name.as_deref().unwrap_or(system_name);
            outermost.name = written(format_args!("{name}@plt"))?;
            outermost.system_name = written(format_args!("{system_name}@plt"))?;
            outermost.name_source = NameSource::SymbolTable;
        }
        Ok(symbols)
    }
}

impl From<Frame> for Symbol {
    fn from(frame: Frame) -> Symbol {
        let mut symbol = Symbol::default();
        // Without a line, the file is not reported either.
        if frame.line.line != 0 {
            symbol.filename = frame.line.filename;
            symbol.line = frame.line.line;
            symbol.column = frame.line.column;
        }
        if let Some(info) = frame.info.filter(|info| !info.name.is_empty()) {
            symbol.name.clone_from(&info.name);
            symbol.system_name.clone_from(&info.system_name);
            symbol.name_source = NameSource::DebugInformation;
            if symbol.line == 0 {
                symbol.filename.clone_from(&info.start.filename);
            }
            if symbol.filename == info.start.filename {
                symbol.start_line = info.start.line;
            }
        }
        symbol
    }
}

/// The hash of the file of a module that OpenTelemetry defines, if it is still the one that was
/// loaded.
pub fn file_hash(module: &Module, files: &Files) -> Result<Option<[u8; 16]>> {
    match loaded(module, files)? {
        Some(elf) => elf.file_hash(),
        None => Ok(None),
    }
}

/// The file of a module, if it is still the one that was loaded.
fn loaded<'f>(module: &Module, files: &'f Files) -> Result<Option<Elf<'f>>> {
    // Names without a slash belong to code that the kernel adds.
    let path = match &module.file {
        Some(file) => file,
        None if !module.path.contains('/') || module.path.ends_with(DELETED) => return Ok(None),
        None => Path::new(&module.path),
    };
    let Some(elf) = Elf::open(path, files)? else {
        return Ok(None);
    };
    let same = if module.build_id.is_empty() {
        // Without a build id, the path must be absolute, and loading the file must map its code to
        // the same addresses.
        let code = module.code.start.wrapping_sub(module.bias);
        path.is_absolute() && (module.code.is_empty() || elf.has_code_at(module.offset, code)?)
    } else {
        elf.build_id()? == module.build_id
    };
    Ok(same.then_some(elf))
}
