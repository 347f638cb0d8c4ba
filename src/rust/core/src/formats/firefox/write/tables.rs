//! The shared tables: stacks, frames, functions, sources, libraries and strings.

use crate::analysis::frame_names::shown;
use crate::analysis::paths::{Paths, ROOT};
use crate::analysis::sample_types::has_r_frames;
use crate::collections::{Interner, TextList};
use crate::error::Result;
use crate::json::Json;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryGrow, TryPut, filled, written};
use crate::model::{
    self, FunctionId, LocationId, Mapping, MappingId, NATIVE, Profile, StackId, is_exact,
};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::HashMap;

/// Rows of the categories.
const OTHER: i64 = 0;
const R: i64 = 1;
const NATIVE_CODE: i64 = 2;
const COLLECTION: i64 = 3;
/// The name that R writes for garbage collections.
/// The type of a resource that is a library.
const LIBRARY: i64 = 1;

/// A function, or a location without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Func {
    function: Option<FunctionId>,
    location: Option<LocationId>,
    /// The row of its library.
    lib: Option<u32>,
    is_native: bool,
    is_r: bool,
}

/// The text of a source file.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

pub struct Tables {
    paths: Paths,
    stack_rows: Vec<Option<u32>>,
    /// The location of each frame.
    frames: Vec<LocationId>,
    /// The function of each frame.
    func_of_frame: Vec<u32>,
    funcs: Interner<Vec<Func>>,
    names: Vec<u32>,
    /// The source of each function.
    source_of_func: Vec<Option<u32>>,
    /// The strings that are names of files.
    sources: Interner<Vec<u32>>,
    libs: Interner<Vec<MappingId>>,
    strings: Interner<TextList>,
    /// Whether frames of unknown type are R code.
    has_r_frames: bool,
}

impl Tables {
    /// The tables of the stacks that samples have.
    pub fn new(profile: &Profile, stop: Stop) -> Result<Tables> {
        let is_used = profile.samples.used_stacks(profile.stacks.len())?;
        let mut tables = Tables {
            paths: Paths::default(),
            stack_rows: filled(profile.stacks.len(), None)?,
            frames: Vec::new(),
            func_of_frame: Vec::new(),
            funcs: Interner::default(),
            names: Vec::new(),
            source_of_func: Vec::new(),
            sources: Interner::default(),
            libs: Interner::default(),
            strings: Interner::default(),
            has_r_frames: profile.sources.iter().any(has_r_frames),
        };
        // By location, one more than its frame.
        let mut frame_of = filled(profile.locations.len(), 0)?;
        let mut space = Vec::new();
        for (row, stack) in profile.stacks.ids().enumerate() {
            cancel::at_row(row, stop)?;
            if !is_used[row] {
                continue;
            }
            let stack = profile.stacks.get(stack).unpacked(&mut space)?;
            for &location in stack {
                if frame_of[location.row()] == 0 {
                    tables.add_frame(location, profile)?;
                    frame_of[location.row()] = tables.frames.len() as u32;
                }
            }
            // The group of a node is one more than its frame.
            let frames = stack.iter().rev().copied();
            tables.stack_rows[row] = tables.paths.add(frames, &frame_of)?;
        }
        Ok(tables)
    }

    fn add_frame(&mut self, id: LocationId, profile: &Profile) -> Result<()> {
        let location = profile.locations.get(id);
        let mapping = profile.address_of(&location).mapping;
        let type_ = profile.frame_type_of(&location);
        let lib = mapping
            .map(|mapping| self.libs.intern(mapping))
            .transpose()?;
        let func = Func {
            function: location.function,
            location: location.function.is_none().then_some(id),
            lib,
            is_native: type_.map_or(location.address.is_some(), |type_| type_ == NATIVE),
            is_r: type_.map_or(self.has_r_frames, |type_| type_ == "r"),
        };
        let known = self.funcs.len();
        let row = self.funcs.intern(func)?;
        if self.funcs.len() > known {
            let frame = shown(profile, id)?;
            // The profiler shows code without symbols by its address, beside the library.
            let name = match profile.address_of(&location).address {
                address if address != 0 && func.function.is_none() => {
                    Cow::Owned(written(format_args!("{address:#x}"))?)
                }
                _ => frame.name,
            };
            let name = self.strings.intern(&name)?;
            self.names.try_push(name)?;
            let source = if frame.file.is_empty() || func.function.is_none() {
                None
            } else {
                let file = self.strings.intern(frame.file)?;
                Some(self.sources.intern(file)?)
            };
            self.source_of_func.try_push(source)?;
        }
        self.frames.try_push(id)?;
        self.func_of_frame.try_push(row)
    }

