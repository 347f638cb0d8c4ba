//! Unwind tables, which describe how to get from a frame to its caller.
//!
//! The section `.eh_frame` contains, for each instruction, a rule that describes where the caller's registers are;
//! `.eh_frame_hdr` is a sorted index of it. Both are mapped with the code. Most rules have one simple form,
//! [`Plain`], and are cached. The rules of PLT stubs, of signal frames and of functions that align their stack
//! contain expressions.

use crate::registers::{LINK, RETURN, Registers, SAVED, VENDOR};
use crate::stack::Stack;
use gimli::{
    ArrayLike, BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, Evaluation,
    EvaluationResult, EvaluationStorage, Expression, FrameDescriptionEntry, Location, NativeEndian,
    ParsedEhFrameHdr, Piece, Pointer, ReaderOffset, Register, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use std::ops::Range;

type Reader<'a> = EndianSlice<'a, NativeEndian>;

/// The tables of a module.
pub struct UnwindTables<'a> {
    header: ParsedEhFrameHdr<Reader<'a>>,
    frames: EhFrame<Reader<'a>>,
    bases: BaseAddresses,
}

/// Memory for gimli, allocated before the run.
pub type Scratch = UnwindContext<usize, Fixed>;

/// A rule in the common form.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// The caller's stack pointer is the value of this register plus this offset.
    pub register: u16,
    pub offset: i64,
    /// The offsets, from the caller's stack pointer, of the saved registers and the return address.
    pub saved: [Option<i32>; SAVED.len()],
    /// If a frame that made a call has not saved the return address, it is the outermost one. A frame that was
    /// interrupted may have it in the register of [`LINK`].
    pub counter: Option<i32>,
    /// Whether a signal interrupted the caller, so that its program counter is not the return address of a call.
    pub signal: bool,
}

/// A rule that finds the caller of a frame.
pub enum Rule<'a> {
    Plain(Plain),
    /// The entry whose rule contains expressions.
    Complex(FrameDescriptionEntry<Reader<'a>>),
}

impl<'a> UnwindTables<'a> {
    /// `header` is the address range of the index, and `bytes` are the contents of memory from its start on,
    /// including the tables.
    pub fn new(header: &Range<u64>, bytes: &'a [u8]) -> Option<UnwindTables<'a>> {
        if header.is_empty() {
            return None;
        }
        let size = usize::try_from(header.end.checked_sub(header.start)?).ok()?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(header.start);
        let parsed = EhFrameHdr::new(bytes.get(..size)?, NativeEndian)
            .parse(&bases, 8)
            .ok()?;
        let Pointer::Direct(start) = parsed.eh_frame_ptr() else {
            return None;
        };
        // Linkers place the tables after their header.
        if start < header.end {
            return None;
        }
        let tables = bytes.get(usize::try_from(start - header.start).ok()?..)?;
        if tables.is_empty() {
            return None;
        }
        let mut frames = EhFrame::new(tables, NativeEndian);
        frames.set_vendor(VENDOR);
        Some(UnwindTables {
            header: parsed,
            frames,
            bases: bases.set_eh_frame(start),
        })
    }

    /// The code of the largest function.
    pub fn largest_function(&self) -> Option<Range<u64>> {
        let mut largest = 0..0;
        let mut entries = self.frames.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else {
                continue;
            };
            let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else {
                continue;
            };
            if entry.len() > largest.end - largest.start {
                let start = entry.initial_address();
                largest = start..start.checked_add(entry.len())?;
            }
        }
        (!largest.is_empty()).then_some(largest)
    }

    /// The code of the function that contains an address.
    pub fn function(&self, address: u64) -> Option<Range<u64>> {
        let entry = self.entry(address)?;
        let start = entry.initial_address();
        Some(start..start.checked_add(entry.len())?)
    }

