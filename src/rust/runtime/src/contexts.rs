//! R's contexts: a list of records (`RCNTXT` in `Defn.h`), one for each call of a closure, one for each call of native
//! code by `.Call()` and the like and, while R's own profiler runs, one for each call of any builtin (`eval()` in
//! `eval.c`).
//!
//! `R_GlobalContext` points to the innermost record. Most records are on the C stack, where outer calls have higher
//! addresses. Two kinds of records are on the node stack of the byte code interpreter: loops and, from R 4.4 on, calls
//! of byte-compiled functions by byte-compiled functions. The outermost record, which belongs to no call, is a variable
//! of R.
//!
//! The first fields have not changed since R 3. They are followed by a buffer of `sigsetjmp()`, whose size depends on
//! the processor and the C library.

use crate::cycle::Cycle;
use crate::memory::{self, Memory, at, half_at};
use crate::processor::{self, JUMP_BUFFER as BUFFER};
use std::ops::Range;

/// The address of the next outer record, 0 for the outermost one.
pub const NEXT: u64 = 0;
/// The kind of call, 4 bytes.
pub const CALLFLAG: u64 = 8;

/// Values of `callflag`: code whose errors end there, a call of a closure, a call of a builtin.
pub const TOPLEVEL: u32 = 0;
pub const CLOSURE: u32 = 4;
pub const BUILTIN: u32 = 64;
/// The flags have 8 bits.
pub const FLAGS: u32 = 256;

/// Where R goes on if code jumps to the record (in `cjmpbuf`): encoded, and equal for all records that the same code of R
/// makes.
pub const JUMP_TARGET: u64 = 16 + processor::JUMP_TARGET;
/// The arguments of the call (`promargs`), the first field that may refer to an object.
pub const PROMARGS: u64 = BUFFER + 24;
/// The closure that was called.
pub const CALLFUN: u64 = BUFFER + 32;
/// The environment that the closure was called from.
pub const SYSPARENT: u64 = BUFFER + 40;
/// The call, a `LANGSXP`.
pub const CALL: u64 = BUFFER + 48;
/// The environment of the call. Each call of a closure has a new one. It follows [`CALL`].
pub const CLOENV: u64 = BUFFER + 56;
/// The state of the byte code interpreter when the call was made: its code (`BCODESXP`), and the address of its
/// variable that points to the next instruction.
pub const BCBODY: u64 = BUFFER + 112;
pub const BCPC: u64 = BUFFER + 120;

/// The size of a record up to the fields that are needed to read a stack, in any version.
pub const RECORD: usize = BUFFER as usize + 200;

/// The fields whose position depends on the version of R, and where R has its records. [`Layout::ALL`] is the table of
/// all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The first version of R with this layout: the first two numbers.
    pub since: (u32, u32),
    /// The promises that are being evaluated (`prstack`, an `RPRSTACK`).
    pub promises: u64,
    /// The top of the node stack when the call was made (`nodestack`).
    pub node_stack: u64,
    /// Where the call was made (`srcref`): a `srcref`, `R_NilValue`, or the marker `R_InBCInterpreter`, which stands for
    /// a position in byte code.
    pub srcref: u64,
    /// The position in byte code, as a number of its words (`relpc`).
    pub relative_pc: Option<u64>,
    /// The value that a function returns, while code of `on.exit()` runs (`returnValue`), if it is outside of a [`Record`].
    /// From R 4.4 on, it is an entry of the node stack, see [`NODE`], of which this is the value.
    pub return_value: Option<u64>,
    /// Whether the record of a call of a byte-compiled function by another one is on the node stack (`bcEval_loop()` in
    /// `eval.c`).
    pub calls_on_node_stack: bool,
}

impl Layout {
    /// All versions of `RCNTXT`; the last one is of R 4.4 to 4.6.
    pub const ALL: [Layout; 2] = [
        Layout {
            since: (4, 2),
            promises: BUFFER + 144,
            node_stack: BUFFER + 152,
            srcref: BUFFER + 168,
            relative_pc: None,
            return_value: None,
            calls_on_node_stack: false,
        },
        Layout {
            since: (4, 4),
            promises: BUFFER + 152,
            node_stack: BUFFER + 160,
            srcref: BUFFER + 184,
            relative_pc: Some(BUFFER + 128),
            return_value: Some(BUFFER + 200 + NODE_VALUE as u64),
            calls_on_node_stack: true,
        },
    ];
    pub const R_4_2: Layout = Layout::ALL[0];
    pub const R_4_4: Layout = Layout::ALL[1];

