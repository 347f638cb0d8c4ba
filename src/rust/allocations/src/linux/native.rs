//! The native stack at an allocation, by the unwinder of the compiler's library (`<unwind.h>`), which every program with
//! exceptions or panics has. It is only asked about call sites that are new.

use std::ffi::{c_int, c_void};

/// The number of frames that are looked at: those of the hook and of R's allocator and copying functions.
const MOST: usize = 64;

/// A frame of the native stack.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    /// The address to which the function inside of it returns.
    pub counter: u64,
    /// The start of its function.
    pub function: u64,
    /// The stack pointer after the function inside of it has returned.
    pub stack_pointer: u64,
}

/// The innermost frames, beginning with those of this crate.
pub struct Frames {
    frames: [Frame; MOST],
    count: usize,
}

enum Context {}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut Context, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut Context) -> u64;
    fn _Unwind_GetCFA(context: *mut Context) -> u64;
    fn _Unwind_GetRegionStart(context: *mut Context) -> u64;
}

/// `_URC_NO_REASON` and `_URC_END_OF_STACK`.
const GO_ON: c_int = 0;
const STOP: c_int = 5;

extern "C" fn visit(context: *mut Context, data: *mut c_void) -> c_int {
    // SAFETY: the pointer that is passed in `of_this_thread()`.
    let found = unsafe { &mut *data.cast::<Frames>() };
    let Some(frame) = found.frames.get_mut(found.count) else {
        return STOP;
    };
    // SAFETY: the unwinder has passed this context.
    *frame = unsafe {
        Frame {
            counter: _Unwind_GetIP(context),
            function: _Unwind_GetRegionStart(context),
            stack_pointer: _Unwind_GetCFA(context),
        }
    };
    found.count += 1;
    GO_ON
}

impl Frames {
    pub fn of_this_thread() -> Frames {
        let mut found = Frames {
            frames: [Frame::default(); MOST],
            count: 0,
        };
        // SAFETY: `visit()` only uses `found`, which exists until this returns.
        unsafe { _Unwind_Backtrace(visit, (&raw mut found).cast()) };
        found
    }

    /// The frames from the one on to which this address returns.
    pub fn from(&self, counter: u64) -> &[Frame] {
        let all = self.frames.get(..self.count).unwrap_or_default();
        let first = all.iter().position(|frame| frame.counter == counter);
        first.and_then(|first| all.get(first..)).unwrap_or_default()
    }
}
