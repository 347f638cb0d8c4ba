//! R's calls, as its list of records has them, from the innermost to the outermost one.

use crate::running_r::RunningR;
use crate::stack::frames::{MOST_CALLS, OnStack};
use crate::stack::missing::{Missing, Read};
use crate::stack::snapshot::Snapshot;
use crate::stack::trunk::Trunk;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{Identity, Record, Site};
use profile_runtime::memory::Memory;
use profile_runtime::variables::{GLOBAL_CONTEXT, SRCREF};
use std::ops::Range;

/// Records of loops come in addition to those of calls.
const MOST_RECORDS: usize = 3 * MOST_CALLS;

/// The call of a function.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub record: OnStack,
    pub identity: Identity,
    /// A `LANGSXP`, with rare exceptions.
    pub call: u64,
    /// The closure that was called; `NULL` if it was a builtin.
    pub function: u64,
    /// The environment of the call.
    pub environment: u64,
    /// Where it was called.
    pub site: Site,
}

/// The addresses of `R_BCbody` and `R_BCpc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PositionVariables {
    pub code: u64,
    pub pc: u64,
}

/// Where the list of calls ends that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// At the outermost call.
    #[default]
    Outermost,
    /// At a call that was on the last stack, too: the number of calls from there on.
    Known(usize),
    /// Further out there are more.
    More,
}

/// The innermost calls of a stack. The buffer is reused.
#[derive(Debug, Default)]
pub struct Calls {
    /// Innermost first.
    pub calls: Vec<Call>,
    /// Where the innermost function is. `None` if that is a position in byte code, and the variables that contain it
    /// are unknown.
    pub innermost: Option<Site>,
    pub end: End,
    /// The address of the next record.
    next: u64,
    order: Order,
    /// The number of records that were read, and of calls that are passed before any may be known.
    records: usize,
    near: usize,
}

impl Calls {
    /// Reads the innermost calls, up to this number, and then where the innermost function is. After `near` calls, it ends
    /// at a call of the trunk. If the records change meanwhile, they may not be a list of calls.
    pub fn read<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        r: &RunningR,
        registers: Option<PositionVariables>,
        (near, most): (usize, usize),
        trunk: &mut Trunk,
    ) -> Read<()> {
        let head = snapshot.begin()?;
        let head = head.ok_or(Missing::Variable(GLOBAL_CONTEXT))?;
        self.calls.clear();
        self.next = head;
        self.order = Order::new(r);
        self.records = 0;
        self.near = near;
        self.read_on(snapshot, r, most, trunk)?;
        let marker = r.values.in_byte_code;
        let mut srcref = r.values.nil;
        for (number, &address) in r.srcrefs.iter().enumerate() {
            let value = snapshot.variable(address)?;
            let value = value.ok_or(Missing::Variable(SRCREF))?;
            // Of two variables, one always has the marker.
            if number == 0 || value != marker {
                srcref = value;
            }
        }
        self.innermost = match registers {
            _ if srcref != marker => Some(Site::Srcref(srcref)),
            None => None,
            Some(registers) => {
                let code = snapshot.variable(registers.code)?;
                let variable = snapshot.variable(registers.pc)?;
                Some(Site::Absolute {
                    code: code.ok_or(Missing::Position)?,
                    variable: variable.ok_or(Missing::Position)?,
                })
            }
        };
        // The positions belong to the calls, so they are read before the records are read again.
        let calls = self.calls.iter().map(|call| call.site);
        for site in self.innermost.into_iter().chain(calls) {
            if let Site::Absolute { variable, .. } = site {
                snapshot.variable(variable)?;
            }
        }
        Ok(())
    }

    /// Reads further calls, until there are so many or they end.
    pub fn read_on<M: Memory>(
        &mut self,
        snapshot: &mut Snapshot<M>,
        r: &RunningR,
        most: usize,
        trunk: &mut Trunk,
    ) -> Read<()> {
        self.end = End::More;
        let more = most.saturating_sub(self.calls.len());
        let most_records = MOST_RECORDS.min(self.records + 3 * more);
        while self.next != r.toplevel {
            let is_enough = self.calls.len() >= most && !trunk.has(self.next);
            if is_enough || self.records == most_records {
                return Ok(());
            }
            let missing = Missing::Context(self.calls.len());
            if !self.order.allows(self.next) {
                return Err(missing.into());
            }
            let record = snapshot.record(self.next)?.ok_or(missing)?;
            if self.calls.len() >= self.near {
                if let Some(known) = trunk.join(snapshot, self.calls.len(), self.next, &record)? {
                    self.end = End::Known(known);
                    return Ok(());
                }
            }
            let head = record.head();
            if !head.is_possible() {
                return Err(missing.into());
            }
            if head.is_call() {
                self.calls.try_push(Call::new(self.next, &record, r))?;
            }
            self.next = head.next;
            self.records += 1;
        }
        self.end = End::Outermost;
        Ok(())
    }

    /// Whether there are more calls than are ever read.
    pub fn are_too_many(&self) -> bool {
        self.records == MOST_RECORDS || self.calls.len() >= MOST_CALLS
    }
}

impl Call {
    /// The call of the record at an address.
    fn new(address: u64, record: &Record, r: &RunningR) -> Call {
        Call {
            record: OnStack {
                address,
                flags: record.head().flags as u16,
                promises: r.layout.map_or(0, |layout| record.promises(layout)),
            },
            identity: Identity::parse(&record.0),
            call: record.call(),
            function: record.function(),
            environment: record.environment(),
            site: match r.layout {
                Some(layout) => record.site(layout, r.values.in_byte_code),
                None => Site::Srcref(r.values.nil),
            },
        }
    }
}

/// The order of records: those of outer calls have higher addresses on the C stack, which grows downwards, and lower
/// ones on the node stack. So a list in this order has no cycles.
#[derive(Debug, Default)]
struct Order {
    stack: Range<u64>,
    node_stack: Range<u64>,
    /// The address of the last record on each stack.
    last: u64,
    last_node: u64,
}

impl Order {
    fn new(r: &RunningR) -> Order {
        Order {
            stack: r.stack.clone(),
            node_stack: r.node_stack.clone(),
            last: 0,
            last_node: u64::MAX,
        }
    }

    /// Whether the next record may be at this address.
    fn allows(&mut self, address: u64) -> bool {
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
