//! One attempt to read R's calls.
//!
//! The list of records is followed from the innermost to the outermost one. Unless everything was copied at one
//! moment (`ahead.rs`), the fields that identify a call are then read again, in one system call, and compared. R
//! removes a record and creates another one within nanoseconds. If that happens while the stack is read, a record has
//! changed, or another record is the innermost one. In a loop, the same functions are called again, with records at
//! the same addresses. These calls differ in their environments, since each call has a new one.

use crate::innermost::Registers;
use crate::memory::{self, Memory, Piece, at, half_at};
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{
    BCBODY, BCPC, BUILTIN, CALL, CALLFLAG, CALLFUN, CLOENV, CLOSURE, FLAGS, NEXT, RECORD, SYSPARENT,
};
use std::ops::Range;

/// Deeper stacks are cut: their outermost calls are left out. R's own limit is 5,000 calls by default.
pub const MOST_CALLS: usize = 20_000;
/// Records of loops come in addition to those of calls.
const MOST_RECORDS: usize = 3 * MOST_CALLS;

/// Where R has stored the record of a call. This determines the place of the call among native frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnStack {
    /// The address of the record; 0 if there is none.
    pub address: u64,
    /// The list of promises that were pending.
    pub promises: u64,
}

/// The maximum number of calls that are read if only the innermost function matters.
const FEW_CALLS: usize = 20;

/// The call of a function.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub record: OnStack,
    /// A `LANGSXP`, with rare exceptions.
    pub call: u64,
    /// The closure that was called.
    pub function: u64,
    /// The environment of the call, and the one that it was made from.
    pub environment: u64,
    pub called_from: u64,
    /// Where it was called.
    pub site: Site,
}

impl Call {
    /// The call of a record, given the address and the bytes of the record.
    pub fn of(address: u64, record: &[u8], target: &Target) -> Call {
        Call {
            record: OnStack {
                address,
                promises: at(record, target.layout.promises as usize),
            },
            call: at(record, CALL as usize),
            function: at(record, CALLFUN as usize),
            environment: at(record, CLOENV as usize),
            called_from: at(record, SYSPARENT as usize),
            site: site(record, target),
        }
    }

    /// Whether both are the same call. Each call has its own environment.
    pub fn is(&self, other: &Call) -> bool {
        let identity = |call: &Call| {
            (
                call.record.address,
                call.environment,
                call.function,
                call.call,
            )
        };
        identity(self) == identity(other)
    }
}

/// A place in the code of a function.
#[derive(Debug, Clone, Copy)]
pub enum Site {
    /// A `srcref`, or `R_NilValue`.
    Srcref(u64),
    /// A position in byte code, as a number of instructions.
    Relative {
        code: u64,
        instructions: u64,
    },
    /// A position in byte code: the address of the variable that points to the next instruction.
    Absolute {
        code: u64,
        variable: u64,
    },
    Unknown,
}

impl Site {
    /// The address of the object that it refers to; 0 if there is none.
    pub fn object(self) -> u64 {
        match self {
            Site::Srcref(object) => object,
            Site::Relative { code, .. } | Site::Absolute { code, .. } => code,
            Site::Unknown => 0,
        }
    }

    /// The address of the variable with the position.
    pub fn variable(self) -> Option<u64> {
        match self {
            Site::Absolute { variable, .. } => Some(variable),
            _ => None,
        }
    }
}

/// The result of an attempt. The buffers are reused.
#[derive(Debug, Default)]
pub struct Calls {
    head: u64,
    /// Innermost first.
    pub calls: Vec<Call>,
    /// Where the innermost function is.
    pub innermost: Option<Site>,
    /// Whether outer calls were left out.
    pub is_cut: bool,
    /// Whether only a few inner calls are read.
    pub only_inner: bool,
    records: Vec<Record>,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
}

/// The fields of a record that identify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    address: u64,
    next: u64,
    flags: u32,
    call: u64,
    environment: u64,
}

impl Calls {
    /// Reads the calls. Returns `false` if they are invalid. Whether they changed meanwhile is checked by
    /// [`Calls::are_unchanged`], after everything that they refer to was read as well.
    pub fn read(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        registers: Option<Registers>,
    ) -> Result<bool> {
        let Some(innermost) = self.read_variables(memory, target, registers) else {
            return Ok(false);
        };
        self.innermost = innermost;
        self.read_records(memory, target)
    }

    /// The address of the innermost record.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The addresses of the records, innermost first.
    pub fn records(&self) -> impl ExactSizeIterator<Item = u64> {
        self.records.iter().map(|record| record.address)
    }

    /// The head of the list, and the position of the innermost function.
    fn read_variables(
        &mut self,
        memory: &mut impl Memory,
        target: &Target,
        registers: Option<Registers>,
    ) -> Option<Option<Site>> {
        let variables = &target.addresses;
        self.head = memory::word(memory, variables.head)?;
        let srcref = memory::word(memory, variables.srcref)?;
        if srcref != target.values.in_byte_code {
            return Some(Some(Site::Srcref(srcref)));
        }
        let Some(registers) = registers else {
            return Some(None);
        };
        Some(Some(Site::Absolute {
            code: memory::word(memory, registers.code)?,
            variable: memory::word(memory, registers.pc)?,
        }))
    }

