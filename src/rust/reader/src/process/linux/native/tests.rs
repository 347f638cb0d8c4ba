//! Native stacks and modules of a process that waits.

use super::super::memory::maps::FileMapping;
use super::super::thread::Thread;
use super::super::thread::pause::Stopper;
use super::*;
use crate::recorded::states::Stops;
use profile_core::joint::Role;
use profile_unwind::Modules;
use std::process::{Child, Command};
use std::time::Duration;

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The modules of the frames of a process that waits, innermost first, and whether the last is the outermost one.
fn walked(pid: i32, process: &Process) -> (Vec<String>, bool) {
    let files = Files::default();
    let mut memory = ProcessMemory::new(pid);
    let mut modules = RemoteModules::new(memory.clone(), pid, &files);
    modules.update(&process.file_mappings().unwrap()).unwrap();
    let pause = Stopper::new(pid).stop().unwrap();
    let registers = pause.registers().unwrap();
    let pointer = registers.stack_pointer();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let end = line.split(['-', ' ']).nth(1).unwrap();
    let end = u64::from_str_radix(end, 16).unwrap();
    let mut stack = StackCopy::default();
    assert!(stack.take(&mut memory, pointer..end).unwrap());
    drop(pause);
    assert_eq!(stack.word(end), None);
    assert_eq!(stack.word(pointer - 1), None);
    assert!(modules.verify().unwrap());
    let mut unwinder = Unwinder::new(modules).unwrap();
    let mut room = vec![0; 1000];
    let walked = unwinder.walk(registers, &stack, &mut room).unwrap();
    let seen = unwinder.modules.seen(0).unwrap();
    let names = room.chunks(PAIR).take(walked.frames).map(|pair| {
        let module = &seen[(pair[0] >> 48) as usize];
        match module.role {
            Role::Program => "program".to_owned(),
            _ => module.path.clone(),
        }
    });
    (names.collect(), walked.whole)
}

#[test]
fn the_copy_of_a_stack_is_unwound_to_its_end() {
    let child = Killed(Command::new("sleep").arg("100").spawn().unwrap());
    let pid = child.0.id() as i32;
    let process = Process::find(pid).unwrap();
    let thread = Thread::open(&process, Stops::Never).unwrap();
    for _ in 0..1000 {
        if thread.system_call() == Some(libc::SYS_clock_nanosleep) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (modules, is_whole) = walked(pid, &process);
    assert!(is_whole, "{modules:?}");
    // From the system call to the start of the program, which calls `main()` through the C library.
    assert!(modules[0].contains("libc"), "{modules:?}");
    assert_eq!(modules.last().unwrap(), "program");
    let first = modules
        .iter()
        .position(|module| module == "program")
        .unwrap();
    assert!(
        modules[first..]
            .iter()
            .any(|module| module.contains("libc"))
    );
}

#[test]
fn modules_that_are_no_more_are_noticed() {
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let pid = child.id() as i32;
    let process = Process::find(pid).unwrap();
    let files = Files::default();
    let mut modules = RemoteModules::new(ProcessMemory::new(pid), pid, &files);
    let mut code = 0;
    for _ in 0..1000 {
        let parts = process.file_mappings().unwrap();
        modules.update(&parts).unwrap();
        let libc = |part: &&FileMapping| part.is_code && part.path.contains("libc");
        if let Some(part) = parts.iter().find(libc) {
            code = part.addresses.start;
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(modules.verify().unwrap());
    assert!(modules.at(code).is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!modules.verify().unwrap());
    assert_eq!(modules.at(code), None);
}
