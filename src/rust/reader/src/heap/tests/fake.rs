//! Builds R's heap: pages, the lists of objects, and what refers to them from outside.

use super::space::{Space, SpaceView};
use crate::heap::known::Known;
use crate::heap::lists::Lists;
use crate::heap::roots::Library;
use crate::running_r::head::Head;
use crate::running_r::{Constants, RunningR};
use profile_runtime::contexts::{
    CALL, CALLFLAG, CALLFUN, CLOENV, CLOSURE, Layout, NODE, NODE_VALUE, RECORD,
};
use profile_runtime::heap::{Layout as HeapLayout, NEXT, PREVIOUS};
use profile_runtime::objects::{ATTRIBUTES, DATA, FIRST, LISTSXP, MARK, SECOND, THIRD, Type};
use std::collections::HashMap;
use std::iter::once;

/// R's variables: its heap, the address of the innermost record, pointers to objects, and the outermost record.
pub const VARIABLES: u64 = 0x5500_0000_0000;
pub const HEAP: u64 = VARIABLES + 0x100;
const HEAD: u64 = VARIABLES + 0x1000;
const POINTERS: u64 = VARIABLES + 0x1010;
const TOPLEVEL: u64 = VARIABLES + 0x1800;
const VARIABLES_SIZE: usize = 0x2000;
const PAGES_AT: u64 = 0x5600_0000_0000;
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
    pub r: RunningR,
    pub libraries: Vec<Library>,
    pub lists: Lists,
    /// For each class: its pages, and their free slots.
    pages: Vec<Vec<u64>>,
    slots: Vec<Vec<u64>>,
    /// The objects that the last garbage collection marked, and later ones.
    old: Vec<Vec<u64>>,
    new: Vec<Vec<u64>>,
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
        FakeHeap::laid_out(&HeapLayout::ALL[0])
    }

    pub fn laid_out(layout: &'static HeapLayout) -> FakeHeap {
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
            r: r(),
            libraries: vec![library],
            lists: Lists {
                address: HEAP,
                layout,
            },
            pages: vec![Vec::new(); layout.classes],
            slots: vec![Vec::new(); layout.classes],
            old: vec![Vec::new(); layout.classes],
            new: vec![Vec::new(); layout.classes],
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
        let layout = self.lists.layout;
        let size = DATA + 8 * units;
        // The smallest slots are for objects that are no vectors.
        let mut larger = layout.page_classes().skip(usize::from(units > 0));
        let class = larger.find(|class| units == 0 || layout.slots[*class] >= size);
        let class = class.unwrap_or(layout.classes - 1);
        let is_in_page = layout.page_classes().contains(&class);
        let address = if is_in_page {
            self.slot(class)
        } else {
            self.large(size)
        };
        let (mark, list) = if self.is_new && is_in_page {
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
            let (layout, page) = (self.lists.layout, self.next_page);
            // Pages are as close together as `malloc()` makes them.
            self.next_page += (layout.page as u64 + 24).next_multiple_of(16);
            self.space.map(page, layout.page);
            self.pages[class].push(page);
            let slots = layout.slots(class);
            let first = page + layout.page_start as u64;
            let slot = |slot: u32| first + u64::from(slots.size * slot);
            self.slots[class] = (0..slots.count).rev().map(slot).collect();
        }
        self.slots[class].pop().unwrap()
    }

    fn large(&mut self, size: usize) -> u64 {
        let address = self.next_large;
        self.space.map(address, size);
        self.next_large += (size as u64 + 32).next_multiple_of(16);
        address
    }

    /// The address of the struct of a class.
    pub fn class(&self, class: usize) -> u64 {
        self.lists.address + (class * self.lists.layout.class) as u64
    }

    /// Links everything, as R has it at any time.
    pub fn finish(&mut self) {
        let layout = self.lists.layout;
        for class in 0..layout.classes {
            let start = self.class(class);
            let mut lists = vec![Vec::new(); layout.lists.len()];
            lists[0].clone_from(&self.old[class]);
            lists[layout.new].clone_from(&self.new[class]);
            lists[layout.new].extend(self.slots[class].iter().rev());
            if layout.page_classes().contains(&class) {
                let (pages, count) = (&self.pages[class], self.pages[class].len());
                for (number, page) in pages.iter().enumerate() {
                    let next = pages.get(number + 1).copied().unwrap_or(0);
                    self.space.set(*page, next);
                }
                let first = pages.first().copied().unwrap_or(0);
                self.space.set(start + layout.pages as u64, first);
                let place = start + layout.page_count as u64;
                self.space.write(place, &(count as u32).to_le_bytes());
            }
            let count = (self.old[class].len() + self.new[class].len()) as u32;
            let place = start + layout.count as u64;
            self.space.write(place, &count.to_le_bytes());
            for (&(pointer, head), list) in layout.lists.iter().zip(&lists) {
                let head = start + head as u64;
                self.space.set(start + pointer as u64, head);
                let mut last = head;
                for object in list.iter().chain([&head]) {
                    self.space.set(last + NEXT as u64, *object);
                    self.space.set(*object + PREVIOUS as u64, last);
                    last = *object;
                }
            }
            let free = self.slots[class].last().copied();
            let head = start + layout.lists[layout.new].1 as u64;
            let place = start + layout.free as u64;
            self.space.set(place, free.unwrap_or(head));
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

fn r() -> RunningR {
    RunningR {
        environments: None,
        head: Head::new(HEAD).unwrap(),
        srcrefs: Vec::new(),
        marker: None,
        landmarks: [(0, 0); 3],
        values: Constants {
            nil: 0,
            in_byte_code: 0,
            srcfile: 0,
            node_stack_end: NODES + STACK_SIZE as u64,
        },
        layout: Some(Layout::R_4_4),
        version: None,
        toplevel: TOPLEVEL,
        stack: RECORDS..RECORDS + RECORDS_SIZE as u64,
        node_stack: NODES..NODES + STACK_SIZE as u64,
        modules: Vec::new(),
        variables: once(VARIABLES..VARIABLES + VARIABLES_SIZE as u64).collect(),
    }
}
