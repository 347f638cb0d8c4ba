//! Copies, as of one moment, everything that is needed to read a stack. That is probably what the last stack with the
//! same innermost record needed.
//!
//! R's variables are copied first, one of which points to the innermost record. Then the records are copied, from the
//! innermost to the outermost one, and once more (`copies.rs`). Calls that existed the whole time belong to one
//! moment: that at which the variables were copied. This takes two system calls. Following the records with a system
//! call for each takes forty times as long, and small functions have returned by then. The objects that the records
//! refer to are copied afterwards (`objects.rs`), since R does not free them so soon.
//!
//! Copying a piece takes about half a microsecond. The records of functions that run for ten microseconds often
//! change while they are copied. If such stacks were rejected, these functions would get fewer samples than others.
//! So changed records are reported (`Ahead::moved`), and `chain.rs` checks whether the first copies are a consistent
//! stack.
//!
//! The stack of the reader's own process can be read directly. It is not copied by the kernel, but followed from
//! record to record (`walk.rs`).
//!
//! The position of the innermost function in its byte code changes all the time. Any position that it had while its
//! record existed is valid.

use crate::calls::Order;
use crate::copies::{Copies, Need};
use crate::memory::{self, Memory, Piece, at};
use crate::moved::Moved;
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

/// The maximum number of needs that are remembered. Deeper stacks are read piece by piece; they change less often
/// than they are read.
const MOST: usize = 100_000;
/// For stacks with more needs than this, only the needs of the last stack are remembered.
const MANY: usize = 200;

/// Memory, with copies of some pieces.
#[derive(Debug)]
pub struct Ahead<M> {
    memory: M,
    /// What stacks have needed, by the address of the innermost record.
    needs: HashMap<u64, Vec<Need>, foldhash::fast::RandomState>,
    /// The total number of these needs.
    count: usize,
    /// What this stack needs, and its innermost record.
    current: Vec<Need>,
    head: Option<u64>,
    copies: Copies,
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
    /// The addresses of the innermost record at both checks of the copies, and whether that record was read and is
    /// the same one in both copies.
    heads: [Option<u64>; 2],
    passed: [bool; 2],
    /// Variables of functions that were not copied, but read together with the records.
    words: HashMap<u64, [u8; 8], foldhash::fast::RandomState>,
    copied_at: Instant,
}

/// Which of the two copies is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    First,
    Second,
}

