//! Tests of unwinding: in a signal handler, compared with glibc's result, and of damaged stacks.

/// Only x86-64 can stop after each instruction without another process.
#[cfg(target_arch = "x86_64")]
#[path = "unwind_tests/each_instruction.rs"]
mod each_instruction;

use super::memory::{Limits, Stack};
use super::modules::Modules;
use super::registers::registers_of;
use profile_core::joint::recording::PAIR;
use profile_unwind::registers::REGISTERS;
use profile_unwind::{Registers, Unwinder};
use std::ffi::{c_int, c_void};
use std::sync::Mutex;

/// The return addresses that a handler found, whether they are complete, and the result of glibc's
/// own `backtrace()`.
type Found = (Vec<u64>, bool, Vec<u64>);
static FOUND: Mutex<Vec<Found>> = Mutex::new(Vec::new());
/// Signal handlers belong to the process, but tests run in threads, so these tests are serialised.
static ALONE: Mutex<()> = Mutex::new(());

fn unwinder() -> Unwinder<Modules> {
    Unwinder::new(Modules::new().unwrap()).unwrap()
}

fn words(walker: &mut Unwinder<Modules>, registers: Registers, limits: Limits) -> (Vec<u64>, bool) {
    let stack = Stack::in_use(registers.stack_pointer(), limits);
    let mut room = vec![0; 10_000];
    let walked = walker.walk(registers, stack, &mut room).unwrap();
    room.truncate(walked.frames * PAIR);
    (room, walked.whole)
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the third argument is this.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let limits = Limits::current().unwrap();
    let mut walker = unwinder();
    let (words, whole) = words(&mut walker, registers_of(context), limits);
    let counters = words.chunks(PAIR).map(|pair| pair[0] << 16 >> 16);
    let mut theirs = [std::ptr::null_mut(); 500];
    // SAFETY: it writes at most as many addresses as there is room for.
    let count = unsafe { libc::backtrace(theirs.as_mut_ptr(), 500) };
    let theirs = theirs[..count as usize].iter().map(|&p| p as u64);
    let found = (counters.collect(), whole, theirs.collect());
    FOUND.lock().unwrap().push(found);
}

fn interrupted(work: fn()) -> Found {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    // SAFETY: a handler of the type that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    FOUND.lock().unwrap().clear();
    work();
    FOUND.lock().unwrap().pop().unwrap()
}

#[inline(never)]
fn deeper(depth: u32) -> u32 {
    if depth == 0 {
        // SAFETY: the handler is set.
        unsafe { libc::raise(libc::SIGUSR1) };
        return 1;
    }
    std::hint::black_box(deeper(depth - 1)) + 1
}

#[test]
fn the_stack_is_the_one_that_glibc_finds() {
    let (ours, whole, theirs) = interrupted(|| {
        deeper(60);
    });
    assert!(whole);
    // The result of glibc begins in the handler, ours with the interrupted instruction.
    let start = theirs.iter().position(|c| *c == ours[0]).unwrap();
    assert_eq!(theirs[start..], ours);
    assert!(ours.len() > 60);
}

#[test]
fn callbacks_of_the_c_library_are_followed() {
    extern "C" fn compare(a: *const c_void, _: *const c_void) -> c_int {
        // SAFETY: the handler is set.
        unsafe { libc::raise(libc::SIGUSR1) };
        (a as usize & 1) as c_int
    }
    let (ours, whole, theirs) = interrupted(|| {
        let mut two = [2_u64, 1];
        // SAFETY: two elements of eight bytes.
        unsafe { libc::qsort(two.as_mut_ptr().cast(), 2, 8, Some(compare)) };
    });
    assert!(whole);
    assert!(theirs.ends_with(&ours));
}

#[test]
fn a_signal_inside_a_handler_shows_both() {
    extern "C" fn outer(_: c_int) {
        deeper(2);
    }
    let (ours, whole, theirs) = interrupted(|| {
        // SAFETY: a handler of the plain type.
        unsafe {
            libc::signal(libc::SIGUSR2, outer as *const () as usize);
            libc::raise(libc::SIGUSR2);
        }
    });
    assert!(whole);
    assert!(theirs.ends_with(&ours));
}

/// The state of a generator of pseudo-random numbers.
fn scramble(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn damaged_registers_and_stacks_end_the_walk() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    // A block of memory used as stack, full of addresses of code and of itself.
    let mut memory = vec![0_u64; 4096];
    let low = memory.as_ptr() as u64;
    let limits = Limits {
        low,
        top: low + 8 * 4096,
    };
    let code = [
        deeper as *const () as u64,
        libc::qsort as *const () as u64,
        libc::raise as *const () as u64,
    ];
    let mut walker = unwinder();
    let mut state = 88172645463325252;
    for round in 0..2000 {
        for slot in &mut memory {
            let pick = scramble(&mut state);
            *slot = match pick % 4 {
                0 => code[(pick >> 8) as usize % 3] + (pick >> 32) % 2000,
                1 => low + (pick >> 8) % (8 * 4096),
                2 => pick >> 16,
                _ => 0,
            };
        }
        let mut registers = Registers::new([0; REGISTERS]);
        for register in 0..REGISTERS as u16 {
            registers.set(register, memory[scramble(&mut state) as usize % 4096]);
        }
        let start = code[round % 3] + scramble(&mut state) % 200;
        registers.return_to(start, low + scramble(&mut state) % (8 * 4000));
        let (words, _) = words(&mut walker, registers, limits);
        assert!(words.len() >= PAIR);
    }
}

#[test]
fn frames_that_do_not_fit_are_reported() {
    let limits = Limits::current().unwrap();
    let registers = Registers::new([0; REGISTERS]);
    let stack = Stack::in_use(registers.stack_pointer(), limits);
    let walked = unwinder().walk(registers, stack, &mut [0]);
    assert!(walked.is_none());
}
