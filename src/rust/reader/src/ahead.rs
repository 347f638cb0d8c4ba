//! Copies at one moment what the last stacks needed, because the next one probably needs the same.
//!
//! One system call reads the records of calls from the outermost to the innermost, R's variables, then the records
//! from the innermost to the outermost, and the objects that they refer to. Records that are the same both times were
//! so in the middle, when the variables were read, so all of them belong to one moment. The calls that end soonest are
//! read within the shortest time, a few microseconds. To follow the records with one system call after the other takes
//! forty times as long, and small functions have returned by then.
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

use crate::memory::{Memory, Piece, at};
use crate::pieces::{Group, Key, Kind, NEAR, end};
use crate::walk::Walk;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_runtime::contexts::{BCBODY, BCPC, CALLFLAG, CALLFUN, CLOENV, NEXT, RECORD};
use profile_runtime::objects::CELL;
use std::collections::HashMap;
use std::time::{Duration, Instant};

const WHAT: &str = "the memory of a process";
/// For how many copies something is copied that no stack needs any more: the calls of a loop take turns.
const KEPT: u64 = 16;
/// More is read piece by piece. Such deep stacks change less often than they are read.
const MOST: usize = 100_000;

/// How often the stack of the own process is followed until no function is called meanwhile.
const WALKS: usize = 8;

/// A memory, with copies of some pieces.
#[derive(Debug)]
pub struct Ahead<M> {
    memory: M,
    /// What stacks have needed.
    needs: HashMap<Key, Need, foldhash::fast::RandomState>,
    /// The number of copies that were made.
    moment: u64,
    /// Whether the pieces are not those of `needs` any more.
    is_outdated: bool,
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    /// The number of pieces, and of bytes, until and with the variables.
    middle: (usize, usize),
    walk: Walk,
    stage: Stage,
    was: Was,
    reading: Reading,
    moved: Moved,
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

#[derive(Debug, Clone, Copy)]
struct Need {
    size: usize,
    /// Of records: the number of outer ones.
    depth: usize,
    /// When it was needed.
    moment: u64,
    /// Where both copies are, if they were made. They are the same if there is one.
    copies: Option<[usize; 2]>,
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
    pub fn new(memory: M) -> Ahead<M> {
        Ahead {
            memory,
            needs: HashMap::default(),
            moment: 0,
            is_outdated: true,
            pieces: Vec::new(),
            bytes: Vec::new(),
            middle: (0, 0),
            walk: Walk::default(),
            stage: Stage::Other,
            was: Was::Copied,
            reading: Reading::Second,
            moved: Moved::default(),
            copied_at: Instant::now(),
        }
    }

    /// Prepares to read a stack: copies these variables of one word, among them the one with the address of the
    /// innermost record, and what the last stacks needed.
    pub fn copy(&mut self, variables: impl Iterator<Item = u64>) -> Result<()> {
        self.moment += 1;
        let mut head = None;
        for address in variables {
            head = head.or(Some(address));
            self.need((Kind::Variable, address), 8, 0)?;
        }
        if self.moment % KEPT == 0 {
            let (count, oldest) = (self.needs.len(), self.moment - KEPT);
            self.needs.retain(|_, need| need.moment >= oldest);
            self.is_outdated |= self.needs.len() < count;
        }
        if self.is_outdated {
            self.list_pieces()?;
        }
        self.copied_at = Instant::now();
        let read = self.copy_pieces(head)?;
        if let Some(piece) = self.pieces.get(read) {
            // Some of it was freed.
            let gone = piece.address..end(piece);
            self.needs.retain(|(_, address), _| !gone.contains(address));
            self.forget_copies();
        }
        Ok(())
    }

