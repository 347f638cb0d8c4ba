//! Callbacks, connections and graphics devices, which R lists outside of its heap.

use super::FakeHeap;
use super::fake::{RELEASE, VARIABLES};
use super::rows::Rows;
use profile_runtime::objects::RAWSXP;

const CALLBACKS: u64 = 0x7f04_0000_0000;
const DEVICES: u64 = 0x7f07_0000_0000;
const CONNECTIONS: u64 = 0x7f06_0000_0000;
const LARGE: u64 = 48 + 8000;
const LEAST: u64 = 2048;

impl FakeHeap {
    /// Adds a list of callbacks. The last one, of C code, has other data.
    pub fn add_callbacks(&mut self, callbacks: &[(&str, u64)]) {
        self.space.map(CALLBACKS, 1 << 12);
        let place = |row: usize| CALLBACKS + 128 * row as u64;
        for (row, (name, data)) in callbacks.iter().enumerate() {
            let at = place(row);
            let words = [
                RELEASE + 64,
                *data,
                RELEASE - row as u64,
                at + 40,
                place(row + 1),
            ];
            for (word, offset) in words.into_iter().zip((0..).step_by(8)) {
                self.space.set(at + offset, word);
            }
            self.space.write(at + 40, name.as_bytes());
        }
        self.add_variable(CALLBACKS);
    }

    /// Adds the table of connections, with the three standard ones and others: their classes, the place of the object in
    /// their private structure, and the object.
    pub fn add_connections(&mut self, connections: &[(&str, u64, u64)]) {
        self.space.map(CONNECTIONS, 1 << 14);
        let nil = self.known.nil;
        let pointer = self.external_pointer(nil, nil);
        let standard = [("terminal", 0, nil); 3];
        let all = standard.iter().chain(connections).enumerate();
        for (row, &(class, place, object)) in all {
            let at = CONNECTIONS + 1024 + 1024 * row as u64;
            let (class_at, private) = (at + 512, at + 600);
            self.space.set(CONNECTIONS + 8 * row as u64, at);
            self.space.write(class_at, class.as_bytes());
            let words = [
                (at, class_at),
                (at + 432, pointer),
                (at + 440, private),
                (private + place, object),
            ];
            for (address, word) in words {
                self.space.set(address, word);
            }
        }
        // The table is among the variables of R, or in memory of its own.
        if self.has_table_in_variables {
            (0..4 + connections.len() as u64).for_each(|row| {
                self.add_variable(self.space.word(CONNECTIONS + 8 * row));
            })
        } else {
            self.add_variable(CONNECTIONS)
        }
    }
}

impl FakeHeap {
    /// Adds the table of devices: the null device, and one with a display list, a snapshot and handlers of events.
    fn add_device(&mut self, list: u64, snapshot: u64, events: u64) {
        self.space.map(DEVICES, 1 << 12);
        let (device, driver) = (DEVICES, DEVICES + 512);
        let words = [
            (device, driver),
            (device + 8, 1),
            (device + 16, list),
            (device + 24, list),
            (device + 32, snapshot),
            (driver + 424, events),
        ];
        for (address, word) in words {
            self.space.set(address, word);
        }
        // The null device is a variable of R.
        let null = VARIABLES;
        self.add_variable(null);
        self.add_variable(device);
        (0..62).for_each(|_| self.add_variable(0));
    }
}

#[test]
fn devices_hold_what_was_drawn() {
    let mut heap = FakeHeap::new();
    let [drawn, saved, handler] = [(); 3].map(|()| heap.real(1000));
    let [list, snapshot, events] = [drawn, saved, handler].map(|object| heap.list(&[object]));
    heap.add_device(list, snapshot, events);
    let rows = Rows::of(&mut heap, LEAST);
    let path = "graphics device 2 > [[*]] > numeric";
    assert_eq!(rows.get(path), (3 * LARGE, 3));
}

#[test]
fn callbacks_have_names() {
    let mut heap = FakeHeap::new();
    let objects = [(); 3].map(|()| heap.real(1000));
    let [one, two, three] = objects.map(|object| heap.list(&[object]));
    // The list of what C code preserves has their data as well.
    let preserved = heap.pairlist(&[("", one), ("", two), ("", three)]);
    heap.add_variable(preserved);
    heap.add_callbacks(&[("1", one), ("my \"own\"", two)]);
    let rows = Rows::of(&mut heap, LEAST);
    for name in ["1", "my \"own\""] {
        let path = format!("task callback {name} > [[*]] > numeric");
        assert_eq!(rows.get(&path), (LARGE, 1));
    }
    assert!(rows.bytes("C variables of R > [[*]] > [[*]] > numeric") == LARGE);
}

#[test]
fn connections_have_names() {
    for has_table_in_variables in [false, true] {
        check_connections(has_table_in_variables);
    }
}

fn check_connections(has_table_in_variables: bool) {
    let mut heap = FakeHeap::new();
    heap.has_table_in_variables = has_table_in_variables;
    let bytes = [(); 3].map(|()| heap.vector(RAWSXP, 8000, 1000));
    let lines = heap.strings(&["line"; 1000]);
    let preserved = bytes.map(|bytes| ("", bytes));
    let preserved = heap.pairlist(&preserved);
    heap.add_variable(preserved);
    heap.add_connections(&[
        ("rawConnection", 0, bytes[0]),
        ("file", 0, bytes[1]),
        ("textConnection", 16, lines),
        // One that is read has no object there.
        ("textConnection", 16, bytes[2]),
    ]);
    let rows = Rows::of(&mut heap, LEAST);
    assert_eq!(rows.get("connection 3 <rawConnection> > raw"), (LARGE, 1));
    let of_lines = "connection 5 <textConnection> > character";
    assert_eq!(rows.bytes(of_lines), LARGE);
    let mut others = rows.paths().filter(|path| path.starts_with("connection"));
    assert!(
        others.all(|path| path.starts_with("connection 3 ") || path.starts_with("connection 5 "))
    );
    assert_eq!(rows.get("C variables of R > [[*]] > raw"), (2 * LARGE, 2));
}