    /// The row of a stack; `None` if it is empty.
    pub fn stack(&self, stack: StackId) -> Option<u32> {
        self.stack_rows[stack.row()]
    }

    /// Whether there is native code besides R code.
    pub fn has_native(&self) -> bool {
        self.funcs.iter().any(|func| func.is_native)
    }

    pub fn write_libs(&self, profile: &Profile, json: &mut Json) -> Result<()> {
        self.libs.ids().try_for_each(|lib: u32| {
            let (mapping, path) = self.lib(lib, profile);
            let name = base_name(path);
            let id = mapping.map_or("", |m| profile.strings.get(m.build_id));
            json.object(|json| {
                for (field, text) in [
                    ("arch", ""),
                    ("name", name),
                    ("path", path),
                    ("debugName", name),
                    ("debugPath", path),
                    ("breakpadId", ""),
                ] {
                    json.field(field)?.text(text)?;
                }
                let code = json.field("codeId")?;
                if id.is_empty() {
                    code.null()
                } else {
                    code.text(id)
                }
            })
        })
    }

    fn lib<'p>(&self, lib: u32, profile: &'p Profile) -> (Option<&'p Mapping>, &'p str) {
        let mapping = profile.mappings.get(self.libs.get(lib).row());
        (
            mapping,
            mapping.map_or("", |m| profile.strings.get(m.filename)),
        )
    }

    pub fn write(&self, profile: &Profile, texts: &[Text], json: &mut Json) -> Result<()> {
        // Names of libraries are strings that the other tables do not need.
        let mut names = Vec::new();
        for lib in self.libs.ids() {
            names.try_push(base_name(self.lib(lib, profile).1))?;
        }
        let first_name = self.strings.len() as i64;
        json.field("stackTable")?.object(|json| {
            let nodes = self.paths.nodes();
            json.field("length")?.integer(nodes.len() as i64)?;
            json.field("frame")?
                .integers(nodes.iter().map(|node| i64::from(node.group) - 1))?;
            let offset = |(row, parent): (usize, u32)| match parent {
                ROOT => 0,
                parent => row as i64 - i64::from(parent),
            };
            let parents = nodes.iter().map(|node| node.parent);
            json.field("prefixOffset")?
                .integers(parents.enumerate().map(offset))
        })?;
        json.field("frameTable")?
            .object(|json| self.write_frames(profile, json))?;
        json.field("funcTable")?
            .object(|json| self.write_funcs(profile, json))?;
        json.field("resourceTable")?.object(|json| {
            let count = self.libs.len() as i64;
            json.field("length")?.integer(count)?;
            json.field("lib")?.integers(0..count)?;
            json.field("name")?
                .integers(first_name..first_name + count)?;
            json.field("host")?
                .array(|json| (0..count).try_for_each(|_| json.null()))?;
            json.field("type")?.integers((0..count).map(|_| LIBRARY))
        })?;
        empty_table(
            json,
            "nativeSymbols",
            &["libIndex", "address", "name", "functionSize"],
        )?;
        empty_table(json, "sourceLocationTable", &["source", "line", "column"])?;
        json.field("sources")?
            .object(|json| self.write_sources(texts, json))?;
        json.field("stringArray")?
            .texts(self.strings.iter().chain(names.iter().copied()))
    }

    fn write_frames(&self, profile: &Profile, json: &mut Json) -> Result<()> {
        let locations = || self.frames.iter().map(|&id| profile.locations.get(id));
        let known = |number: i64| (number > 0).then_some(number);
        let count = self.frames.len();
        json.field("length")?.integer(count as i64)?;
        json.field("address")?
            .integers(self.frames.iter().map(|&id| {
                let address = profile.address_of(&profile.locations.get(id));
                let mapping = address
                    .mapping
                    .and_then(|id| profile.mappings.get(id.row()));
                match (address.address, mapping) {
                    (0, _) | (_, None) => -1,
                    (at, Some(m)) => {
                        let at = at.wrapping_sub(m.start).wrapping_add(m.offset);
                        // Numbers of JSON are doubles. An inexact address would be that of other code.
                        let at = i64::try_from(at).ok();
                        at.filter(|&at| is_exact(at)).unwrap_or(-1)
                    }
                }
            }))?;
        json.field("inlineDepth")?
            .integers(locations().map(|location| i64::from(location.inlined)))?;
        json.field("category")?
            .integers(self.func_of_frame.iter().map(|&func| {
                let name = self.strings.get(self.names[func as usize]);
                let func = self.funcs.get(func);
                match (func.is_native, func.is_r) {
                    _ if name == model::COLLECTION => COLLECTION,
                    (true, _) => NATIVE_CODE,
                    (false, true) => R,
                    (false, false) => OTHER,
                }
            }))?;
        zeros(json, "subcategory", count)?;
        json.field("func")?
            .integers(self.func_of_frame.iter().map(|&func| i64::from(func)))?;
        nulls(json, "nativeSymbol", count)?;
        zeros(json, "innerWindowID", count)?;
        optional(
            json,
            "line",
            locations().map(|l| known(l.line.unwrap_or(0))),
        )?;
        optional(json, "column", locations().map(|l| known(l.column)))?;
        nulls(json, "originalLocation", count)
    }

    fn write_funcs(&self, profile: &Profile, json: &mut Json) -> Result<()> {
        let count = self.funcs.len();
        let funcs = || self.funcs.iter();
        json.field("length")?.integer(count as i64)?;
        json.field("name")?
            .integers(self.names.iter().map(|&name| i64::from(name)))?;
        json.field("isJS")?
            .array(|json| funcs().try_for_each(|func| json.flag(!func.is_native)))?;
        json.field("relevantForJS")?
            .array(|json| funcs().try_for_each(|_| json.flag(false)))?;
        json.field("resource")?
            .integers(funcs().map(|func| func.lib.map_or(-1, i64::from)))?;
        let sources = self.source_of_func.iter();
        optional(json, "source", sources.map(|source| source.map(i64::from)))?;
        optional(
            json,
            "lineNumber",
            funcs().map(|func| {
                let start = profile.functions.get(func.function?).start_line;
                (start > 0).then_some(start)
            }),
        )?;
        nulls(json, "columnNumber", count)?;
        nulls(json, "originalLocation", count)
    }

    fn write_sources(&self, texts: &[Text], json: &mut Json) -> Result<()> {
        let files = self.sources.iter().map(|&file| self.strings.get(file));
        let files = files.try_vec()?;
        let count = files.len();
        json.field("length")?.integer(count as i64)?;
        nulls(json, "id", count)?;
        json.field("filename")?
            .integers(self.sources.iter().map(|&file| i64::from(file)))?;
        json.field("startLine")?.integers((0..count).map(|_| 1))?;
        json.field("startColumn")?.integers((0..count).map(|_| 1))?;
        nulls(json, "sourceMapURL", count)?;
        let mut by_file: HashMap<&str, &str, RandomState> = HashMap::default();
        // If there are several texts of a file, the first one is written.
        for text in texts.iter().rev() {
            by_file.try_put(text.file, text.text)?;
        }
        json.field("content")?.array(|json| {
            let mut files = files.iter();
            files.try_for_each(|file| match by_file.get(file) {
                Some(text) => json.text(text),
                None => json.null(),
            })
        })
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn zeros(json: &mut Json, name: &str, count: usize) -> Result<()> {
    json.field(name)?.integers((0..count).map(|_| 0))
}

fn nulls(json: &mut Json, name: &str, count: usize) -> Result<()> {
    json.field(name)?
        .array(|json| (0..count).try_for_each(|_| json.null()))
}

fn optional(json: &mut Json, name: &str, numbers: impl Iterator<Item = Option<i64>>) -> Result<()> {
    json.field(name)?.array(|json| {
        let mut numbers = numbers;
        numbers.try_for_each(|number| match number {
            Some(number) => json.integer(number),
            None => json.null(),
        })
    })
}

fn empty_table(json: &mut Json, name: &str, columns: &[&str]) -> Result<()> {
    json.field(name)?.object(|json| {
        json.field("length")?.integer(0)?;
        for column in columns {
            json.field(column)?.array(|_| Ok(()))?;
        }
        Ok(())
    })
}