    fn entry(&self, address: u64) -> Option<FrameDescriptionEntry<Reader<'a>>> {
        let table = self.header.table()?;
        table
            .fde_for_address(&self.frames, &self.bases, address, EhFrame::cie_from_offset)
            .ok()
    }

    /// The rule for an address inside the current instruction, or inside the call instruction.
    pub fn rule(&self, address: u64, scratch: &mut Scratch) -> Option<Rule<'a>> {
        let entry = self.entry(address)?;
        let row = self.row(&entry, address, scratch)?;
        match plain(row, entry.is_signal_trampoline()) {
            Some(rule) => Some(Rule::Plain(rule)),
            None => Some(Rule::Complex(entry)),
        }
    }

    fn row<'s>(
        &self,
        entry: &FrameDescriptionEntry<Reader<'_>>,
        address: u64,
        scratch: &'s mut Scratch,
    ) -> Option<&'s UnwindTableRow<usize, Fixed>> {
        entry
            .unwind_info_for_address(&self.frames, &self.bases, scratch, address)
            .ok()
    }

    /// The caller's registers, computed by a rule with expressions. The program counter is `None` at the end of the
    /// stack. `exact` is whether the frame was interrupted, see [`Plain::counter`].
    pub fn apply(
        &self,
        entry: &FrameDescriptionEntry<Reader<'_>>,
        address: u64,
        scratch: &mut Scratch,
        registers: &Registers,
        exact: bool,
        stack: impl Stack,
    ) -> Option<(Registers, Option<u64>)> {
        let encoding = entry.cie().encoding();
        let row = self.row(entry, address, scratch)?;
        let compute = |expression: &UnwindExpression<usize>, start: Option<u64>| {
            let expression = expression.get(&self.frames).ok()?;
            evaluate(expression, encoding, start, registers, stack)
        };
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                registers.get(register.0)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => compute(expression, None)?,
        };
        let value = |register: u16| match row.register(Register(register)) {
            RegisterRule::Undefined | RegisterRule::SameValue => registers.get(register),
            RegisterRule::Offset(offset) => stack.read(frame.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Some(frame.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => registers.get(other.0),
            RegisterRule::Expression(expression) => stack.read(compute(&expression, Some(frame))?),
            RegisterRule::ValExpression(expression) => compute(&expression, Some(frame)),
            RegisterRule::Constant(value) => Some(value),
            _ => None,
        };
        let is_unsaved = matches!(row.register(Register(RETURN)), RegisterRule::Undefined);
        let ends = is_unsaved && !(exact && LINK.is_some());
        let counter = if ends { None } else { Some(value(RETURN)?) };
        let mut caller = registers.clone();
        for register in SAVED {
            caller.set(register, value(register)?);
        }
        caller.return_to(counter.unwrap_or(0), frame);
        Some((caller, counter))
    }
}

fn plain(row: &UnwindTableRow<usize, Fixed>, signal: bool) -> Option<Plain> {
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
        return None;
    };
    let place = |register: u16| match row.register(Register(register)) {
        RegisterRule::Undefined | RegisterRule::SameValue => Some(None),
        RegisterRule::Offset(offset) => i32::try_from(offset).ok().map(Some),
        _ => None,
    };
    let mut saved = [None; SAVED.len()];
    for (slot, register) in saved.iter_mut().zip(SAVED) {
        *slot = place(register)?;
    }
    Some(Plain {
        register: register.0,
        offset: *offset,
        saved,
        counter: place(RETURN)?,
        signal,
    })
}

/// Valid expressions take a few steps; one that loops is damaged.
const MOST_STEPS: u32 = 100;

fn evaluate(
    expression: Expression<Reader<'_>>,
    encoding: gimli::Encoding,
    start: Option<u64>,
    registers: &Registers,
    stack: impl Stack,
) -> Option<u64> {
    let mut evaluation = Evaluation::<Reader<'_>, Fixed>::new_in(expression.0, encoding);
    evaluation.set_max_iterations(MOST_STEPS);
    if let Some(start) = start {
        evaluation.set_initial_value(start);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let bits = 8 * u32::from(size).clamp(1, 8);
                let value = stack.read(address)? & (u64::MAX >> (64 - bits));
                evaluation.resume_with_memory(Value::Generic(value)).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = registers.get(register.0)?;
                evaluation
                    .resume_with_register(Value::Generic(value))
                    .ok()?
            }
            _ => return None,
        };
    }
    match evaluation.as_result() {
        [
            Piece {
                location: Location::Address { address },
                ..
            },
        ] => Some(*address),
        _ => None,
    }
}

/// Memory of a fixed size for tables and expressions, since nothing may be allocated in a handler.
/// Frames whose rules need more are not unwound.
#[derive(Debug, Clone, Copy)]
pub struct Fixed;

impl<T: ReaderOffset> UnwindContextStorage<T> for Fixed {
    type Rules = [(Register, RegisterRule<T>); 32];
    type Stack = Rows<T>;
}

type Rows<T> = [UnwindTableRow<T, Fixed>; 4];

impl<'a> EvaluationStorage<Reader<'a>> for Fixed {
    type Stack = [Value; 32];
    type ExpressionStack = [(Reader<'a>, Reader<'a>); 4];
    type Result = [Piece<Reader<'a>>; 1];
}

const _: () = {
    const fn holds<A: ArrayLike>() {}
    holds::<Rows<usize>>();
};
