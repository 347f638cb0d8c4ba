//! Builds R's heap: pages, the lists of objects, and what refers to them from outside.

use super::space::{Space, SpaceView};
use crate::heap::known::Known;
use crate::heap::roots::Library;
use crate::target::{Addresses, Constants, Target};
use profile_runtime::contexts::{
    CALL, CALLFLAG, CALLFUN, CLOENV, CLOSURE, Layout, NODE, NODE_VALUE, RECORD,
};
use profile_runtime::heap::{
    CLASS, CLASSES, COUNT, FREE, HEADS, NEW, NEXT, PAGE, PAGE_CLASSES, PAGE_COUNT, PAGE_START,
    PAGES, SLOTS,
};
use profile_runtime::objects::{ATTRIBUTES, FIRST, LISTSXP, MARK, SECOND, THIRD, Type};
use std::collections::HashMap;
use std::iter::once;

/// R's variables: its heap, the address of the innermost record, pointers to objects, and the outermost record.
pub const VARIABLES: u64 = 0x5500_0000_0000;
pub const HEAP: u64 = VARIABLES + 0x100;
const HEAD: u64 = VARIABLES + 0x1000;
const POINTERS: u64 = VARIABLES + 0x1010;
const TOPLEVEL: u64 = VARIABLES + 0x1800;
const VARIABLES_SIZE: usize = 0x2000;
/// Pages are as close together as `malloc()` makes them.
const PAGES_AT: u64 = 0x5600_0000_0000;
const PAGE_STEP: u64 = 7984;
const LARGE_AT: u64 = 0x5610_0000_0000;
const TABLE: u64 = 0x5620_0000_0000;
const TABLE_SIZE: u64 = 64;
const RECORDS: u64 = 0x7f00_0000_0000;
const PROTECTED: u64 = 0x7f01_0000_0000;
const NODES: u64 = 0x7f02_0000_0000;
const LIBRARY: u64 = 0x7f03_0000_0000;
/// The function that frees the data of callbacks.
pub const RELEASE: u64 = 0x7f05_0000_0000;
const STACK_SIZE: usize = 1 << 12;
const RECORDS_SIZE: usize = 1 << 19;

pub struct FakeHeap {
    pub space: Space,
    pub known: Known,
    pub target: Target,
    pub libraries: Vec<Library>,
    pages: [Vec<u64>; PAGE_CLASSES],
    slots: [Vec<u64>; PAGE_CLASSES],
    /// The objects that the last garbage collection marked, and later ones.
    old: [Vec<u64>; CLASSES],
    new: [Vec<u64>; CLASSES],
    next_page: u64,
    next_large: u64,
    records: u64,
    pointers: u64,
    pub symbols: HashMap<String, u64>,
    /// Whether objects are made after the last garbage collection.
    pub is_new: bool,
    /// Whether the table of connections is among the variables of R.
    pub has_table_in_variables: bool,
}

impl FakeHeap {
    pub fn new() -> FakeHeap {
        let mut space = Space::default();
        space.map(VARIABLES, VARIABLES_SIZE);
        // Real memory is mapped in whole pages.
        space.map(TABLE, (TABLE_SIZE as usize * 8).next_multiple_of(4096));
        space.map(RECORDS, RECORDS_SIZE);
        for stack in [PROTECTED, NODES, LIBRARY] {
            space.map(stack, STACK_SIZE);
        }
        space.set(HEAD, TOPLEVEL);
        let library = Library {
            name: "stats.so".to_owned(),
            variables: once(LIBRARY..LIBRARY + STACK_SIZE as u64).collect(),
        };
        let mut heap = FakeHeap {
            space,
            known: Known {
                nil: 0,
                global: 0,
                base: 0,
                empty: 0,
                unbound: 0,
                missing: 0,
                namespaces: 0,
                names_symbol: 0,
                class_symbol: 0,
                name_symbol: 0,
                protected: PROTECTED..PROTECTED,
                node_stack_top: NODES,
                release: RELEASE,
            },
            target: target(),
            libraries: vec![library],
            pages: Default::default(),
            slots: Default::default(),
            old: Default::default(),
            new: Default::default(),
            next_page: PAGES_AT,
            next_large: LARGE_AT,
            records: RECORDS,
            pointers: POINTERS,
            symbols: HashMap::new(),
            is_new: false,
            has_table_in_variables: false,
        };
        heap.make_known();
        heap
    }