    fn read_records(&mut self, memory: &mut impl Memory, target: &Target) -> Result<bool> {
        self.calls.clear();
        self.records.clear();
        self.is_cut = false;
        let mut address = self.head;
        let most = if self.only_inner {
            FEW_CALLS
        } else {
            MOST_CALLS
        };
        let mut order = Order::of(target);
        let mut bytes = [0; RECORD];
        while address != target.toplevel {
            if self.records.len() == MOST_RECORDS || self.calls.len() == most {
                self.is_cut = true;
                break;
            }
            if !order.allows(address) || !memory.read(address, &mut bytes) {
                return Ok(false);
            }
            let record = Record::read(address, &bytes);
            if record.flags >= FLAGS {
                return Ok(false);
            }
            self.records.try_push(record)?;
            if record.is_call() {
                self.calls.try_push(Call::of(address, &bytes, target))?;
            }
            address = record.next;
        }
        Ok(true)
    }

    /// Reads the fields that identify the records again, and compares them.
    pub fn are_unchanged(&mut self, memory: &mut impl Memory, target: &Target) -> Result<bool> {
        let (count, is_head) = self.unchanged(memory, target)?;
        Ok(is_head && count == self.records.len())
    }

    /// The number of outer calls whose records are still the same.
    pub fn unchanged_calls(&mut self, memory: &mut impl Memory, target: &Target) -> Result<usize> {
        let (count, _) = self.unchanged(memory, target)?;
        let outer = self.records.iter().rev().take(count);
        Ok(outer.filter(|record| record.is_call()).count())
    }

    /// The number of outer records that are still the same, and whether the innermost record still has the same
    /// address.
    fn unchanged(&mut self, memory: &mut impl Memory, target: &Target) -> Result<(usize, bool)> {
        const IDENTITY: usize = CLOENV as usize + 8;
        self.pieces.clear();
        let address = target.addresses.head;
        self.pieces.try_push(Piece { address, size: 8 })?;
        for record in &self.records {
            let piece = Piece {
                address: record.address,
                size: IDENTITY,
            };
            self.pieces.try_push(piece)?;
        }
        let size = 8 + IDENTITY * self.records.len();
        self.bytes.clear();
        self.bytes.try_fill(size, 0)?;
        if memory.read_pieces(&self.pieces, &mut self.bytes) < self.pieces.len() {
            return Ok((0, false));
        }
        let (head, records) = self.bytes.split_at(8);
        let records = self.records.iter().zip(records.chunks_exact(IDENTITY));
        let same = records.rev().take_while(|(record, bytes)| record.is(bytes));
        Ok((same.count(), at(head, 0) == self.head))
    }
}

impl Record {
    fn read(address: u64, bytes: &[u8]) -> Record {
        Record {
            address,
            next: at(bytes, NEXT as usize),
            flags: half_at(bytes, CALLFLAG as usize),
            call: at(bytes, CALL as usize),
            environment: at(bytes, CLOENV as usize),
        }
    }

    /// Whether it is the record of a call, and not that of a loop.
    fn is_call(&self) -> bool {
        is_call(self.flags)
    }

    /// Whether these bytes contain the same identifying fields.
    fn is(&self, bytes: &[u8]) -> bool {
        *self == Record::read(self.address, bytes)
    }
}

/// Whether a record with these flags is that of a call.
pub fn is_call(flags: u32) -> bool {
    flags & (CLOSURE | BUILTIN) != 0
}

/// The order of records: those of outer calls have higher addresses on the C stack, which grows downwards, and lower
/// ones on the node stack. So a list in this order has no cycles.
#[derive(Debug, Clone)]
pub struct Order {
    stack: Range<u64>,
    node_stack: Range<u64>,
    /// The address of the last record on each stack.
    last: u64,
    last_node: u64,
}

impl Order {
    pub fn of(target: &Target) -> Order {
        Order {
            stack: target.stack.clone(),
            node_stack: target.node_stack.clone(),
            last: 0,
            last_node: u64::MAX,
        }
    }

    /// Whether the next record may be at this address.
    pub fn allows(&mut self, address: u64) -> bool {
        let is_outer;
        // The range of the C stack is larger than the stack itself, and may contain the node stack.
        if self.node_stack.contains(&address) {
            is_outer = address < self.last_node;
            self.last_node = address;
        } else {
            is_outer = self.stack.contains(&address) && address > self.last;
            self.last = address;
        }
        is_outer && address % 8 == 0
    }
}

/// Where the function of a record was called.
fn site(record: &[u8], target: &Target) -> Site {
    let srcref = at(record, target.layout.srcref as usize);
    if srcref != target.values.in_byte_code {
        return Site::Srcref(srcref);
    }
    let code = at(record, BCBODY as usize);
    let relative = target.layout.relative_pc;
    match relative.map(|field| at(record, field as usize)) {
        // The value is 0 or less if it was not set.
        Some(instructions) if (1..1 << 32).contains(&instructions) => {
            Site::Relative { code, instructions }
        }
        _ => Site::Absolute {
            code,
            variable: at(record, BCPC as usize),
        },
    }
}