    /// Returns the number of pieces that were read.
    fn copy_pieces(&mut self, head: Option<u64>) -> Result<usize> {
        self.walk.clear();
        let (count, size) = self.middle;
        let (variables, objects) = self.pieces.split_at(count);
        let (values, others) = self.bytes.split_at_mut(size);
        let head = head.filter(|_| self.memory.is_own());
        let place = head.and_then(|head| self.needs.get(&(Kind::Variable, head))?.copies);
        let (Some(head), Some([place, _])) = (head, place) else {
            return Ok(self.memory.read_pieces(&self.pieces, &mut self.bytes));
        };
        let mut read = 0;
        for _ in 0..WALKS {
            self.walk.begin(&mut self.memory, head)?;
            read = self.memory.read_pieces(variables, values);
            // Otherwise a function was called meanwhile, or has returned.
            if read < count || self.walk.begins_with(at(values, place)) {
                break;
            }
        }
        for (&(kind, _), need) in &self.needs {
            if let (Kind::Variable, Some([start, _])) = (kind, need.copies) {
                self.walk.add_word(&mut self.memory, at(values, start))?;
            }
        }
        self.walk.end(&mut self.memory);
        match read < count {
            true => Ok(read),
            false => Ok(count + self.memory.read_pieces(objects, others)),
        }
    }

    /// The value of a variable at the moment of the stack, if it was copied.
    pub fn variable(&self, address: u64) -> Option<u64> {
        self.word((Kind::Variable, address))
    }

    /// The same for what may be the position of the innermost function. It will be copied for the next stack.
    pub fn position(&mut self, address: u64) -> Result<Option<u64>> {
        let key = (Kind::Position, address);
        let is_known = self.needs.contains_key(&key);
        if is_known || self.memory.read(address, &mut [0; 8]) {
            self.need(key, 8, 0)?;
        }
        Ok(self.word(key))
    }

    fn word(&self, key: Key) -> Option<u64> {
        let (bytes, _) = self.copied(key, 8)?;
        Some(at(bytes, 0))
    }

    /// Leaves no copies, so that all is read when it is needed.
    pub fn do_not_copy(&mut self) {
        self.walk.clear();
        self.forget_copies();
    }

    /// Begins to read a stack.
    pub fn begin(&mut self, reading: Reading) {
        (self.stage, self.was) = (Stage::Records, Was::Copied);
        self.reading = reading;
        self.moved.clear();
    }

    /// Continues with where the innermost function is, when all records were read. These are their addresses,
    /// innermost first.
    pub fn begin_position(&mut self, records: impl ExactSizeIterator<Item = u64>) -> Result<()> {
        let depths = (0..records.len()).rev();
        for (address, depth) in records.zip(depths) {
            self.need((Kind::Record, address), RECORD, depth)?;
        }
        self.stage = Stage::Objects {
            word: Kind::Position,
            are_copied: self.was == Was::Copied,
        };
        Ok(())
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
        let (kind, address) = key;
        let is_on_stack = matches!(kind, Kind::Record | Kind::Caller | Kind::Position);
        if is_on_stack && self.memory.is_at_hand(address, size) {
            return Ok(());
        }
        let (moment, is_full) = (self.moment, self.needs.len() >= MOST);
        match self.needs.get_mut(&key) {
            Some(need) if need.depth == depth && size <= need.size => {
                need.moment = moment;
            }
            None if is_full => {}
            _ => {
                let need = Need {
                    size,
                    depth,
                    moment,
                    copies: None,
                };
                self.needs.try_put(key, need, WHAT)?;
                self.is_outdated = true;
            }
        }
        Ok(())
    }

