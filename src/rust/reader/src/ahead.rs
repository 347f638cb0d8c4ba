//! Copies at one moment what a stack needs. That is probably what the last stack with the same innermost record needed.
//!
//! One system call reads the records of calls from the outermost to the innermost, R's variables, then the records
//! from the innermost to the outermost. Records that are the same both times were so in the middle, when the variables
//! were read, so all of them belong to one moment. The calls that end soonest are read within the shortest time, a few
//! microseconds. To follow the records with one system call after the other takes forty times as long, and small
//! functions have returned by then. The objects that they refer to are copied afterwards (`objects.rs`): R frees nothing
//! so soon.
//!
//! Each piece takes about half a microsecond. Functions that take ten of them are often seen while a record changes.
//! If such stacks were not taken, these functions would have fewer samples than others. So records that have moved on
//! are told (`Ahead::moved`), and `chain.rs` finds out whether what the second reading found was a stack, or else what
//! the first one did.
//!
//! The stack of the reader's own process is at hand. It is not copied by the kernel, but followed (`walk.rs`).
//!
//! The position of the innermost function in its byte code changes all the time. Any position will do that it had
//! while its record existed.

use crate::calls::Order;
use crate::copies::{Copies, Need};
use crate::memory::{self, Memory, Piece, at};
use crate::objects::Objects;
use crate::pieces::{Key, Kind, end};
use crate::walk::{Walk, is_same_record};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_runtime::contexts::RECORD;
use profile_runtime::objects::CELL;
use std::collections::HashMap;
use std::mem;
use std::time::{Duration, Instant};

const WHAT: &str = "the memory of a process";
/// The most that is remembered of stacks. Deeper ones are read piece by piece; they change less often than they are
/// read.
const MOST: usize = 100_000;
/// Of stacks that need more, only what the last one needed.
const MANY: usize = 200;

/// A memory, with copies of some pieces.
#[derive(Debug)]
pub struct Ahead<M> {
    memory: M,
    /// What stacks have needed, by the address of the innermost record.
    needs: HashMap<u64, Vec<Need>, foldhash::fast::RandomState>,
    /// How much this is.
    count: usize,
    /// What this stack needs, and its innermost record.
    current: Vec<Need>,
    head: Option<u64>,
    copies: Copies,
    /// The innermost record of the stack that is copied.
    listed: Option<u64>,
    /// The addresses of R's variables.
    variables: Vec<u64>,
    next_variables: Vec<u64>,
    walk: Walk,
    order: Order,
    objects: Objects,
    stage: Stage,
    was: Was,
    reading: Reading,
    moved: Moved,
    /// Variables of functions that were not copied, but read together with the records.
    words: HashMap<u64, [u8; 8], foldhash::fast::RandomState>,
    copied_at: Instant,
}

/// Which of both copies is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    First,
    Second,
}

/// What was something else at the other reading.
#[derive(Debug, Default)]
pub struct Moved {
    /// Addresses of records.
    pub records: Vec<u64>,
    /// Whether there is a position of a function that has called another one.
    pub has_position: bool,
}

impl Moved {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && !self.has_position
    }

    fn clear(&mut self) {
        self.records.clear();
        self.has_position = false;
    }
}

/// How what was read since a stage began was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Was {
    /// It was copied.
    Copied,
    /// Records were copied, but some objects were read now.
    Late,
    /// Some of it was read now.
    Read,
}

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Something else than a stack.
    Other,
    /// Variables and records.
    Records,
    /// What they refer to: what a word is, and whether the records were copied.
    Objects { word: Kind, are_copied: bool },
}

impl<M: Memory> Ahead<M> {
    /// `order` is that of the records.
    pub fn new(memory: M, order: Order) -> Ahead<M> {
        Ahead {
            memory,
            needs: HashMap::default(),
            count: 0,
            current: Vec::new(),
            head: None,
            copies: Copies::default(),
            listed: None,
            variables: Vec::new(),
            next_variables: Vec::new(),
            walk: Walk::default(),
            order,
            objects: Objects::default(),
            stage: Stage::Other,
            was: Was::Copied,
            reading: Reading::Second,
            moved: Moved::default(),
            words: HashMap::default(),
            copied_at: Instant::now(),
        }
    }

    /// Prepares to read a stack: copies these variables of one word, of which the first one has the address of the
    /// innermost record, and the records.
    pub fn copy(&mut self, variables: impl Iterator<Item = u64>) -> Result<()> {
        self.remember()?;
        self.next_variables.clear();
        for address in variables {
            self.next_variables.try_push(address, WHAT)?;
        }
        if self.next_variables != self.variables {
            mem::swap(&mut self.next_variables, &mut self.variables);
            self.listed = None;
        }
        self.objects.clear();
        self.copied_at = Instant::now();
        if self.memory.is_own() {
            return self
                .walk
                .take(&mut self.memory, &self.order, &self.variables);
        }
        match self.read_innermost() {
            Some(head) => self.copy_needs(head),
            None => {
                self.do_not_copy();
                Ok(())
            }
        }
    }