/// How data has been read since the beginning of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Was {
    /// All of it was copied before.
    Copied,
    /// Records were copied before, but some objects were not.
    Late,
    /// Some of it was not copied before.
    Read,
}

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Something other than a stack.
    Other,
    /// Variables and records.
    Records,
    /// What they refer to, with the kind of words that are read, and whether the records were copied.
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
            variables: Vec::new(),
            next_variables: Vec::new(),
            walk: Walk::default(),
            order,
            objects: Objects::default(),
            stage: Stage::Other,
            was: Was::Copied,
            reading: Reading::Second,
            moved: Moved::default(),
            heads: [None; 2],
            passed: [false; 2],
            words: HashMap::default(),
            copied_at: Instant::now(),
        }
    }

    /// Prepares to read a stack: copies the records, and these variables of one word each. The first variable points
    /// to the innermost record.
    pub fn copy(&mut self, variables: impl Iterator<Item = u64>) -> Result<()> {
        self.remember()?;
        self.next_variables.clear();
        for address in variables {
            self.next_variables.try_push(address)?;
        }
        if self.next_variables != self.variables {
            mem::swap(&mut self.next_variables, &mut self.variables);
            self.copies.begin_with(&self.variables)?;
            for (&head, needs) in &self.needs {
                self.copies.prepare(head, needs)?;
            }
        }
        self.objects.clear();
        self.copied_at = Instant::now();
        if self.memory.is_own() {
            return self
                .walk
                .take(&mut self.memory, &self.order, &self.variables);
        }
        self.copy_needs()
    }

    /// Copies what the last stack with the same innermost record needed.
    fn copy_needs(&mut self) -> Result<()> {
        let Some(head) = self.copies.take_variables(&mut self.memory)? else {
            self.do_not_copy();
            return Ok(());
        };
        let Some(freed) = self.copies.take(&mut self.memory, head)? else {
            return Ok(());
        };
        let freed = freed.address..end(&freed);
        if let Some(needs) = self.needs.get_mut(&head) {
            needs.retain(|need| !freed.contains(&need.key.1));
            self.copies.prepare(head, needs)?;
        }
        self.do_not_copy();
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
            self.copies.forget();
            self.count = 0;
        }
        if !self.needs.contains_key(&head) {
            self.needs.try_put(head, Vec::new())?;
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
            if !add(needs, &self.current)? {
                return Ok(());
            }
        }
        self.count = (self.count + needs.len()).saturating_sub(before);
        self.copies.prepare(head, needs)
    }

    /// Copies the objects that the calls refer to.
    pub fn copy_objects(&mut self, addresses: impl Iterator<Item = u64>) -> Result<()> {
        self.objects.copy(&mut self.memory, addresses)
    }

    /// The first copies of records, with their addresses.
    pub fn first_records(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.copies.first_records()
    }

    /// Whether R's variables were still the same when the innermost record had been copied. Otherwise it may be the
    /// record of a later call.
    pub fn is_steady(&self) -> bool {
        self.variables.iter().all(|&variable| {
            let copied = self.copies.get((Kind::Variable, variable));
            copied.is_none_or(|([first, second], _)| first == second)
        })
    }

    /// Whether the stack is that of this process.
    pub fn is_own(&self) -> bool {
        self.memory.is_own()
    }

    /// Whether all records were copied before they were read.
    pub fn were_copied(&self) -> bool {
        let Stage::Objects { are_copied, .. } = self.stage else {
            return false;
        };
        are_copied
    }

    /// Whether all records and variables were copied.
    pub fn is_complete(&self) -> bool {
        self.was == Was::Copied && self.words.is_empty()
    }

    /// The value of a variable at the moment of the stack, if it was copied.
    pub fn variable(&self, address: u64) -> Option<u64> {
        self.word((Kind::Variable, address))
    }

    /// The same for an address that may contain the position of the innermost function. It will be copied for the
    /// next stack.
    pub fn position(&mut self, address: u64) -> Result<Option<u64>> {
        let key = (Kind::Position, address);
        self.begin_word(key)?;
        Ok(self.word(key))
    }

    fn word(&self, key: Key) -> Option<u64> {
        let (bytes, _) = self.copied(key, 8)?;
        Some(at(bytes, 0))
    }

    /// Discards all copies, so that everything is read when it is needed.
    pub fn do_not_copy(&mut self) {
        self.walk.clear();
        self.objects.clear();
        self.copies.clear();
    }

    /// Begins to read a stack.
    pub fn begin(&mut self, reading: Reading) {
        (self.stage, self.was) = (Stage::Records, Was::Copied);
        self.reading = reading;
        self.moved.clear();
        self.heads = self.copies.heads();
        self.passed = [false; 2];
        self.words.clear();
    }

    /// Continues with the position of the innermost function, after all records were read. `records` are their
    /// addresses, innermost first.
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

    /// Adds a variable of a function of the stack. If it was not copied, it is read now, and will be copied for the
    /// next stack.
    pub fn begin_word(&mut self, key: Key) -> Result<()> {
        if self.memory.is_own() {
            return Ok(());
        }
        if self.word(key).is_none() {
            // It is read now, because it soon contains the position of another call.
            let Some(word) = memory::array(&mut self.memory, key.1) else {
                return Ok(());
            };
            self.words.try_put(key.1, word)?;
        }
        self.need(key, 8, 0)
    }

    /// Continues with the calls.
    pub fn begin_calls(&mut self) {
        if let Stage::Objects { word, .. } = &mut self.stage {
            *word = Kind::Caller;
        }
    }

    /// Continues with what does not change while the calls exist.
    pub fn begin_lookup(&mut self) -> Was {
        if let Stage::Objects { word, .. } = &mut self.stage {
            *word = Kind::Object;
        }
        std::mem::replace(&mut self.was, Was::Copied)
    }

    /// The same if the calls may have returned. Then what was read counts only if their objects exist afterwards.
    pub fn begin_late_lookup(&mut self) {
        self.stage = Stage::Objects {
            word: Kind::Object,
            are_copied: false,
        };
        self.was = Was::Late;
    }

    /// What did not exist the whole time.
    pub fn moved(&self) -> &Moved {
        &self.moved
    }

    /// How long ago copying began.
    pub fn age(&self) -> Duration {
        self.copied_at.elapsed()
    }

    /// How data has been read since the last stage began.
    pub fn was(&self) -> Was {
        self.was
    }

    /// Ends the reading of a stack.
    pub fn end(&mut self) {
        self.stage = Stage::Other;
    }

    fn need(&mut self, key: Key, size: usize, depth: usize) -> Result<()> {
        match self.memory.is_own() || self.current.len() >= MOST {
            true => Ok(()),
            false => self.current.try_push(Need { key, size, depth }),
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

    /// The copy of the bytes at an address, and whether the record or the position existed the whole time.
    fn copied(&self, (kind, address): Key, size: usize) -> Option<(&[u8], bool)> {
        if kind == Kind::Object {
            return Some((self.objects.get(address, size)?, true));
        }
        // If the record was read after this was copied, the copy may belong to something else.
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
        let ([first, second], check) = match walked {
            Some(copies) => (copies, None),
            None => {
                let copied = self.copies.get((kind, address)).or_else(|| match kind {
                    // A function that has called another one in the last stack may be the innermost one now.
                    Kind::Position => self.copies.get((Kind::Caller, address)),
                    Kind::Caller => self.copies.get((Kind::Position, address)),
                    _ => None,
                });
                copied.map(|(copies, check)| (copies, Some(check)))?
            }
        };
        let is_same = match (kind, check) {
            (Kind::Record, Some(check)) => {
                is_same_record(first, second) && self.was_on_stack(address, check)
            }
            (Kind::Record, None) => is_same_record(first, second),
            (Kind::Caller, None) => first == second,
            // A function that has called another one has not moved if that call still existed later.
            _ => true,
        };
        let copy = match self.reading {
            Reading::First => first,
            Reading::Second => second,
        };
        Some((copy.get(..size)?, is_same))
    }

    /// Whether a record was on the stack at a check: it or an inner one was the innermost record. If the innermost
    /// record is another one, the calls may have returned, since other calls do not overwrite all records.
    fn was_on_stack(&self, address: u64, check: usize) -> bool {
        self.passed[check] || self.heads[check] == Some(address)
    }
}

/// Adds what a stack needs to what others with the same innermost record needed. A record keeps its largest depth,
/// so that the innermost record is the deepest one. Returns whether anything has changed.
fn add(needs: &mut Vec<Need>, others: &[Need]) -> Result<bool> {
    let mut has_changed = false;
    for other in others {
        match needs.iter_mut().find(|need| need.key == other.key) {
            Some(need) if need.depth >= other.depth => continue,
            Some(need) => need.depth = other.depth,
            None => needs.try_push(*other)?,
        }
        has_changed = true;
    }
    Ok(has_changed)
}

impl<M: Memory> Memory for Ahead<M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let kind = self.kind(into.len());
        let copy = kind.and_then(|kind| self.copied((kind, address), into.len()));
        let copied = copy.map(|(copy, is_same)| {
            into.copy_from_slice(copy);
            is_same
        });
        if let (Some(true), Some(Kind::Record)) = (copied, kind) {
            for (passed, head) in self.passed.iter_mut().zip(self.heads) {
                *passed |= head == Some(address);
            }
        }
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
            (Some(is_same), Some(Kind::Record)) => self.moved.note(address, into, !is_same).is_ok(),
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

    /// Does not use copies, since it serves to read calls again.
    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        self.memory.read_pieces(pieces, into)
    }
}