    /// Lists what is copied, and where the copies will be. Positions are copied together with the record of their
    /// function, near which they usually are.
    fn list_pieces(&mut self) -> Result<()> {
        // What is copied twice, in the middle, and at the end. The numbers say in which order.
        let (mut order, mut middle, mut objects) = (Vec::new(), Vec::new(), Vec::new());
        let mut records = Vec::new();
        for (&(kind, address), need) in &self.needs {
            if kind == Kind::Record {
                records.try_push((address, need.depth), WHAT)?;
            }
        }
        records.sort_unstable();
        for (&key, need) in &self.needs {
            let size = need.size;
            let (kind, address) = key;
            match kind {
                Kind::Object => objects.try_push((0, address, key, size), WHAT)?,
                Kind::Record => order.try_push((1 + need.depth, address, key, size), WHAT)?,
                Kind::Variable => middle.try_push((0, address, key, size), WHAT)?,
                Kind::Position | Kind::Caller => {
                    let after = records.partition_point(|record| record.0 < address);
                    match records.get(after) {
                        Some(&(record, depth))
                            if kind == Kind::Caller || record - address < NEAR =>
                        {
                            order.try_push((1 + depth, address, key, size), WHAT)?;
                        }
                        _ if kind == Kind::Caller => {
                            order.try_push((0, address, key, size), WHAT)?
                        }
                        _ => middle.try_push((1, address, key, size), WHAT)?,
                    }
                }
            }
        }
        order.sort_unstable();
        middle.sort_unstable();
        objects.sort_unstable();
        let (order, middle, objects) = (
            Group::of(&order)?,
            Group::of(&middle)?,
            Group::of(&objects)?,
        );

        self.pieces.clear();
        let forwards = order.pieces.iter().chain(&middle.pieces);
        let backwards = order.pieces.iter().rev();
        for &piece in forwards.chain(backwards).chain(&objects.pieces) {
            self.pieces.try_push(piece, WHAT)?;
        }
        let again = order.size + middle.size;
        self.middle = (order.pieces.len() + middle.pieces.len(), again);
        for member in &order.members {
            self.place(member.key, [member.start, again + member.start_backwards]);
        }
        for member in &middle.members {
            self.place(member.key, [order.size + member.start; 2]);
        }
        let end = again + order.size;
        for member in &objects.members {
            self.place(member.key, [end + member.start; 2]);
        }
        self.bytes.clear();
        self.bytes.try_fill(end + objects.size, 0, WHAT)?;
        self.is_outdated = false;
        Ok(())
    }

    /// Remembers where both copies of something will be.
    fn place(&mut self, key: Key, copies: [usize; 2]) {
        if let Some(need) = self.needs.get_mut(&key) {
            need.copies = Some(copies);
        }
    }

    fn forget_copies(&mut self) {
        for need in self.needs.values_mut() {
            need.copies = None;
        }
        self.is_outdated = true;
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
        // What was copied before its record may have been something else.
        if let Stage::Objects {
            are_copied: false, ..
        } = self.stage
        {
            return None;
        }
        let walked = match kind {
            Kind::Record => self.walk.record(address),
            Kind::Caller | Kind::Position => self.walk.word(address),
            Kind::Object | Kind::Variable => None,
        };
        let [first, second] = match walked {
            Some(copies) => copies,
            None => {
                let need = self.needs.get(&(kind, address))?;
                let copy = |start| self.bytes.get(start..start + need.size);
                let [first, second] = need.copies?.map(copy);
                [first?, second?]
            }
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

/// Whether both are copies of the same record. Others of its fields may change while its function runs.
fn is_same_record(first: &[u8], second: &[u8]) -> bool {
    let [next, flags, identity, site] =
        [NEXT, CALLFLAG, CALLFUN, BCBODY].map(|field| field as usize);
    [
        next..next + 8,
        flags..flags + 4,
        identity..CLOENV as usize + 8,
        site..BCPC as usize + 8,
    ]
    .into_iter()
    .all(|part| first.get(part.clone()) == second.get(part))
}

impl<M: Memory> Memory for Ahead<M> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let kind = self.kind(into.len());
        let copy = kind.and_then(|kind| self.copied((kind, address), into.len()));
        let copied = copy.map(|(copy, is_same)| {
            into.copy_from_slice(copy);
            is_same
        });
        let (is_there, was) = match (copied, self.stage, kind) {
            (Some(_), ..) => (true, Was::Copied),
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
        match kind {
            Some(kind @ (Kind::Object | Kind::Position | Kind::Caller)) if is_there => {
                // Without memory for it, it is read again.
                let _ = self.need((kind, address), into.len(), 0);
            }
            _ => {}
        }
        is_there
    }

    /// Never of copies: this is how calls are read again.
    fn read_pieces(&mut self, pieces: &[Piece], into: &mut [u8]) -> usize {
        self.memory.read_pieces(pieces, into)
    }
}
