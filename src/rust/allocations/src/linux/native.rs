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
    fn _Unwind_GetGR(context: *mut Context, register: c_int) -> u64;
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

/// The registers that functions preserve, by their numbers in DWARF.
#[cfg(target_arch = "x86_64")]
const PRESERVED: [c_int; 6] = [3, 6, 12, 13, 14, 15];
#[cfg(target_arch = "aarch64")]
const PRESERVED: [c_int; 10] = [19, 20, 21, 22, 23, 24, 25, 26, 27, 28];

/// Looks for a value in the registers of the frames from the one on to which `site` returns, up to the first one of one of
/// the `functions`.
pub fn find_in_registers(
    site: u64,
    functions: [u64; 2],
    is_wanted: &mut dyn FnMut(u64) -> bool,
) -> Option<u64> {
    struct Search<'a> {
        site: u64,
        functions: [u64; 2],
        is_wanted: &'a mut dyn FnMut(u64) -> bool,
        has_begun: bool,
        count: usize,
        found: Option<u64>,
    }
    extern "C" fn visit(context: *mut Context, data: *mut c_void) -> c_int {
        // SAFETY: the pointer that is passed below.
        let search = unsafe { &mut *data.cast::<Search<'_>>() };
        // SAFETY: the unwinder has passed this context.
        let (counter, function) =
            unsafe { (_Unwind_GetIP(context), _Unwind_GetRegionStart(context)) };
        search.has_begun |= counter == search.site;
        search.count += 1;
        if search.has_begun {
            for register in PRESERVED {
                // SAFETY: as above; these registers are known in every frame.
                let value = unsafe { _Unwind_GetGR(context, register) };
                if (search.is_wanted)(value) {
                    search.found = Some(value);
                    return STOP;
                }
            }
        }
        let is_last = search.functions.contains(&function) || search.count == MOST;
        if is_last { STOP } else { GO_ON }
    }
    let mut search = Search {
        site,
        functions,
        is_wanted,
        has_begun: false,
        count: 0,
        found: None,
    };
    // SAFETY: `visit()` only uses `search`, which exists until this returns.
    unsafe { _Unwind_Backtrace(visit, (&raw mut search).cast()) };
    search.found
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

    pub fn all(&self) -> &[Frame] {
        self.frames.get(..self.count).unwrap_or_default()
    }

    /// The frames from the one on to which this address returns.
    pub fn from(&self, counter: u64) -> &[Frame] {
        let all = self.all();
        let first = all.iter().position(|frame| frame.counter == counter);
        first.and_then(|first| all.get(first..)).unwrap_or_default()
    }
}
