//! R in a simulated process: its variables, its stacks, and the records of calls.

use super::module::{Hash, Module, SIZE, VARIABLES, WRITABLE};
use super::objects::Code;
use super::{FakeMemory, Space};
use profile_core::error::Result;
use profile_reader::running_r::Named;
use profile_reader::stack::frames::Stack;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::contexts::{
    BCBODY, BCPC, CALL, CALLFLAG, CALLFUN, CLOENV, CLOSURE, Layout, NEXT, RECORD, SYSPARENT,
};
use profile_runtime::memory::Mapping;
use profile_runtime::objects::{DATA, FIRST, NILSXP};
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// As in a real process, the node stack is less than 64 GB below the C stack.
pub const MODULE: u64 = 0x7f11_0000_0000;
pub const HEAP: u64 = 0x5581_0000_0000;
pub const NODE_STACK: u64 = 0x7ffb_f000_0000;
pub const NODE_STACK_SIZE: u64 = 3_200_000;
pub const STACK_END: u64 = 0x7ffc_2000_0000;
/// The address that R takes for the start of the C stack.
const STACK_START: u64 = STACK_END - 0x100;
/// The end of the stack of another thread.
pub const THREAD_END: u64 = 0x7f80_0000_0000;
const THREAD_SIZE: u64 = 1 << 16;
/// The size of a record and of the rest of a function's stack frame.
const FRAME: u64 = RECORD as u64 + 112;

/// The offsets of R's variables in the writable part of the module.
pub const EXPORTED: [(&str, u64); 9] = [
    ("R_GlobalContext", 0x100),
    ("R_Srcref", 0x110),
    ("R_BCNodeStackTop", 0x120),
    ("R_NilValue", 0x130),
    ("R_InBCInterpreter", 0x140),
    ("R_SrcfileSymbol", 0x150),
    ("R_BCNodeStackEnd", 0x160),
    ("R_CStackStart", 0x170),
    ("R_NamespaceRegistry", 0x180),
];
/// The addresses of variables that R does not export.
pub const BC_BODY: u64 = MODULE + VARIABLES + 0x200;
pub const BC_PC: u64 = MODULE + VARIABLES + 0x208;
pub const TOPLEVEL: u64 = MODULE + VARIABLES + 0x800;

/// R, before its memory is read.
#[derive(Clone)]
pub struct FakeR {
    pub space: Space,
    pub layout: Layout,
    pub nil: u64,
    /// The marker for a position in byte code.
    pub in_byte_code: u64,
    /// The symbol `srcfile`.
    pub srcfile: u64,
    pub global: u64,
    pub base: u64,
    pub base_namespace: u64,
    pub symbols: HashMap<String, u64>,
    /// The innermost record.
    pub head: u64,
    /// The environment of the last call. Only its address matters.
    pub environment: u64,
    /// The next free addresses of the heap and of the stacks. The C stack grows downwards.
    heap: u64,
    c_stack: u64,
    node_stack: u64,
    /// Whether there is another thread.
    has_thread: bool,
}

/// The stack on which a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    C,
    Node,
}

/// Where a function is, or was called.
#[derive(Debug, Clone, Copy)]
pub enum At {
    Nowhere,
    Srcref(u64),
    /// A number of instructions.
    Relative(Code, u64),
    /// The same, by a variable on the C stack.
    Absolute(Code, u64),
}

impl FakeR {
    pub fn new(layout: Layout) -> FakeR {
        FakeR::with(layout, Hash::Gnu, 32)
    }

    /// With room for this many records on each stack.
    pub fn with(layout: Layout, hash: Hash, records: u64) -> FakeR {
        let mut module = Module::new(MODULE, hash);
        for (name, offset) in EXPORTED {
            module.variable(name, offset);
        }
        module.undefined("environ");
        let mut space = Space::default();
        module.lay_out(&mut space);
        FakeR::in_space(layout, space, records)
    }

    /// R whose variables may or may not be exported by a module of this address space.
    pub fn in_space_of(space: Space) -> FakeR {
        FakeR::in_space(Layout::R_4_4, space, 8)
    }

