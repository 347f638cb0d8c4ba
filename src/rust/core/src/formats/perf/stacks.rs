//! The stacks of samples: finds equal ones by their text, and parses others.
//!
//! Most stacks have occurred before. In a new stack, only lines that have not occurred before are parsed.

use super::frame::{Frame, frame, is_kernel, source_line};
use crate::error::Result;
use crate::formats::text_cache::TextCache;
use crate::formats::text_file::File;
use crate::limits::memory::TryGrow;
use crate::model::{Address, Location, LocationId, Mapping, MappingId, NATIVE, StackId, Symbols};
use memchr::memmem;

/// Texts of stacks are kept, to find equal ones, until they take this many bytes. A text takes some kilobytes, so
/// without a limit the texts of a file whose stacks all differ would take more memory than its profile.
const KEPT_TEXT: usize = 256 << 20;

/// The parsed stack of a text.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pub stack: StackId,
    /// The number of its frames.
    pub frames: usize,
    /// The number of lines of the text.
    pub lines: usize,
}

#[derive(Default)]
pub struct Stacks {
    known: TextCache<Known>,
    kept_text: usize,
    locations: TextCache<LocationId>,
    mappings: TextCache<MappingId>,
}

impl Stacks {
    /// The stack of the lines of frames, each with a line feed.
    pub fn of(&mut self, text: &[u8], file: &mut File) -> Result<Known> {
        match self.known(text) {
            Some(known) => Ok(known),
            None => self.learn(text, file),
        }
    }

    /// The stack of this text, if it has occurred before.
    pub fn known(&self, text: &[u8]) -> Option<Known> {
        self.known.get(text)
    }

    /// Parses the text of a stack that did not occur before.
    fn learn(&mut self, text: &[u8], file: &mut File) -> Result<Known> {
        let mut frames: Vec<(&[u8], Option<&[u8]>)> = Vec::new();
        let mut lines = 0;
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            lines += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            // perf writes two blanks before source lines.
            let is_source = line.starts_with(b"  ")
                && line.get(2) != Some(&b' ')
                && frame(line).address.is_none();
            match frames.last_mut() {
                _ if line.is_empty() => {}
                Some((_, source)) if is_source => *source = Some(line),
                _ => frames.try_push((line, None))?,
            }
        }
        let mut stack = Vec::new();
        let mut outer = Address::default();
        for &(line, source) in frames.iter().rev() {
            let location = match self.locations.get(line).filter(|_| source.is_none()) {
                Some(location) => location,
                None => {
                    let (frame, inlined) = first_of_java(frame(line));
                    let location = self.location(&frame, source, outer, file)?;
                    if !inlined.is_empty() {
                        stack.try_push(location)?;
                        outer = address_of(location, file);
                        self.push_inlined(&frame, inlined, outer, &mut stack, file)?;
                        continue;
                    }
                    if source.is_none() && !frame.is_inlined {
                        self.locations.insert(line, location)?;
                    }
                    location
                }
            };
            outer = address_of(location, file);
            stack.try_push(location)?;
        }
        stack.reverse();
        let known = Known {
            stack: file.profile.stacks.intern(&stack)?,
            frames: stack.len(),
            lines,
        };
        if self.kept_text + text.len() <= KEPT_TEXT {
            self.kept_text += text.len();
            self.known.insert(text, known)?;
        }
        Ok(known)
    }

    /// Adds methods that are inlined into each other, outermost first.
    fn push_inlined(
        &mut self,
        frame: &Frame,
        inlined: &[u8],
        outer: Address,
        stack: &mut Vec<LocationId>,
        file: &mut File,
    ) -> Result<()> {
        let mut rest = inlined;
        while !rest.is_empty() {
            let (name, after) = split_at_arrow(rest);
            let frame = Frame {
                symbol: Some(name),
                is_inlined: true,
                ..*frame
            };
            let location = self.location(&frame, None, outer, file)?;
            stack.try_push(location)?;
            rest = after;
        }
        Ok(())
    }

    /// The location of a frame. An inlined frame has the same address as the `outer` frame.
    fn location(
        &mut self,
        frame: &Frame,
        source: Option<&[u8]>,
        outer: Address,
        file: &mut File,
    ) -> Result<LocationId> {
        let mut address = Address {
            address: frame.address.unwrap_or(0),
            ..Address::default()
        };
        if let Some(module) = frame.module {
            address.mapping = Some(self.mapping(module, file)?);
        }
        if frame.is_inlined && outer != Address::default() {
            address = outer;
        }
        let source = source.and_then(source_line);
        let function = match frame.symbol {
            Some(symbol) => {
                let path = file.decode(source.map_or(b"", |(path, _)| path))?;
                let filename = file.profile.strings.intern(&path)?;
                let name = file.decode(symbol)?;
                Some(file.profile.named_function(&name, filename)?)
            }
            None => None,
        };
        let type_ = match frame.module {
            _ if is_kernel(frame) => "kernel",
            Some(module) if !is_jit(module) => NATIVE,
            None if frame.is_inlined => NATIVE,
            _ => "",
        };
        let location = Location {
            function,
            line: source.map(|(_, line)| line).filter(|_| function.is_some()),
            address: file.profile.intern_address(address)?,
            inlined: frame.is_inlined,
            frame_type: file.profile.frame_type(type_)?,
            ..Location::default()
        };
        file.profile.locations.intern(location)
    }

    fn mapping(&mut self, module: &[u8], file: &mut File) -> Result<MappingId> {
        if let Some(mapping) = self.mappings.get(module) {
            return Ok(mapping);
        }
        let name = file.decode(module)?;
        let filename = file.profile.strings.intern(&name)?;
        let build_id = file.profile.strings.intern("")?;
        let mapping = Mapping {
            // The addresses in the module do not belong to the process, so no viewer can find more.
            symbols: Symbols {
                functions: true,
                ..Symbols::default()
            },
            ..Mapping::of_file(filename, build_id)
        };
        let id = file.profile.add_mapping(mapping)?;
        self.mappings.insert(module, id)?;
        Ok(id)
    }
}

fn address_of(location: LocationId, file: &File) -> Address {
    file.profile
        .address_of(&file.profile.locations.get(location))
}

/// Whether a module is the list of functions that a compiler at run time has written for perf.
fn is_jit(module: &[u8]) -> bool {
    module.starts_with(b"/tmp/perf-") && module.ends_with(b".map")
}

/// The frame of compiled code with the method that was compiled, and the methods that were inlined into it, with
/// arrows between them: perf-map-agent's option `unfoldall` writes `A->B->C` if B is inlined into A, and C into B.
fn first_of_java(frame: Frame<'_>) -> (Frame<'_>, &[u8]) {
    match frame.symbol.filter(|_| frame.module.is_none_or(is_jit)) {
        Some(symbol) => {
            let (first, inlined) = split_at_arrow(symbol);
            let symbol = Some(first);
            (Frame { symbol, ..frame }, inlined)
        }
        None => (frame, b""),
    }
}

/// The text before and after the first arrow between two methods. C++ has `operator->`, and other languages write
/// blanks around the arrow of a type.
fn split_at_arrow(symbol: &[u8]) -> (&[u8], &[u8]) {
    for at in memmem::find_iter(symbol, b"->") {
        let (before, after) = (&symbol[..at], &symbol[at + 2..]);
        let is_inside = [before.last(), after.first()]
            .iter()
            .any(|byte| matches!(byte, None | Some(b' ' | b'(' | b')')));
        if !is_inside && !before.ends_with(b"operator") {
            return (before, after);
        }
    }
    (symbol, b"")
}
