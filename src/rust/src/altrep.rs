//! Columns whose values are computed when R needs them; `src/altrep.c` contains their methods.
//!
//! The three columns of `sample_locations` share one [`Shared`], which is freed when R's garbage
//! collector frees the last of them. C reads its first fields, which are a view of the model's
//! [`Frames`]. C calls Rust to unpack packed stacks ([`profile_unpack`]), and to free the object
//! ([`profile_drop_frames`]).

use crate::argument::Sexp;
use extendr_api::SEXP;
use profile_core::error::Result;
use profile_core::limits::memory::filled;
use profile_core::model::Frames;
use std::cell::Cell;
use std::ffi::c_int;

const COLUMNS: usize = 3;

/// `struct frames` of `src/frames.h`, with its fields in the same order.
#[repr(C)]
pub struct Shared {
    packed: u32,
    locations: *const u32,
    stack_ends: *const usize,
    stack_of: *const u32,
    sample_ends: *const u32,
    samples: isize,
    rows: isize,
    bytes: f64,
    // Written by C only.
    unpacked: *const u32,
    unpacked_stack: u32,
    hint: isize,
    searches: isize,
    columns: [Column; COLUMNS],
    // Owns the data that the pointers refer to. C does not access it.
    frames: Frames,
    /// Buffer for the locations of a packed stack.
    space: Vec<u32>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Column {
    data: *mut i32,
    cached: c_int,
    exposed: c_int,
    reads: isize,
}

// Lint: extendr declares the target of SEXP `non_exhaustive`.
#[allow(improper_ctypes)]
unsafe extern "C" {
    fn profile_frame_columns(frames: *mut Shared) -> SEXP;
    fn profile_counted(rows: isize, each: isize) -> SEXP;
    fn profile_cycled(rows: isize, values: SEXP) -> SEXP;
    fn profile_of_frames(column: SEXP, of_location: c_int, values: SEXP) -> SEXP;
    fn profile_frames_of(sample_id: SEXP, depth: SEXP, location_id: SEXP) -> *const Shared;
    fn profile_rows_of_each(x: SEXP) -> isize;
}

impl Shared {
    fn new(frames: Frames) -> Result<Shared> {
        let (packed, locations, stack_ends) = frames.stacks().parts();
        let room = if packed == 0 { 0 } else { frames.deepest() };
        let space = filled(room, 0)?;
        Ok(Shared {
            packed: packed as u32,
            locations: locations.as_ptr().cast(),
            stack_ends: stack_ends.as_ptr(),
            stack_of: frames.of_sample().as_ptr().cast(),
            sample_ends: frames.ends().as_ptr(),
            samples: frames.of_sample().len() as isize,
            rows: frames.rows() as isize,
            bytes: frames.bytes() as f64,
            unpacked: std::ptr::null(),
            unpacked_stack: 0,
            hint: 0,
            searches: 0,
            columns: [Column {
                data: std::ptr::null_mut(),
                cached: 0,
                exposed: 0,
                reads: 0,
            }; COLUMNS],
            frames,
            space,
        })
    }
}

/// Passes to `make` a function that creates a list of the three columns. That function jumps if R
/// has no memory; in this case the frames are freed here.
pub fn with_frame_columns<T>(
    frames: Frames,
    make: impl FnOnce(&dyn Fn() -> SEXP) -> Result<T>,
) -> Result<T> {
    let shared = Box::into_raw(Box::new(Shared::new(frames)?));
    let is_taken = Cell::new(false);
    let made = make(&|| {
        // SAFETY: a pointer of the type that C expects. R's garbage collector frees it if this call
        // returns.
        let columns = unsafe { profile_frame_columns(shared) };
        is_taken.set(true);
        columns
    });
    if !is_taken.get() {
        // SAFETY: no other pointer to it exists.
        drop(unsafe { Box::from_raw(shared) });
    }
    made
}

/// Unpacks a stack; the locations are valid until the next call.
#[unsafe(no_mangle)]
extern "C" fn profile_unpack(shared: *mut Shared, stack: u32) -> *const u32 {
    // SAFETY: the pointer was created by `with_frame_columns()`; R calls the methods of columns
    // from one thread.
    let shared = unsafe { &mut *shared };
    shared.frames.unpack(stack, &mut shared.space);
    shared.space.as_ptr()
}

/// Called by R's garbage collector, through C.
#[unsafe(no_mangle)]
extern "C" fn profile_drop_frames(shared: *mut Shared) {
    // SAFETY: the pointer was created by `with_frame_columns()`; C calls this once.
    drop(unsafe { Box::from_raw(shared) });
}

/// A column of integers 1, 2, 3, …, each repeated in `each` rows. May jump.
///
/// R has its own compact sequences, but serialises them as they were created, so edits that
/// `data.table::set()` makes in place are lost.
///
/// # Safety
/// Only inside [`guarded()`].
pub unsafe fn counted(rows: usize, each: usize) -> SEXP {
    // SAFETY: creates a vector, by the contract of this function inside `guarded()`.
    unsafe { profile_counted(rows as isize, each as isize) }
}

/// A column that repeats these values in a cycle. May jump.
///
/// # Safety
/// Only inside [`guarded()`]. `values` is a protected vector of integers, doubles or strings with
/// at least one element, which is not used elsewhere.
pub unsafe fn cycled(rows: usize, values: SEXP) -> SEXP {
    // SAFETY: creates a vector, by the contract of this function inside `guarded()`.
    unsafe { profile_cycled(rows as isize, values) }
}

/// Which table a value of a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Sample,
    Location,
}

/// A column with a row for each frame, which contains the value of its sample or location. May
/// jump.
///
/// # Safety
/// Only inside [`guarded()`]. `column` is one of the columns of these frames, and `values` a vector
/// of integers, doubles or strings with a value for each sample or location, which is not used
/// elsewhere. Both are protected.
pub unsafe fn of_frames(column: SEXP, of: Of, values: SEXP) -> SEXP {
    // SAFETY: creates a vector, by the contract of this function inside `guarded()`.
    unsafe { profile_of_frames(column, c_int::from(of == Of::Location), values) }
}

/// The number of rows that have the same value in a column of [`counted()`]; `None` if it is
/// another vector or if its values are in memory.
pub fn rows_of_each(vector: SEXP) -> Option<usize> {
    // SAFETY: a live object; this neither allocates nor jumps.
    let each = unsafe { profile_rows_of_each(vector) };
    usize::try_from(each).ok().filter(|&each| each > 0)
}

/// The frames from which three columns were created, if the columns are unchanged.
pub fn frames_of<'call>(columns: [Sexp<'call>; COLUMNS]) -> Option<&'call Frames> {
    let [sample_id, depth, location_id] = columns.map(Sexp::object);
    // SAFETY: live objects; the frames live as long as they do.
    unsafe {
        let shared = profile_frames_of(sample_id, depth, location_id);
        (!shared.is_null()).then(|| &(*shared).frames)
    }
}