    /// The innermost record of the stack of another process that is copied.
    pub fn innermost(&self) -> Option<u64> {
        self.listed
    }

    /// Copies the same variables again and the records, if this is the innermost record now.
    pub fn copy_if(&mut self, innermost: u64) -> Result<bool> {
        if self.read_innermost() != Some(innermost) {
            return Ok(false);
        }
        self.remember()?;
        self.objects.clear();
        self.copied_at = Instant::now();
        self.copy_needs(innermost)?;
        Ok(true)
    }

    fn read_innermost(&mut self) -> Option<u64> {
        let head = self.variables.first()?;
        memory::word(&mut self.memory, *head)
    }

    /// Copies what the last stack with the same innermost record needed.
    fn copy_needs(&mut self, head: u64) -> Result<()> {
        if self.listed != Some(head) {
            let needs = self.needs.get(&head).map_or(&[][..], Vec::as_slice);
            self.copies.list(needs, &self.variables)?;
            self.listed = Some(head);
        }
        if let Some(piece) = self.copies.take(&mut self.memory) {
            let gone = piece.address..end(&piece);
            if let Some(needs) = self.needs.get_mut(&head) {
                needs.retain(|need| !gone.contains(&need.key.1));
            }
            self.do_not_copy();
        }
        Ok(())
    }

    /// Keeps what the last stack needed.
    fn remember(&mut self) -> Result<()> {
        let head = self.head.take().filter(|_| !self.current.is_empty());
        let Some(head) = head else {
            return Ok(());
        };
        if self.count > MOST {
            self.needs.clear();
            (self.count, self.listed) = (0, None);
        }
        if !self.needs.contains_key(&head) {
            self.needs.try_put(head, Vec::new(), WHAT)?;
        }
        let Some(needs) = self.needs.get_mut(&head) else {
            return Ok(());
        };
        let before = needs.len();
        if self.current.len() > MANY {
            if *needs == self.current {
                return Ok(());
            }
            mem::swap(needs, &mut self.current);
        } else {
            if needs.len() > 2 * MANY {
                needs.clear();
            }
            for need in &self.current {
                if !needs.contains(need) {
                    needs.try_push(*need, WHAT)?;
                }
            }
            if needs.len() == before {
                return Ok(());
            }
        }
        self.count = (self.count + needs.len()).saturating_sub(before);
        if self.listed == Some(head) {
            self.listed = None;
        }
        Ok(())
    }

    /// Copies the objects that the calls refer to.
    pub fn copy_objects(&mut self, addresses: impl Iterator<Item = u64>) -> Result<()> {
        self.objects.copy(&mut self.memory, addresses)
    }

    /// Whether the stack is that of the own process.
    pub fn is_own(&self) -> bool {
        self.memory.is_own()
    }

    /// Whether all records and variables were copied.
    pub fn is_complete(&self) -> bool {
        self.was == Was::Copied && self.words.is_empty()
    }

    /// The value of a variable at the moment of the stack, if it was copied.
    pub fn variable(&self, address: u64) -> Option<u64> {
        self.word((Kind::Variable, address))
    }

    /// The same for what may be the position of the innermost function. It will be copied for the next stack.
    pub fn position(&mut self, address: u64) -> Result<Option<u64>> {
        let key = (Kind::Position, address);
        self.begin_word(key)?;
        Ok(self.word(key))
    }

    fn word(&self, key: Key) -> Option<u64> {
        let (bytes, _) = self.copied(key, 8)?;
        Some(at(bytes, 0))
    }

    /// Leaves no copies, so that all is read when it is needed.
    pub fn do_not_copy(&mut self) {
        self.walk.clear();
        self.objects.clear();
        self.copies.clear();
        self.listed = None;
    }

    /// Begins to read a stack.
    pub fn begin(&mut self, reading: Reading) {
        (self.stage, self.was) = (Stage::Records, Was::Copied);
        self.reading = reading;
        self.moved.clear();
        self.words.clear();
    }

    /// Continues with where the innermost function is, when all records were read. These are their addresses,
    /// innermost first.
    pub fn begin_position(&mut self, records: impl ExactSizeIterator<Item = u64>) -> Result<()> {
        self.current.clear();
        self.head = None;
        let depths = (0..records.len()).rev();
        for (address, depth) in records.zip(depths) {
            self.head = self.head.or(Some(address));
            self.need((Kind::Record, address), RECORD, depth)?;
        }
        self.stage = Stage::Objects {
            word: Kind::Position,
            are_copied: self.was == Was::Copied,
        };
        Ok(())
    }