    /// The layout of a version of R, the first two numbers of which are given.
    pub fn for_version(version: (u32, u32)) -> Layout {
        let [first, ..] = Layout::ALL;
        let known = Layout::ALL.into_iter().rev();
        let mut known = known.skip_while(|layout| layout.since > version);
        known.next().unwrap_or(first)
    }
}

/// The first two fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The address of the next outer record, 0 for the outermost one.
    pub next: u64,
    pub flags: u32,
}

impl Head {
    /// Their size in memory.
    pub const SIZE: usize = 16;

    fn parse(record: &[u8]) -> Head {
        Head {
            next: at(record, NEXT as usize),
            flags: half_at(record, CALLFLAG as usize),
        }
    }

    pub fn read(memory: &mut impl Memory, address: u64) -> Option<Head> {
        let bytes = memory::array::<{ Head::SIZE }>(memory, address)?;
        Some(Head::parse(&bytes))
    }

    /// Whether a record can have these flags.
    pub fn is_possible(self) -> bool {
        self.flags < FLAGS
    }

    /// Whether it belongs to a call, of a closure or a builtin. Loops have records as well.
    pub fn is_call(self) -> bool {
        self.flags & (CLOSURE | BUILTIN) != 0
    }

    pub fn is_call_of_closure(self) -> bool {
        self.flags & CLOSURE != 0
    }
}

/// A record that was read. Its fields may have any values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record(pub [u8; RECORD]);

/// Where the function of a record was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// A `srcref`, or `R_NilValue`.
    Srcref(u64),
    /// A position in byte code, as a number of its words.
    Relative { code: u64, words: u64 },
    /// A position in byte code: the address of the variable that points to the next instruction.
    Absolute { code: u64, variable: u64 },
}

impl Record {
    pub fn read(memory: &mut impl Memory, address: u64) -> Option<Record> {
        memory::array(memory, address).map(Record)
    }

    fn word(&self, field: u64) -> u64 {
        at(&self.0, field as usize)
    }

    pub fn head(&self) -> Head {
        Head::parse(&self.0)
    }

    /// The closure that was called; `NULL` if it was a builtin.
    pub fn function(&self) -> u64 {
        self.word(CALLFUN)
    }

    /// The call, a `LANGSXP`, with rare exceptions.
    pub fn call(&self) -> u64 {
        self.word(CALL)
    }

    /// The environment of the call.
    pub fn environment(&self) -> u64 {
        self.word(CLOENV)
    }

    /// The list of promises that were pending.
    pub fn promises(&self, layout: Layout) -> u64 {
        self.word(layout.promises)
    }

    /// The top of the node stack when the call was made.
    pub fn node_stack(&self, layout: Layout) -> u64 {
        self.word(layout.node_stack)
    }

    /// The object that contains where the function was called, or stands for it.
    pub fn srcref(&self, layout: Layout) -> u64 {
        self.word(layout.srcref)
    }

    /// Where the function was called. `in_byte_code` is the address of the marker `R_InBCInterpreter`.
    pub fn site(&self, layout: Layout, in_byte_code: u64) -> Site {
        let srcref = self.srcref(layout);
        if srcref != in_byte_code {
            return Site::Srcref(srcref);
        }
        let code = self.word(BCBODY);
        match layout.relative_pc.map(|field| self.word(field)) {
            // The value is 0 or less if it was not set.
            Some(words) if (1..1 << 32).contains(&words) => Site::Relative { code, words },
            _ => Site::Absolute {
                code,
                variable: self.word(BCPC),
            },
        }
    }

    /// The words that may be addresses of objects.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let words = self.0.chunks_exact(8).skip(PROMARGS as usize / 8);
        words.map(|word| at(word, 0))
    }
}

/// What distinguishes a record from others that have been at its address: the fields that do not change while its
/// function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity([u64; 8]);

impl Identity {
    /// The size of the part of a record that contains these fields.
    pub const SIZE: usize = BCPC as usize + 8;

