//! Both copies of what a stack needs: of its records and of variables of its functions, and of R's variables in between.

use crate::memory::{Memory, Piece};
use crate::pieces::{Group, Key, Kind, NEAR};
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use std::collections::HashMap;

const WHAT: &str = "the memory of a process";

/// Something that a stack needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub key: Key,
    pub size: usize,
    /// Of records: the number of outer ones.
    pub depth: usize,
}

#[derive(Debug, Default)]
pub struct Copies {
    pieces: Vec<Piece>,
    bytes: Vec<u8>,
    places: HashMap<Key, Place, foldhash::fast::RandomState>,
}

/// Where both copies of something are. They are the same if there is one.
#[derive(Debug, Clone, Copy)]
struct Place {
    size: usize,
    starts: [usize; 2],
}

impl Copies {
    /// Forgets what is copied.
    pub fn clear(&mut self) {
        self.places.clear();
        self.pieces.clear();
        self.bytes.clear();
    }

    /// Lists what is copied, and where the copies will be. Positions are copied together with the record of their
    /// function, near which they usually are.
    pub fn list(&mut self, needs: &[Need], variables: &[u64]) -> Result<()> {
        self.clear();
        // What is copied twice, and in the middle. The numbers say in which order.
        let (mut order, mut middle) = (Vec::new(), Vec::new());
        let mut records = Vec::new();
        for &Need { key, depth, .. } in needs {
            if let (Kind::Record, address) = key {
                records.try_push((address, depth), WHAT)?;
            }
        }
        records.sort_unstable();
        for &address in variables {
            middle.try_push((0, address, (Kind::Variable, address), 8), WHAT)?;
        }
        for &Need { key, size, depth } in needs {
            let (kind, address) = key;
            if kind == Kind::Record {
                order.try_push((1 + depth, address, key, size), WHAT)?;
                continue;
            }
            let after = records.partition_point(|record| record.0 < address);
            match records.get(after) {
                Some(&(record, depth)) if kind == Kind::Caller || record - address < NEAR => {
                    order.try_push((1 + depth, address, key, size), WHAT)?;
                }
                _ if kind == Kind::Caller => order.try_push((0, address, key, size), WHAT)?,
                _ => middle.try_push((1, address, key, size), WHAT)?,
            }
        }
        order.sort_unstable();
        middle.sort_unstable();
        middle.dedup();
        let (order, middle) = (Group::of(&order)?, Group::of(&middle)?);
        let forwards = order.pieces.iter().chain(&middle.pieces);
        for &piece in forwards.chain(order.pieces.iter().rev()) {
            self.pieces.try_push(piece, WHAT)?;
        }
        let again = order.size + middle.size;
        for member in &order.members {
            let starts = [member.start, again + member.start_backwards];
            self.place(member.key, member.size, starts)?;
        }
        for member in &middle.members {
            self.place(member.key, member.size, [order.size + member.start; 2])?;
        }
        self.bytes.try_fill(again + order.size, 0, WHAT)
    }

    fn place(&mut self, key: Key, size: usize, starts: [usize; 2]) -> Result<()> {
        self.places.try_put(key, Place { size, starts }, WHAT)?;
        Ok(())
    }

    /// Copies all of it. Returns a piece that cannot be read, because it was freed.
    pub fn take(&mut self, memory: &mut impl Memory) -> Option<Piece> {
        let read = memory.read_pieces(&self.pieces, &mut self.bytes);
        self.pieces.get(read).copied()
    }

    /// Both copies of something.
    pub fn get(&self, key: Key) -> Option<[&[u8]; 2]> {
        let place = self.places.get(&key)?;
        let copy = |start| self.bytes.get(start..start + place.size);
        let [first, second] = place.starts.map(copy);
        Some([first?, second?])
    }
}
