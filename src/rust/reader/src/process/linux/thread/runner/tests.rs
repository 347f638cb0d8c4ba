//! Processes in a folder that the tests write, and threads of this process.

use super::super::super::folder::{Entry, Scripted};
use super::super::watched::Watched;
use super::*;
use crate::process::{Process, Thread};
use crate::recorded::states::Stops;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const PID: i32 = 10;
/// The stack of the first thread, and two others with a guard page below each.
const MAPS: &str = "1000-2000 r-xp 00001000 00:00 1   /usr/lib/R/lib/libR.so
10000-11000 ---p 00000000 00:00 0
11000-20000 rw-p 00000000 00:00 0
20000-21000 ---p 00000000 00:00 0
21000-38000 rw-p 00000000 00:00 0
7000000-7010000 rw-p 00000000 00:00 0   [stack]
";

/// Threads with these IDs and contents of their file `syscall`.
fn process(name: &str, threads: &[(i32, &str)]) -> Scripted {
    let folder = Scripted::new(name);
    let process = folder.add(&Entry {
        pid: PID,
        ..Entry::default()
    });
    fs::write(process.join("maps"), MAPS).unwrap();
    for (id, call) in threads {
        let thread = process.join(format!("task/{id}"));
        fs::create_dir_all(&thread).unwrap();
        fs::write(thread.join("syscall"), call).unwrap();
    }
    folder
}

fn runner(address: u64, data: &[(i32, u64)], except: Option<i32>) -> Option<Runner> {
    let data_of = |thread| {
        let known = data.iter().find(|(id, _)| *id == thread);
        known.map(|(_, data)| *data)
    };
    find_with(PID, address, data_of, except).unwrap()
}

fn found(thread: i32, stack: Range<u64>) -> Option<Runner> {
    Some(Runner { thread, stack })
}

const RUNS: &str = "running\n";

#[test]
fn the_thread_is_found_by_the_data_at_the_top_of_its_stack() {
    let threads = [(PID, RUNS), (11, RUNS), (12, RUNS)];
    let _folder = process("profile-runner-data", &threads);
    let data = [(PID, 0x1800), (11, 0x1ff00), (12, 0x37000)];
    assert_eq!(runner(0x15000, &data, None), found(11, 0x11000..0x1ff00));
    assert_eq!(runner(0x25000, &data, None), found(12, 0x21000..0x37000));
    // The stack of the first thread has a name, and may have grown.
    let first = found(PID, 0x38000..0x7010000);
    assert_eq!(runner(0x7008000, &data, None), first);
    // Two stacks without a guard page between them.
    let data = [(11, 0x30000), (12, 0x37000)];
    assert_eq!(runner(0x25000, &data, None), found(11, 0x21000..0x30000));
    assert_eq!(runner(0x31000, &data, None), found(12, 0x21000..0x37000));
    // What is in no mapping is on no stack.
    assert_eq!(runner(0x500, &data, None), None);
}

#[test]
fn a_thread_that_waits_is_found_by_its_stack_pointer() {
    let waits = |pointer: &str| format!("202 0x1 0x2 0x3 0x4 0x5 0x6 {pointer} 0x7f01\n");
    let (low, high) = (waits("0x22000"), waits("0x30000"));
    let threads = [(PID, RUNS), (11, &*low), (12, &*high), (13, RUNS)];
    let _folder = process("profile-runner-pointer", &threads);
    let stack = || 0x21000..0x38000;
    // The outer calls of a thread are above its stack pointer.
    assert_eq!(runner(0x25000, &[], None), found(11, stack()));
    assert_eq!(runner(0x35000, &[], None), found(12, stack()));
    assert_eq!(runner(0x21500, &[], None), None);
    // It need not be in a system call.
    let process = file_of(PID, "task/12/syscall");
    fs::write(process, "-1 0x30000 0x7f01\n").unwrap();
    assert_eq!(runner(0x35000, &[], None), found(12, stack()));
    assert_eq!(in_call(PID, 12).map(|call| call.number), Some(-1));
    assert_eq!(in_call(PID, 11).map(|call| call.number), Some(202));
    assert_eq!(in_call(PID, 13), None);
}

#[test]
fn the_only_thread_whose_stack_is_unknown_is_the_one() {
    let elsewhere = "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7009000 0x7f01\n";
    let threads = [(PID, elsewhere), (11, RUNS), (12, elsewhere)];
    let folder = process("profile-runner-only", &threads);
    assert_eq!(runner(0x25000, &[], None), found(11, 0x21000..0x38000));
    // The thread that asks runs, too.
    let another = folder.path().join(format!("{PID}/task/13"));
    fs::create_dir_all(&another).unwrap();
    fs::write(another.join("syscall"), RUNS).unwrap();
    assert_eq!(runner(0x25000, &[], None), None);
    assert_eq!(runner(0x25000, &[], Some(13)), found(11, 0x21000..0x38000));
}

#[test]
fn a_process_with_one_thread_is_not_searched() {
    let _folder = process("profile-runner-one", &[]);
    // As in a fork that was made by another thread than the first one.
    assert_eq!(runner(0x15000, &[], None), found(PID, 0x11000..0x20000));
}

/// A thread of this process: its ID, and the address of one of its variables. It waits until the sender is dropped.
fn waiting() -> (thread::JoinHandle<()>, Sender<()>, i32, u64) {
    let (tell, told) = channel();
    let (end, ended) = channel::<()>();
    let thread = thread::spawn(move || {
        let variable = 0_u8;
        tell.send((caller::id(), (&raw const variable).addr() as u64))
            .unwrap();
        ended.recv().unwrap_err();
    });
    let (id, address) = told.recv().unwrap();
    (thread, end, id, address)
}

#[test]
fn threads_of_this_process_are_found() {
    let pid = std::process::id() as i32;
    let (one, other) = (waiting(), waiting());
    for (_, _, id, address) in [&one, &other] {
        let found = find(pid, *address).unwrap().unwrap();
        assert_eq!(found.thread, *id);
        assert!(found.stack.contains(address));
        // Without the list of robust mutexes, it is found when it waits.
        let begin = Instant::now();
        let by_pointer = || find_with(pid, *address, |_| None, this_thread(pid)).unwrap();
        while by_pointer().map(|found| found.thread) != Some(*id) {
            assert!(begin.elapsed() < Duration::from_secs(300));
            thread::sleep(Duration::from_millis(1));
        }
    }
    for (thread, end, ..) in [one, other] {
        drop(end);
        thread.join().unwrap();
    }
}

#[test]
fn r_is_followed_and_the_first_thread_is_left_when_the_other_has_ended() {
    let pid = std::process::id() as i32;
    let process = Process::find(pid).unwrap();
    let mut thread = Thread::open(&process, Stops::Never).unwrap();
    let (other, end, id, address) = waiting();
    let found = thread.follow(address).unwrap().unwrap();
    assert!(found.is_other && found.stack.contains(&address));
    assert_eq!(thread.id(), id);
    assert!(!thread.follow(address).unwrap().unwrap().is_other);
    // An address on no stack changes nothing.
    assert_eq!(thread.follow(1).unwrap(), None);
    assert_eq!(thread.id(), id);
    assert!(thread.cpu_time().is_some());
    assert!(thread.activity().is_some() && !thread.has_left());
    drop(end);
    other.join().unwrap();
    // The kernel may still have it for a moment.
    let begin = Instant::now();
    while thread.id() == id {
        assert!(thread.activity().unwrap().has_others);
        assert!(begin.elapsed() < Duration::from_secs(300));
    }
    assert_eq!(thread.id(), pid);
    assert!(!thread.has_left());
}
