//! Compares the stack with glibc's at each instruction of some code.

use super::*;
use std::sync::atomic::{AtomicPtr, Ordering};

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
        limits: Limits::current().unwrap(),
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
