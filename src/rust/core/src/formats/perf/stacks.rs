//! The stacks of samples: finds equal ones by their text, and parses others.
//!
//! Most stacks have occurred before. Of others, only lines that have not occurred before are parsed.

use super::frame::{Frame, frame, is_kernel, source_line};
use crate::error::Result;
use crate::formats::text_cache::TextCache;
use crate::formats::text_file::File;
use crate::limits::memory::TryGrow;
use crate::model::{Address, Location, LocationId, Mapping, MappingId, NATIVE, StackId, Symbols};

const STACK: &str = "a stack";
/// Texts of stacks are kept to find equal ones until they take this many bytes. A stack takes some
/// kilobytes; files whose stacks are all different would take more memory than their profile.
const KEPT_TEXT: usize = 256 << 20;

/// What a text means.
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

    /// The same, if the text has occurred before.
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
            // perf writes source lines behind two blanks.
            let is_source = line.starts_with(b"  ")
                && line.get(2) != Some(&b' ')
                && frame(line).address.is_none();
            match frames.last_mut() {
                _ if line.is_empty() => {}
                Some((_, source)) if is_source => *source = Some(line),
                _ => frames.try_push((line, None), STACK)?,
            }
        }
        let mut stack = Vec::new();
        let mut outer = Address::default();
        for &(line, source) in frames.iter().rev() {
            let location = match self.locations.get(line).filter(|_| source.is_none()) {
                Some(location) => location,
                None => {
                    let frame = frame(line);
                    let location = self.location(&frame, source, outer, file)?;
                    if source.is_none() && !frame.is_inlined {
                        self.locations.insert(line, location)?;
                    }
                    location
                }
            };
            outer = file
                .profile
                .address_of(&file.profile.locations.get(location));
            stack.try_push(location, STACK)?;
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

    /// The location of a frame. One that is inlined is at the same address as the `outer` frame.
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
        let is_jit = |module: &[u8]| module.starts_with(b"/tmp/perf-") && module.ends_with(b".map");
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
        let mapping = Mapping {
            start: 0,
            limit: 0,
            offset: 0,
            filename: file.profile.strings.intern(&name)?,
            build_id: file.profile.strings.intern("")?,
            // Their addresses are not those of the process, so no viewer can find more.
            symbols: Symbols {
                functions: true,
                ..Symbols::default()
            },
            native_id: None,
        };
        let id = file.profile.add_mapping(mapping)?;
        self.mappings.insert(module, id)?;
        Ok(id)
    }
}