    /// A variable of a function of the stack. If it was not copied, it will be.
    pub fn begin_word(&mut self, key: Key) -> Result<()> {
        if self.memory.is_own() {
            return Ok(());
        }
        if self.word(key).is_none() {
            // It soon has the position of another call.
            let Some(word) = memory::array(&mut self.memory, key.1) else {
                return Ok(());
            };
            self.words.try_put(key.1, word, WHAT)?;
        }
        self.need(key, 8, 0)
    }

    /// Continues with the calls.
    pub fn begin_calls(&mut self) {
        if let Stage::Objects { word, .. } = &mut self.stage {
            *word = Kind::Caller;
        }
    }

    /// Continues with what does not change while the calls are there.
    pub fn begin_lookup(&mut self) -> Was {
        if let Stage::Objects { word, .. } = &mut self.stage {
            *word = Kind::Object;
        }
        std::mem::replace(&mut self.was, Was::Copied)
    }

    /// What was something else at the other reading.
    pub fn moved(&self) -> &Moved {
        &self.moved
    }

    /// How long ago copying began.
    pub fn age(&self) -> Duration {
        self.copied_at.elapsed()
    }

    /// Ends the reading of a stack.
    pub fn end(&mut self) -> Was {
        self.stage = Stage::Other;
        self.was
    }

    fn need(&mut self, key: Key, size: usize, depth: usize) -> Result<()> {
        match self.memory.is_own() || self.current.len() >= MOST {
            true => Ok(()),
            false => self.current.try_push(Need { key, size, depth }, WHAT),
        }
    }

    /// What a read of this size is for.
    fn kind(&self, size: usize) -> Option<Kind> {
        match (self.stage, size) {
            (Stage::Records, RECORD) => Some(Kind::Record),
            (Stage::Records, 8) => Some(Kind::Variable),
            (Stage::Objects { word, .. }, 8) => Some(word),
            (Stage::Objects { .. }, 1..=CELL) => Some(Kind::Object),
            _ => None,
        }
    }

    /// The copy of what is at an address, and whether the other one is the same.
    fn copied(&self, (kind, address): Key, size: usize) -> Option<(&[u8], bool)> {
        if kind == Kind::Object {
            return Some((self.objects.get(address, size)?, true));
        }
        // What was copied before its record may have been something else.
        if let Stage::Objects {
            are_copied: false, ..
        } = self.stage
        {
            return None;
        }
        let walked = match kind {
            Kind::Record => self.walk.record(address),
            Kind::Variable => self.walk.variable(address),
            _ => self.walk.word(address),
        };
        let [first, second] = match walked {
            Some(copies) => copies,
            None => self.copies.get((kind, address)).or_else(|| match kind {
                // A function that has called another one in the last stack may be the innermost one now.
                Kind::Position => self.copies.get((Kind::Caller, address)),
                Kind::Caller => self.copies.get((Kind::Position, address)),
                _ => None,
            })?,
        };
        let is_same = match kind {
            Kind::Caller => first == second,
            Kind::Record => is_same_record(first, second),
            Kind::Object | Kind::Variable | Kind::Position => true,
        };
        let copy = match self.reading {
            Reading::First => first,
            Reading::Second => second,
        };
        Some((copy.get(..size)?, is_same))
    }
}

impl<M: Memory> Memory for Ahead<M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let kind = self.kind(into.len());
        let copy = kind.and_then(|kind| self.copied((kind, address), into.len()));
        let copied = copy.map(|(copy, is_same)| {
            into.copy_from_slice(copy);
            is_same
        });
        let word = match (copied, kind) {
            (None, Some(Kind::Position | Kind::Caller)) => self.words.get(&address),
            _ => None,
        };
        if let Some(word) = word {
            into.copy_from_slice(word);
        }
        let (is_there, was) = match (copied, self.stage, kind) {
            (Some(_), ..) => (true, Was::Copied),
            _ if word.is_some() => (true, Was::Read),
            (
                None,
                Stage::Objects {
                    are_copied: true, ..
                },
                Some(Kind::Object),
            ) => (self.memory.read(address, into), Was::Late),
            _ => (self.memory.read(address, into), Was::Read),
        };
        let is_told = match (copied, kind) {
            (Some(false), Some(Kind::Record)) => self.moved.records.try_push(address, WHAT).is_ok(),
            (Some(false), _) => {
                self.moved.has_position = true;
                true
            }
            _ => true,
        };
        let is_there = is_there && is_told;
        self.was = self.was.max(was);
        is_there
    }

    /// Never of copies: this is how calls are read again.
    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        self.memory.read_pieces(pieces, into)
    }
}