    pub fn in_space(layout: Layout, mut space: Space, records: u64) -> FakeR {
        space.add(HEAP, 0x6000 + 256 * records as usize);
        space.add(NODE_STACK, (FRAME * records + 0x1000) as usize);
        let size = FRAME * records + 0x1000;
        space.add(STACK_END - size, size as usize);
        let mut r = FakeR {
            space,
            layout,
            nil: 0,
            in_byte_code: 0,
            srcfile: 0,
            global: 0,
            base: 0,
            base_namespace: 0,
            symbols: HashMap::new(),
            head: TOPLEVEL,
            environment: HEAP,
            heap: HEAP,
            c_stack: STACK_START,
            node_stack: NODE_STACK,
            has_thread: false,
        };
        // All pointers of `R_NilValue` point to itself.
        r.nil = r.cell(NILSXP, [0; 3]);
        for offset in [8, FIRST as u64, FIRST as u64 + 8, FIRST as u64 + 16] {
            r.space.set(r.nil + offset, r.nil);
        }
        r.in_byte_code = r.symbol("<in-bc-interp>");
        r.srcfile = r.symbol("srcfile");
        let empty = r.environment(r.nil);
        r.base = r.environment(empty);
        let attached = r.hashed_environment(r.base, &[]);
        r.global = r.hashed_environment(attached, &[]);
        r.base_namespace = r.environment(r.global);
        let registry = r.hashed_environment(r.nil, &[("base", r.base_namespace)]);
        r.space.set(TOPLEVEL + layout.node_stack, NODE_STACK);
        r.space.set(TOPLEVEL + layout.srcref, r.nil);
        for (name, value) in [
            ("R_GlobalContext", TOPLEVEL),
            ("R_Srcref", r.nil),
            ("R_BCNodeStackTop", NODE_STACK),
            ("R_NilValue", r.nil),
            ("R_InBCInterpreter", r.in_byte_code),
            ("R_SrcfileSymbol", r.srcfile),
            ("R_BCNodeStackEnd", NODE_STACK + NODE_STACK_SIZE),
            ("R_CStackStart", STACK_START),
            ("R_NamespaceRegistry", registry),
        ] {
            r.space.set(variable(name), value);
        }
        r
    }

    pub fn allocate(&mut self, size: u64) -> u64 {
        let address = self.heap;
        self.heap += size;
        address
    }

    /// Adds a record inside the innermost one. Returns its address.
    pub fn record(&mut self, on: On, flags: u32, call: u64, function: u64, at: At) -> u64 {
        let outer_top = self.node_stack;
        let address = match on {
            On::C => {
                self.c_stack -= FRAME;
                self.c_stack
            }
            On::Node => {
                self.node_stack += FRAME;
                outer_top
            }
        };
        let layout = self.layout;
        self.space.set(address + NEXT, self.head);
        self.space.write(address + CALLFLAG, &flags.to_le_bytes());
        self.space.set(address + CALL, call);
        self.space.set(address + CALLFUN, function);
        if self.head != TOPLEVEL {
            let from = self.space.word(self.head + CLOENV);
            self.space.set(address + SYSPARENT, from);
        }
        self.environment += 64;
        self.space.set(address + CLOENV, self.environment);
        self.space.set(address + layout.node_stack, outer_top);
        let (srcref, body, pc, relative) = self.site(at, address + RECORD as u64);
        self.space.set(address + layout.srcref, srcref);
        self.space.set(address + BCBODY, body);
        self.space.set(address + BCPC, pc);
        if let Some(field) = layout.relative_pc {
            self.space.set(address + field, relative);
        }
        self.head = address;
        self.space.set(variable("R_GlobalContext"), address);
        self.space
            .set(variable("R_BCNodeStackTop"), self.node_stack);
        address
    }

    /// Calls a closure from somewhere in the innermost one. Returns the record.
    pub fn enter(&mut self, call: u64, at: At) -> u64 {
        let nil = self.nil;
        self.record(On::C, CLOSURE, call, nil, at)
    }

    /// R's next calls are made in another thread. Returns the stack of this thread.
    pub fn change_thread(&mut self) -> Range<u64> {
        let stack = THREAD_END - THREAD_SIZE..THREAD_END;
        self.space.add(stack.start, THREAD_SIZE as usize);
        self.c_stack = THREAD_END - 0x100;
        self.has_thread = true;
        stack
    }

    /// Ends the innermost call.
    pub fn leave(&mut self) {
        let record = self.head;
        self.head = self.space.word(record + NEXT);
        if (NODE_STACK..NODE_STACK + NODE_STACK_SIZE).contains(&record) {
            self.node_stack -= FRAME;
        } else {
            self.c_stack += FRAME;
        }
        self.space.set(variable("R_GlobalContext"), self.head);
    }

