//! What is read of a process for one stack: R's list of records, its variables, and objects.
//!
//! A process that stands still is simply read. One that goes on changes meanwhile: R removes a record and makes another
//! one within nanoseconds. Therefore the records are read first, then the variables and positions, and then the records
//! again ([`Snapshot::is_unchanged`]). What is the same both times was the same in between, so all of it is of one
//! moment. In a loop, the same function is called again, and its record is at the same address. These calls differ in
//! their environments, since each call has a new one.
//!
//! The outer calls of a deep stack are read later, when the process goes on: [`Snapshot::complete`].
//!
//! Nothing that was read is trusted: addresses are only passed to the kernel, which rejects invalid ones, except those
//! of R's stacks and variables in this process, which are always mapped.

use crate::memory::copies::Copies;
use crate::running_r::head::Head;
use crate::stack::moment::Moment;
use crate::stack::spans;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;
use profile_runtime::contexts::{Identity, RECORD, Record};
use profile_runtime::memory::{self, Limited, Memory, Piece, at};
use profile_runtime::objects::CELL;
use std::time::Duration;

/// The memory of a process, and copies of what one stack needs.
#[derive(Debug)]
pub struct Snapshot<M> {
    memory: Limited<M>,
    innermost: Head,
    /// The address of the variable that points to the innermost record, and its value.
    head_at: u64,
    head: u64,
    records: Copies<RECORD>,
    variables: Copies<8>,
    objects: Copies<CELL>,
    /// Whether what is read is not part of the one moment any more.
    is_late: bool,
    /// The address of the record of the active span, if the process has one, and its content.
    span_at: Option<u64>,
    span: Option<spans::Record>,
    clock: fn() -> Moment,
    begun: Moment,
    /// See [`Snapshot::moment()`].
    moment: Moment,
    pieces: Vec<Piece>,
    again: Vec<u8>,
}

impl<M: Memory> Snapshot<M> {
    /// `innermost` is the variable that points to the innermost record.
    pub fn new(memory: Limited<M>, innermost: Head) -> Snapshot<M> {
        Snapshot {
            memory,
            innermost,
            head_at: 0,
            head: 0,
            records: Copies::default(),
            variables: Copies::default(),
            objects: Copies::default(),
            is_late: false,
            span_at: None,
            span: None,
            clock: Moment::now,
            begun: Moment::now(),
            moment: Moment::now(),
            pieces: Vec::new(),
            again: Vec::new(),
        }
    }

    /// Sets the address of the record of the active span.
    pub fn set_span(&mut self, address: Option<u64>) {
        self.span_at = address;
    }

    pub fn span_at(&self) -> Option<u64> {
        self.span_at
    }

    /// The record of the span that was active.
    pub fn span(&self) -> Option<spans::Record> {
        self.span
    }

    fn read_span(&mut self) -> Option<spans::Record> {
        spans::Record::read(&mut self.memory, self.span_at?)
    }

    /// Prepares the next snapshot, so that it takes less time.
    pub fn plan(&mut self) -> Result<()> {
        self.records.plan()?;
        self.variables.plan()?;
        self.objects.plan()
    }

    /// Begins a snapshot. Returns the address of the innermost record; `None` if it cannot be read.
    pub fn begin(&mut self) -> Result<Option<u64>> {
        self.records.begin()?;
        self.variables.begin()?;
        self.objects.begin()?;
        self.is_late = false;
        self.begun = self.now();
        self.moment = self.begun;
        self.span = self.read_span();
        let head = self.innermost.read(&mut self.memory);
        (self.head_at, self.head) = head.unwrap_or_default();
        Ok(head.map(|head| head.1))
    }

    /// Completes the snapshot with what is read from now on, which is not part of the one moment, and is not copied for
    /// the next snapshot.
    pub fn complete(&mut self) {
        self.is_late = true;
        self.objects.stop_planning();
    }

    /// A record of R's list.
    pub fn record(&mut self, address: u64) -> Result<Option<Record>> {
        if self.is_late {
            return Ok(Record::read(&mut self.memory, address));
        }
        let record = self.records.get(&mut self.memory, address)?;
        Ok(record.map(Record))
    }

    /// Whether the call of a record has not ended.
    pub fn is_still(&mut self, address: u64, identity: Identity) -> bool {
        let record = memory::array::<{ Identity::SIZE }>(&mut self.memory, address);
        record.is_some_and(|record| Identity::parse(&record) == identity)
    }

    /// A variable of one word, of R or of one of its functions.
    pub fn variable(&mut self, address: u64) -> Result<Option<u64>> {
        if self.is_late {
            return Ok(memory::word(&mut self.memory, address));
        }
        let copy = self.variables.get(&mut self.memory, address)?;
        Ok(copy.map(u64::from_le_bytes))
    }

    /// The first words of an object, which are all of it, unless it is a vector.
    pub fn object(&mut self, address: u64) -> Result<Option<[u8; CELL]>> {
        self.objects.get(&mut self.memory, address)
    }

    /// Sets another clock than that of the system.
    pub fn set_clock(&mut self, clock: fn() -> Moment) {
        self.clock = clock;
    }

    pub fn now(&self) -> Moment {
        (self.clock)()
    }

    /// A moment at which the process was in the state that was read. If it was not kept where it is, this thread may
    /// have waited for a processor before the first read or after the second one, so the moment is between them.
    pub fn moment(&self) -> Moment {
        self.moment
    }

    /// How long ago the snapshot was begun.
    pub fn age(&self) -> Duration {
        let now = self.now().time;
        now.saturating_duration_since(self.begun.time)
    }

    /// Reads the records again. Returns whether they are still those of the same calls, and on the stack, and whether the
    /// same span is active.
    pub fn is_unchanged(&mut self) -> Result<bool> {
        self.moment = self.now();
        if self.read_span() != self.span {
            return Ok(false);
        }
        self.pieces.clear();
        let address = self.head_at;
        self.pieces.try_push(Piece { address, size: 8 })?;
        for (address, _) in self.records.needed() {
            let size = Identity::SIZE;
            self.pieces.try_push(Piece { address, size })?;
        }
        // Without a copy of each record, nothing can be compared.
        let count = self.records.count();
        if self.pieces.len() <= count {
            return Ok(false);
        }
        self.again.clear();
        self.again.try_fill(8 + Identity::SIZE * count, 0)?;
        if self.memory.read_pieces(&self.pieces, &mut self.again) < self.pieces.len() {
            return Ok(false);
        }
        let (head, records) = self.again.split_at(8);
        let records = records.chunks_exact(Identity::SIZE).map(Identity::parse);
        let first = self
            .records
            .needed()
            .map(|(_, copy)| Identity::parse(&copy));
        Ok(at(head, 0) == self.head && first.eq(records))
    }

    /// Sets the limit on what is read, see [`Limited`].
    pub fn limit(&mut self, limit: u64) {
        self.memory.limit(limit);
    }

    /// Whether the limit was reached.
    pub fn is_exhausted(&self) -> bool {
        self.memory.is_exhausted()
    }
}

/// What is read only once is not copied for the next stack.
impl<M: Memory> Memory for Snapshot<M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read(address, into)
    }

    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        self.memory.read_pieces(pieces, into)
    }
}