    pub fn view(&self) -> SpaceView<'_> {
        SpaceView(&self.space)
    }

    pub fn set(&mut self, object: u64, offset: usize, word: u64) {
        self.space.set(object + offset as u64, word);
    }

    pub fn word(&self, object: u64, offset: usize) -> u64 {
        self.space.word(object + offset as u64)
    }

    pub fn set_flag(&mut self, object: u64, flag: u64) {
        self.set(object, 0, self.word(object, 0) | flag);
    }

    /// An object without fields, with room for data of this number of units after the header of vectors.
    pub fn object(&mut self, type_: Type, units: usize) -> u64 {
        let class = match units {
            0 => 0,
            1 => 1,
            2 => 2,
            3..=4 => 3,
            5..=8 => 4,
            9..=16 => 5,
            _ => CLASSES - 1,
        };
        let address = if class < PAGE_CLASSES {
            self.slot(class)
        } else {
            self.large(48 + 8 * units)
        };
        let (mark, list) = if self.is_new && class < PAGE_CLASSES {
            (0, &mut self.new[class])
        } else {
            (MARK, &mut self.old[class])
        };
        list.push(address);
        self.set(address, 0, u64::from(type_.0) | mark);
        self.set(address, ATTRIBUTES, self.known.nil);
        address
    }

    pub fn cell(&mut self, type_: Type, fields: [u64; 3]) -> u64 {
        let cell = self.object(type_, 0);
        for (offset, field) in [FIRST, SECOND, THIRD].into_iter().zip(fields) {
            self.set(cell, offset, field);
        }
        cell
    }

    fn slot(&mut self, class: usize) -> u64 {
        if self.slots[class].is_empty() {
            let page = self.next_page;
            self.next_page += PAGE_STEP;
            self.space.map(page, PAGE);
            self.pages[class].push(page);
            let (size, count) = SLOTS[class];
            let slot = |slot: u32| page + PAGE_START as u64 + size as u64 * u64::from(slot);
            self.slots[class] = (0..count).rev().map(slot).collect();
        }
        self.slots[class].pop().unwrap()
    }

    fn large(&mut self, size: usize) -> u64 {
        let address = self.next_large;
        self.space.map(address, size);
        self.next_large += (size as u64 + 32).next_multiple_of(16);
        address
    }

    /// Links everything, as R has it at any time.
    pub fn finish(&mut self) {
        for class in 0..CLASSES {
            let start = HEAP + (class * CLASS) as u64;
            let mut lists: [Vec<u64>; HEADS.len()] = Default::default();
            lists[0].clone_from(&self.old[class]);
            lists[2].clone_from(&self.new[class]);
            if class < PAGE_CLASSES {
                lists[2].extend(self.slots[class].iter().rev());
                let (pages, count) = (&self.pages[class], self.pages[class].len());
                for (number, page) in pages.iter().enumerate() {
                    let next = pages.get(number + 1).copied().unwrap_or(0);
                    self.space.set(*page, next);
                }
                let first = pages.first().copied().unwrap_or(0);
                self.space.set(start + PAGES as u64, first);
                self.space
                    .write(start + PAGE_COUNT as u64, &(count as u32).to_le_bytes());
            }
            let count = (self.old[class].len() + self.new[class].len()) as u32;
            self.space.write(start + COUNT as u64, &count.to_le_bytes());
            for ((pointer, head), list) in HEADS.into_iter().zip(&lists) {
                let head = start + head;
                self.space.set(start + pointer as u64, head);
                let mut last = head;
                for object in list.iter().chain([&head]) {
                    self.space.set(last + NEXT as u64, *object);
                    last = *object;
                }
            }
            let free = self.slots.get(class).and_then(|slots| slots.last());
            let head = start + HEADS[2].1;
            self.space
                .set(start + FREE as u64, free.copied().unwrap_or(head));
            assert_eq!(NEW, HEADS[2].0);
        }
    }

    /// Adds a variable of R that refers to an object, or to a table.
    pub fn add_variable(&mut self, object: u64) {
        self.space.set(self.pointers, object);
        self.pointers += 8;
    }

    /// Adds the table of symbols, which has lists of them. Symbols that are made later are not in it.
    pub fn add_symbol_table(&mut self) {
        let mut symbols: Vec<u64> = self.symbols.values().copied().collect();
        symbols.sort_unstable();
        let nil = self.known.nil;
        for row in 0..TABLE_SIZE {
            let here = symbols
                .iter()
                .skip(row as usize)
                .step_by(TABLE_SIZE as usize);
            let list = here.fold(nil, |rest, symbol| self.cell(LISTSXP, [*symbol, rest, nil]));
            self.space.set(TABLE + row * 8, list);
        }
        self.add_variable(TABLE);
    }

    /// Adds a variable of a library.
    pub fn add_library_variable(&mut self, row: u64, object: u64) {
        self.space.set(LIBRARY + row * 8, object);
    }

    pub fn protect(&mut self, object: u64) {
        self.space.set(self.known.protected.end, object);
        self.known.protected.end += 8;
    }

    pub fn push_node(&mut self, object: u64) {
        self.push_entry(0, object);
    }

    /// Adds an entry with this tag and value to the node stack.
    pub fn push_entry(&mut self, tag: u64, value: u64) {
        let top = self.known.node_stack_top;
        self.space.set(top, tag);
        self.space.set(top + NODE_VALUE as u64, value);
        self.known.node_stack_top += NODE as u64;
    }

    /// Adds a call of a closure as the innermost one.
    pub fn add_call(&mut self, call: u64, environment: u64) {
        self.add_call_of(self.known.nil, call, environment);
    }

    pub fn add_call_of(&mut self, function: u64, call: u64, environment: u64) {
        let record = self.records;
        self.records += RECORD as u64;
        self.space.set(record + CALLFUN, function);
        self.space.set(record, self.space.word(HEAD));
        self.space.set(record + CALLFLAG, u64::from(CLOSURE));
        self.space.set(record + CALL, call);
        self.space.set(record + CLOENV, environment);
        self.space.set(HEAD, record);
    }
}

fn target() -> Target {
    Target {
        addresses: Addresses {
            head: HEAD,
            srcref: VARIABLES + 8,
            constants: [0; 3],
        },
        values: Constants {
            nil: 0,
            in_byte_code: 0,
            srcfile: 0,
            node_stack_end: NODES + STACK_SIZE as u64,
        },
        layout: Layout::R_4_4,
        toplevel: TOPLEVEL,
        stack: RECORDS..RECORDS + RECORDS_SIZE as u64,
        node_stack: NODES..NODES + STACK_SIZE as u64,
        modules: Vec::new(),
        variables: once(VARIABLES..VARIABLES + VARIABLES_SIZE as u64).collect(),
    }
}