    /// Sets the position of the innermost function. R does not store a number of instructions for it.
    pub fn is_at(&mut self, at: At) {
        let (srcref, body, pc, _) = self.site(at, self.c_stack - 0x80);
        self.space.set(variable("R_Srcref"), srcref);
        self.space.set(BC_BODY, body);
        self.space.set(BC_PC, pc);
    }

    /// The words that describe a position: a `srcref` or the marker, byte code, the address of a variable, the number
    /// of instructions.
    fn site(&mut self, at: At, variable: u64) -> (u64, u64, u64, u64) {
        match at {
            At::Nowhere => (self.nil, 0, 0, 0),
            At::Srcref(srcref) => (srcref, 0, 0, 0),
            At::Relative(code, position) => (self.in_byte_code, code.object, 0, position),
            At::Absolute(code, position) => {
                let next = code.instructions + DATA as u64 + 8 * position;
                self.space.set(variable, next);
                (self.in_byte_code, code.object, variable, 0)
            }
        }
    }

    pub fn mappings(&self) -> Vec<Mapping> {
        let start = THREAD_END - THREAD_SIZE;
        // The guard page below the stack is a mapping of its own.
        let thread = [(start - 0x1000, start, false), (start, THREAD_END, false)];
        let thread = thread.into_iter().filter(|_| self.has_thread);
        let low = [
            (HEAP, HEAP + (1 << 20), false),
            (MODULE, MODULE + VARIABLES, true),
            (MODULE + VARIABLES, MODULE + SIZE, false),
        ];
        let high = [
            (NODE_STACK, NODE_STACK + NODE_STACK_SIZE, false),
            (STACK_END - (1 << 21), STACK_END, false),
        ];
        let all = low.into_iter().chain(thread).chain(high);
        all.map(|(start, end, starts_file)| Mapping {
            addresses: start..end,
            starts_file,
        })
        .collect()
    }

    pub fn memory(&self) -> FakeMemory {
        FakeMemory::new(self.space.clone())
    }

    /// Opens a reader of the current state. The memory is returned for changes.
    pub fn open(&self) -> (FakeMemory, Result<StackReader<FakeMemory>>) {
        let memory = self.memory();
        let mut reader = StackReader::open(memory.clone(), &self.mappings(), &Named::default());
        // The tests replace objects immediately.
        if let Ok(reader) = &mut reader {
            reader.shortest_collection = Duration::ZERO;
        }
        (memory, reader)
    }

    /// The same, where an error is a failure of the test.
    pub fn reader(&self) -> (FakeMemory, StackReader<FakeMemory>) {
        let (memory, reader) = self.open();
        (memory, reader.unwrap())
    }

    /// The current stack, with the line of byte code.
    pub fn frames_when_prepared(&self) -> Vec<String> {
        let (_, mut reader) = self.reader();
        reader.prepare_with(|| {}).unwrap();
        frames(&mut reader).unwrap()
    }

    /// The current stack.
    pub fn frames(&self) -> Vec<String> {
        let (_, mut reader) = self.reader();
        frames(&mut reader).unwrap()
    }
}

/// The address of a variable.
pub fn variable(name: &str) -> u64 {
    let found = EXPORTED.iter().find(|known| known.0 == name);
    MODULE + VARIABLES + found.unwrap().1
}

/// The stack of a process that may go on, as text, innermost frame first: "f a.R#3". `None` if it could not be read.
pub fn frames(reader: &mut StackReader<FakeMemory>) -> Option<Vec<String>> {
    frames_in(Motion::Free, reader)
}

/// The same, where the process may stand still.
pub fn frames_in(motion: Motion, reader: &mut StackReader<FakeMemory>) -> Option<Vec<String>> {
    let stack = reader.read(motion).unwrap()?.clone();
    Some(as_text(&stack, reader))
}

pub fn as_text(stack: &Stack, reader: &StackReader<FakeMemory>) -> Vec<String> {
    let text = |id| reader.texts().get(id);
    let frames = stack.frames.iter().map(|frame| match frame.place {
        Some(place) => format!("{} {}#{}", text(frame.name), text(place.file), place.line),
        None => text(frame.name).to_owned(),
    });
    let mut all: Vec<_> = frames.collect();
    if let Some(place) = stack.toplevel {
        all.push(format!("at {}#{}", text(place.file), place.line));
    }
    if stack.cut.is_some() {
        all.push("...".to_owned());
    }
    all
}
