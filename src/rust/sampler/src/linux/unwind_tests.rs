//! Tests of unwinding: in a signal handler, compared with glibc's result, and of damaged stacks.

use super::memory::{Limits, Stack};
use super::modules::Modules;
use super::x86_64::registers_of;
use profile_core::joint::recording::PAIR;
use profile_unwind::{Registers, Unwinder};
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

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
    let limits = Limits::of_this_thread().unwrap();
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

// Sets or clears the flag that stops the processor after each instruction.
std::arch::global_asm!(
    ".globl profile_test_set_trap",
    "profile_test_set_trap:",
    ".cfi_startproc",
    "pushfq",
    ".cfi_adjust_cfa_offset 8",
    "or qword ptr [rsp], 0x100",
    "popfq",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".globl profile_test_clear_trap",
    "profile_test_clear_trap:",
    ".cfi_startproc",
    "pushfq",
    ".cfi_adjust_cfa_offset 8",
    "and qword ptr [rsp], -0x101",
    "popfq",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
);

unsafe extern "C" {
    fn profile_test_set_trap();
    fn profile_test_clear_trap();
}

/// What the handler of each instruction uses: it must not allocate.
struct Steps {
    walker: Unwinder<Modules>,
    limits: Limits,
    room: Vec<u64>,
    count: usize,
    /// Program counters at which the stack was incomplete or differed from glibc's.
    wrong: Vec<u64>,
}

static STEPS: AtomicPtr<Steps> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn on_step(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the test has set this, and waits for the end of the handler.
    let steps = unsafe { &mut *STEPS.load(Ordering::Acquire) };
    // SAFETY: with SA_SIGINFO the third argument is this.
    let registers = registers_of(unsafe { &*context.cast::<libc::ucontext_t>() });
    let counter = registers.counter();
    let stack = Stack::in_use(registers.stack_pointer(), steps.limits);
    let mut theirs = [std::ptr::null_mut(); 200];
    // SAFETY: it writes at most as many addresses as there is room for.
    let count = unsafe { libc::backtrace(theirs.as_mut_ptr(), 200) } as usize;
    let theirs = theirs.iter().take(count).map(|&address| address as u64);
    // The result of glibc begins in the handler.
    let theirs = theirs.skip_while(|&address| address != counter);
    steps.count += 1;
    let agrees = match steps.walker.walk(registers, stack, &mut steps.room) {
        Some(walked) => {
            let ours = steps.room.chunks(PAIR).take(walked.frames);
            walked.whole && ours.map(|pair| pair[0] << 16 >> 16).eq(theirs)
        }
        None => false,
    };
    if !agrees && steps.wrong.len() < steps.wrong.capacity() {
        steps.wrong.push(counter);
    }
}

/// Compares the stack with glibc's at each instruction of `work`; returns the number of instructions.
fn at_each_instruction(work: fn()) -> usize {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let mut steps = Steps {
        walker: unwinder(),
        limits: Limits::of_this_thread().unwrap(),
        room: vec![0; 10_000],
        count: 0,
        wrong: Vec::with_capacity(10),
    };
    // glibc loads a library the first time.
    // SAFETY: it writes at most as many addresses as there is room for.
    unsafe { libc::backtrace([std::ptr::null_mut(); 1].as_mut_ptr(), 1) };
    work();
    STEPS.store(&mut steps, Ordering::Release);
    // SAFETY: a handler of the type that SA_SIGINFO asks for; only this thread is stopped.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_step as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut());
        profile_test_set_trap();
    }
    work();
    // SAFETY: as above.
    unsafe {
        profile_test_clear_trap();
        libc::signal(libc::SIGTRAP, libc::SIG_DFL);
    }
    assert!(
        steps.wrong.is_empty(),
        "{:x?} of {} instructions",
        steps.wrong,
        steps.count
    );
    steps.count
}

#[test]
fn the_stack_is_right_at_each_instruction() {
    extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
        std::hint::black_box(fib(3));
        (a as usize).cmp(&(b as usize)) as c_int
    }
    fn fib(n: u32) -> u32 {
        if n < 2 {
            n
        } else {
            std::hint::black_box(fib(n - 1)) + fib(n - 2)
        }
    }
    // The instructions include the starts and ends of functions, calls into the C library and back, and the allocator.
    let count = at_each_instruction(|| {
        let mut three = [2_u64, 1, 3];
        // SAFETY: three elements of eight bytes.
        unsafe { libc::qsort(three.as_mut_ptr().cast(), 3, 8, Some(compare)) };
        std::hint::black_box(format!("{:?} {}", three, fib(4)));
    });
    assert!(count > 500, "{count}");
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
        // SAFETY: plain numbers.
        let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
        for register in &mut context.uc_mcontext.gregs {
            *register = memory[scramble(&mut state) as usize % 4096] as i64;
        }
        let start = code[round % 3] + scramble(&mut state) % 200;
        context.uc_mcontext.gregs[libc::REG_RIP as usize] = start as i64;
        let pointer = low + scramble(&mut state) % (8 * 4000);
        context.uc_mcontext.gregs[libc::REG_RSP as usize] = pointer as i64;
        let (words, _) = words(&mut walker, registers_of(&context), limits);
        assert!(words.len() >= PAIR);
    }
}

#[test]
fn frames_that_do_not_fit_are_reported() {
    let limits = Limits::of_this_thread().unwrap();
    // SAFETY: plain numbers.
    let registers = registers_of(&unsafe { std::mem::zeroed() });
    let stack = Stack::in_use(registers.stack_pointer(), limits);
    let walked = unwinder().walk(registers, stack, &mut [0]);
    assert!(walked.is_none());
}