    pub fn parse(record: &[u8]) -> Identity {
        let words = [NEXT, CALLFUN, SYSPARENT, CALL, CLOENV, BCBODY, BCPC];
        let [next, function, parent, call, environment, code, pc] =
            words.map(|field| at(record, field as usize));
        let flags = half_at(record, CALLFLAG as usize).into();
        Identity([next, flags, function, parent, call, environment, code, pc])
    }
}

/// Follows a list of records from the innermost one outwards.
pub struct Walk {
    next: u64,
    left: usize,
    cycle: Cycle,
}

impl Walk {
    /// `innermost` is the value of `R_GlobalContext`.
    pub fn new(innermost: u64) -> Walk {
        Walk {
            next: innermost,
            left: MOST_RECORDS,
            cycle: Cycle::default(),
        }
    }

    /// The next record and its address. `None` after the outermost one, or if the memory of a record cannot be read, or
    /// the list is circular, see [`Walk::is_whole()`].
    pub fn next(&mut self, memory: &mut impl Memory) -> Option<(u64, Record)> {
        let address = self.address()?;
        let record = Record::read(memory, address)?;
        self.next = record.head().next;
        Some((address, record))
    }

    /// Like [`Walk::next()`], but reads the first two fields only.
    pub fn next_head(&mut self, memory: &mut impl Memory) -> Option<(u64, Head)> {
        let address = self.address()?;
        let head = Head::read(memory, address)?;
        self.next = head.next;
        Some((address, head))
    }

    fn address(&mut self) -> Option<u64> {
        let address = self.next;
        if address == 0 || self.left == 0 || self.cycle.has(address) {
            return None;
        }
        self.left -= 1;
        Some(address)
    }

    /// Whether the last record was the outermost one.
    pub fn is_whole(&self) -> bool {
        self.next == 0
    }
}

/// The number of records of the list that starts at an address, and the address of the outermost one. `None` if the list
/// cannot be followed to its end.
pub fn list(memory: &mut impl Memory, innermost: u64) -> Option<(usize, u64)> {
    let mut walk = Walk::new(innermost);
    let (mut length, mut outermost) = (0, 0);
    while let Some((address, head)) = walk.next_head(memory) {
        if !head.is_possible() {
            return None;
        }
        (length, outermost) = (length + 1, address);
    }
    (length > 0 && walk.is_whole()).then_some((length, outermost))
}

/// The address of the next promise in `RPRSTACK`.
pub const NEXT_PROMISE: u64 = 8;
/// More pending promises than there can be: a longer list is damaged.
pub const MOST_PROMISES: usize = 10_000;

/// An entry of the node stack (`R_bcstack_t`): a tag of 4 bytes, and 8 bytes later a value. With this tag, the value is
/// the number of the following entries, of 4 bytes, that are raw memory, such as a record of a call. The value of an entry
/// refers to an object if its tag is 0, or larger than a byte.
pub const NODE: usize = 16;
pub const NODE_VALUE: usize = 8;
pub const RAW_NODES: u32 = 254;
pub const NODE_TAGS: u32 = 256;

/// The values of these words of the node stack that refer to objects, as R's garbage collector finds them. Raw memory in
/// between may contain addresses of objects that were freed.
pub fn objects_on_node_stack(words: &[u64]) -> impl Iterator<Item = u64> {
    let mut raw = 0;
    words.chunks_exact(NODE / 8).filter_map(move |entry| {
        if raw > 0 {
            raw -= 1;
            return None;
        }
        let (tag, value) = (entry[0] as u32, entry[NODE_VALUE / 8]);
        if tag == RAW_NODES {
            raw = value as u32;
        }
        (tag == 0 || tag >= NODE_TAGS).then_some(value)
    })
}

/// The plausible sizes of R's node stack, which takes 3 to 5 MB; a range of any other size is not the node stack.
pub const NODE_STACK_BYTES: Range<u64> = 1 << 20..64 << 20;
/// The size of the node stack: 200,000 entries, in R 4.4 and later 300,000.
pub const NODE_STACK_SIZES: [u64; 2] = [3_200_000, 4_800_000];
/// More records than fit on any stack: a longer list must be circular.
pub const MOST_RECORDS: usize = 1_000_000;
