//! Unwind tables, which describe how to get from a frame to its caller.
//!
//! The section `.eh_frame` contains, for each instruction, a rule that describes where the caller's
//! registers are; `.eh_frame_hdr` is a sorted index of it. Both are mapped with the code. Most
//! rules have one simple form, [`Plain`], and are cached; those of stubs that bind functions, of
//! frames of signal handlers and of functions that align their stack contain expressions.

use super::memory::Stack;
use super::x86_64::{RETURN, Registers, SAVED};
use gimli::{
    ArrayLike, BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, Evaluation,
    EvaluationResult, EvaluationStorage, Expression, FrameDescriptionEntry, Location, NativeEndian,
    ParsedEhFrameHdr, Piece, Pointer, ReaderOffset, Register, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use std::ops::Range;

type Reader = EndianSlice<'static, NativeEndian>;

/// The tables of a module.
pub struct UnwindTables {
    header: ParsedEhFrameHdr<Reader>,
    frames: EhFrame<Reader>,
    bases: BaseAddresses,
}

/// Memory for gimli, allocated before the run.
pub type Scratch = UnwindContext<usize, Fixed>;

/// A rule that finds the caller of a frame, in the common form.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// The caller's stack pointer is the value of this register plus this offset.
    pub register: u16,
    pub offset: i64,
    /// The offsets, from the caller's stack pointer, of the saved registers and the return address.
    pub saved: [Option<i32>; SAVED.len()],
    pub counter: Option<i32>,
    /// A signal interrupted the caller: its program counter is not that of a call.
    pub signal: bool,
}

/// A rule that finds the caller of a frame.
pub enum Rule {
    Plain(Plain),
    /// The rule of this entry, which contains expressions.
    Complex(FrameDescriptionEntry<Reader>),
}

impl UnwindTables {
    /// # Safety
    /// `header` and the memory after it, up to `end`, are mapped and stay so.
    pub unsafe fn new(header: &Range<u64>, end: u64) -> Option<UnwindTables> {
        if header.is_empty() {
            return None;
        }
        // SAFETY: as promised.
        let section = |start: u64, end: u64| unsafe {
            std::slice::from_raw_parts(start as *const u8, end.saturating_sub(start) as usize)
        };
        let bases = BaseAddresses::default().set_eh_frame_hdr(header.start);
        let parsed = EhFrameHdr::new(section(header.start, header.end), NativeEndian)
            .parse(&bases, 8)
            .ok()?;
        let Pointer::Direct(start) = parsed.eh_frame_ptr() else {
            return None;
        };
        // Linkers place the tables after their header.
        if start < header.end || start >= end {
            return None;
        }
        Some(UnwindTables {
            header: parsed,
            frames: EhFrame::new(section(start, end), NativeEndian),
            bases: bases.set_eh_frame(start),
        })
    }

    /// The code of the function that contains an address.
    pub fn function(&self, address: u64) -> Option<Range<u64>> {
        let entry = self.entry(address)?;
        let start = entry.initial_address();
        Some(start..start.checked_add(entry.len())?)
    }

    fn entry(&self, address: u64) -> Option<FrameDescriptionEntry<Reader>> {
        let table = self.header.table()?;
        table
            .fde_for_address(&self.frames, &self.bases, address, EhFrame::cie_from_offset)
            .ok()
    }

    /// The rule for an address inside the instruction that runs or calls.
    pub fn rule(&self, address: u64, scratch: &mut Scratch) -> Option<Rule> {
        let entry = self.entry(address)?;
        let row = self.row(&entry, address, scratch)?;
        match plain(row, entry.is_signal_trampoline()) {
            Some(rule) => Some(Rule::Plain(rule)),
            None => Some(Rule::Complex(entry)),
        }
    }

    fn row<'s>(
        &self,
        entry: &FrameDescriptionEntry<Reader>,
        address: u64,
        scratch: &'s mut Scratch,
    ) -> Option<&'s UnwindTableRow<usize, Fixed>> {
        entry
            .unwind_info_for_address(&self.frames, &self.bases, scratch, address)
            .ok()
    }

    /// The caller's registers by a rule with expressions. Its program counter is `None` at the end of the
    /// stack.
    pub fn apply(
        &self,
        entry: &FrameDescriptionEntry<Reader>,
        address: u64,
        scratch: &mut Scratch,
        registers: &Registers,
        stack: Stack,
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
        let ends = matches!(row.register(Register(RETURN)), RegisterRule::Undefined);
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

/// Real expressions take a few steps; one that loops is damaged.
const MOST_STEPS: u32 = 100;

fn evaluate(
    expression: Expression<Reader>,
    encoding: gimli::Encoding,
    start: Option<u64>,
    registers: &Registers,
    stack: Stack,
) -> Option<u64> {
    let mut evaluation = Evaluation::<Reader, Fixed>::new_in(expression.0, encoding);
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

impl EvaluationStorage<Reader> for Fixed {
    type Stack = [Value; 32];
    type ExpressionStack = [(Reader, Reader); 4];
    type Result = [Piece<Reader>; 1];
}

const _: () = {
    const fn holds<A: ArrayLike>() {}
    holds::<Rows<usize>>();
};
