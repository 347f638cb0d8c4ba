//! The threads that the C library knows, and the libraries that have started them.

use crate::fake::module::{Hash, Module, SIZE, VARIABLES};
use crate::fake::{FakeMemory, Space};
use profile_reader::memory::pthreads::{Pthread, pthreads};
use profile_reader::record::threads::names::library_of;
use std::ops::Range;

/// Where the modules are, in this order.
const START: u64 = 0x7f00_0000_0000;
const LOADER: &str = "/lib/ld-linux-x86-64.so.2";
const LIBRARY: &str = "/lib/libc.so.6";
/// The descriptions of threads, and a thread's object of C++.
const THREADS: u64 = 0x7e00_0000_0000;
const OBJECT: u64 = THREADS + 0x5000;

/// The offsets of the fields of these threads, and of the heads of the lists.
const LIST: u64 = 0x2c0;
const ID: u64 = 0x2d0;
const ROUTINE: u64 = 0x640;
const USED: u64 = 0x20;
const USER: u64 = 0x40;

fn start_of(number: usize) -> u64 {
    START + 0x10_0000 * number as u64
}

/// A process with this C library, other modules (path, name, names of libraries that they are linked with), and threads.
struct Fake {
    space: Space,
    files: Vec<(String, u64)>,
}

impl Fake {
    fn new(others: &[(&str, Option<&str>, &[&str])]) -> Fake {
        let mut space = Space::default();
        let mut loader = Module::new(start_of(0), Hash::Gnu);
        loader.variable("_rtld_global", 0);
        loader.lay_out(&mut space);
        let fields = [
            ("pthread_list", LIST),
            ("pthread_tid", ID),
            ("pthread_start_routine", ROUTINE),
            ("rtld_global__dl_stack_used", USED),
            ("rtld_global__dl_stack_user", USER),
        ];
        let mut library = Module::new(start_of(1), Hash::Gnu);
        library.name = Some("libc.so.6".to_owned());
        for (number, (name, _)) in (0..).zip(fields) {
            library.variable(&format!("_thread_db_{name}"), 16 * number);
        }
        library.lay_out(&mut space);
        for (number, (_, offset)) in (0..).zip(fields) {
            let at = start_of(1) + VARIABLES + 16 * number;
            for (place, value) in [(0, 64), (4, 1), (8, offset as u32)] {
                space.write(at + place, &value.to_le_bytes());
            }
        }
        let mut files = vec![(LOADER, start_of(0)), (LIBRARY, start_of(1))];
        for (number, (path, name, needed)) in (2..).zip(others) {
            let mut module = Module::new(start_of(number), Hash::Gnu);
            module.name = name.map(str::to_owned);
            module.needed = needed.iter().map(|name| (*name).to_owned()).collect();
            module.lay_out(&mut space);
            files.push((path, start_of(number)));
        }
        space.add(THREADS, 0x6000);
        let files = files.into_iter().map(|(path, at)| (path.to_owned(), at));
        Fake {
            space,
            files: files.collect(),
        }
    }

    /// Links threads into the list with this head.
    fn link(&mut self, head: u64, first: usize, threads: &[Pthread]) {
        let head = start_of(0) + VARIABLES + head;
        let mut last = head;
        for (number, thread) in (first as u64..).zip(threads) {
            let start = THREADS + 0x800 * number;
            self.space.set(last, start + LIST);
            self.space.write(start + ID, &thread.id.to_le_bytes());
            self.space.set(start + ROUTINE, thread.routine);
            self.space.set(start + ROUTINE + 8, thread.argument);
            last = start + LIST;
        }
        self.space.set(last, head);
    }

    fn found(&self) -> Vec<Pthread> {
        pthreads(&mut FakeMemory::new(self.space.clone()), &self.files).unwrap()
    }

    /// The library of a thread that began in the code of this module, the first of which is that of the C library's loader.
    fn library(&self, module: usize, argument: u64) -> Option<String> {
        let thread = Pthread {
            id: 1,
            routine: start_of(module) + 8,
            argument,
        };
        let places: Vec<(String, Range<u64>)> = self
            .files
            .iter()
            .map(|(path, at)| (path.clone(), *at..*at + SIZE))
            .collect();
        let mut memory = FakeMemory::new(self.space.clone());
        library_of(&thread, &mut memory, &self.files, &places).unwrap()
    }
}

fn thread(id: i32) -> Pthread {
    Pthread {
        id,
        routine: 0x1000 + id as u64,
        argument: 0x2000 + id as u64,
    }
}

#[test]
fn threads_of_both_lists_are_found() {
    let mut fake = Fake::new(&[]);
    fake.link(USED, 0, &[thread(8), thread(9)]);
    fake.link(USER, 2, &[thread(7)]);
    assert_eq!(fake.found(), [thread(8), thread(9), thread(7)]);
    // None has a stack of its own.
    fake.link(USED, 0, &[]);
    assert_eq!(fake.found(), [thread(7)]);
}

#[test]
fn lists_that_are_damaged_end() {
    let mut fake = Fake::new(&[]);
    fake.link(USED, 0, &[thread(8), thread(9)]);
    fake.link(USER, 2, &[thread(7)]);
    // The last one points to itself, or nowhere.
    let last = THREADS + 0x800 + LIST;
    fake.space.set(last, 8);
    assert_eq!(fake.found(), [thread(8), thread(9), thread(7)]);
    fake.space.set(last, last);
    let found = fake.found();
    assert!(found.len() >= 3 && found[..2] == [thread(8), thread(9)]);
}

#[test]
fn other_c_libraries_know_no_threads() {
    let mut fake = Fake::new(&[]);
    fake.link(USED, 0, &[thread(8)]);
    fake.link(USER, 1, &[]);
    for (file, path) in [(0, "/lib/ld-musl-x86_64.so.1"), (1, "/lib/libfoo.so")] {
        let mut other = Fake {
            space: fake.space.clone(),
            files: fake.files.clone(),
        };
        other.files[file].0 = path.to_owned();
        // The loader is found by what it exports.
        let expected = if file == 0 { vec![thread(8)] } else { vec![] };
        assert_eq!(other.found(), expected);
        other.files.remove(file);
        assert_eq!(other.found(), []);
    }
}

#[test]
fn threads_belong_to_the_library_of_their_function() {
    let fake = Fake::new(&[
        (
            "/usr/lib/x/libopenblasp-r0.3.21.so",
            Some("libopenblas.so.0"),
            &[],
        ),
        ("/usr/lib/R/site-library/httpuv/libs/httpuv.so", None, &[]),
        ("/opt/R/polars/libs/x64/lib.so", None, &[]),
        (
            "/opt/R/data.table/libs/x64/data_table.so (deleted)",
            Some("data_table.so"),
            &[],
        ),
        ("/opt/libs/libfoo.so.1.2", None, &[]),
        ("/usr/bin/java", None, &[]),
    ]);
    let names: Vec<_> = (1..8).map(|module| fake.library(module, 0)).collect();
    let names: Vec<_> = names.iter().map(Option::as_deref).collect();
    let expected = [
        "libc",
        "libopenblas",
        "httpuv",
        "lib",
        "data.table",
        "libfoo",
        "java",
    ];
    assert_eq!(names, expected.map(Some));
    // Code without a file.
    assert_eq!(fake.library(9, 0), None);
}

#[test]
fn threads_of_cxx_belong_to_the_caller() {
    let mut fake = Fake::new(&[
        ("/lib/libstdc++.so.6", Some("libstdc++.so.6"), &[]),
        ("/usr/lib/R/site-library/cld/libs/cld.so", None, &[]),
    ]);
    fake.space.set(OBJECT, start_of(3) + VARIABLES + 0x10);
    assert_eq!(fake.library(2, OBJECT).as_deref(), Some("cld"));
    for wrong in [0, 8, OBJECT + 8] {
        assert_eq!(fake.library(2, wrong).as_deref(), Some("libstdc++"));
    }
}

#[test]
fn threads_that_work_for_others_are_those_of_libraries_linked_with_theirs() {
    const GOMP: (&str, Option<&str>, &[&str]) =
        ("/lib/libgomp.so.1.0.0", Some("libgomp.so.1"), &[]);
    const LIBR: (&str, Option<&str>, &[&str]) = (
        "/usr/lib/R/lib/libR.so",
        Some("libR.so"),
        &["libm.so.6", "libgomp.so.1"],
    );
    const STATS: (&str, Option<&str>, &[&str]) = (
        "/usr/lib/R/library/stats/libs/stats.so",
        None,
        &["libgomp.so.1"],
    );
    let names = |others: &[(&str, Option<&str>, &[&str])]| {
        let all = [&[GOMP], others].concat();
        Fake::new(&all).library(2, 0).unwrap()
    };
    assert_eq!(names(&[]), "libgomp");
    assert_eq!(
        names(&[("/bin/tool", None, &["libgomp.so", "libgomp.so.12"])]),
        "libgomp"
    );
    assert_eq!(names(&[LIBR]), "libgomp (R)");
    assert_eq!(names(&[LIBR, STATS]), "libgomp (R)");
    let users: Vec<String> = (1..=5).map(|n| format!("/x/p{n}/libs/p{n}.so")).collect();
    let users: Vec<_> = users
        .iter()
        .rev()
        .map(|path| (path.as_str(), None, ["libgomp.so.1"].as_slice()))
        .collect();
    let with_r = |count: usize| names(&[&[LIBR, STATS], &users[5 - count..]].concat());
    assert_eq!(with_r(1), "libgomp (p1)");
    assert_eq!(with_r(3), "libgomp (p1, p2, p3)");
    assert_eq!(with_r(5), "libgomp (p1, p2, p3, ...)");
}

#[test]
fn the_threads_of_this_process_are_found() {
    use profile_reader::process::{Process, ProcessMemory, calling_thread};
    let pid = i32::try_from(std::process::id()).unwrap();
    let files = Process::find(pid).unwrap().files().unwrap();
    let (id, found) = std::thread::spawn(move || {
        let mut memory = ProcessMemory::new(pid);
        (calling_thread(), pthreads(&mut memory, &files).unwrap())
    })
    .join()
    .unwrap();
    // glibc before 2.33 has other lists.
    if !found.is_empty() {
        let own = found.iter().find(|thread| thread.id == id).unwrap();
        assert!(own.routine != 0);
        assert!(
            found
                .iter()
                .any(|thread| thread.id == pid && thread.routine == 0)
        );
    }
}
