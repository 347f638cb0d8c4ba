//! R's objects, through the C shim (`src/shim.c`): the only `extern` block.
//!
//! A call that made R jump returns [`Error::Interrupted`]; the entry point then
//! lets R go on with its jump, so that word never reaches a user.

use profile_core::error::{Error, Result};
use profile_core::limits::memory::TryCollect;
use profile_core::message;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;

const STRINGS: &str = "a column of strings";
const NAMES: &str = "names";

/// R's own pointer.
pub type Raw = *mut c_void;

/// An R object that lives as long as the call: an argument, a part of one, or
/// reachable from the result, which is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Sexp<'call>(NonNull<c_void>, PhantomData<&'call ()>);

// The types of `Rinternals.h` that matter here.
pub const LGLSXP: c_int = 10;
pub const INTSXP: c_int = 13;
pub const REALSXP: c_int = 14;
pub const STRSXP: c_int = 16;
pub const VECSXP: c_int = 19;
pub const RAWSXP: c_int = 24;

unsafe extern "C" {
    fn profile_uninterrupted() -> c_int;
    fn profile_alloc(kind: c_int, length: isize) -> Raw;
    fn profile_fill_strings(
        out: Raw,
        bytes: *const *const c_char,
        sizes: *const c_int,
        distinct: isize,
        index: *const c_int,
    ) -> c_int;
    fn profile_fill_stacks(
        out: Raw,
        frames: *const c_int,
        ends: *const usize,
        stacks: isize,
        stack_of: *const c_int,
    ) -> c_int;
    fn profile_set_names(list: Raw, names: *const *const c_char) -> c_int;
    fn profile_set_tibble(list: Raw, rows: isize) -> c_int;
    fn profile_integers(x: Raw) -> *const c_int;
    fn profile_doubles(x: Raw) -> *const f64;
    fn profile_bytes(x: Raw) -> *const u8;
    fn profile_strings(x: Raw) -> *const Raw;
    fn profile_utf8(string: Raw, size: *mut c_int) -> *const c_char;
    #[cfg(unix)]
    fn profile_native(string: Raw, size: *mut c_int) -> *const c_char;
    fn profile_type(x: Raw) -> c_int;
    fn profile_is_plain(x: Raw) -> c_int;
    fn profile_class(x: Raw) -> Raw;
    fn profile_inherits(x: Raw, class: *const c_char) -> c_int;
    fn profile_length(x: Raw) -> isize;
    fn profile_element(list: Raw, i: isize) -> Raw;
    fn profile_names(x: Raw) -> Raw;
    fn profile_set_element(list: Raw, i: isize, value: Raw);
    fn profile_integer_slots(x: Raw) -> *mut c_int;
    fn profile_double_slots(x: Raw) -> *mut f64;
    fn profile_byte_slots(x: Raw) -> *mut u8;
    fn profile_protect(x: Raw);
    fn profile_unprotect();
}

/// Whether the user wants the work to stop; remembers that R jumped.
pub fn stop() -> bool {
    // SAFETY: the shim catches the jump of R_CheckUserInterrupt().
    unsafe { profile_uninterrupted() == 0 }
}

/// A file as R names it (`R/paths.R`): its path, and what messages call that.
#[derive(Debug, Clone, Copy)]
pub struct FileName<'call> {
    pub path: &'call Path,
    pub shown: &'call str,
}

/// What the shim says in place of the size of a string that has no encoding.
const BYTES: c_int = -2;

/// R jumped: the way back out.
const JUMPED: Error = Error::Interrupted;

impl<'call> Sexp<'call> {
    /// # Safety
    /// `raw` is an R object that R keeps alive for the whole call.
    pub unsafe fn from_raw(raw: Raw) -> Option<Sexp<'call>> {
        NonNull::new(raw).map(|p| Sexp(p, PhantomData))
    }

    pub fn raw(self) -> Raw {
        self.0.as_ptr()
    }

    /// The type number, as the constants above.
    pub fn kind(self) -> c_int {
        // SAFETY: a live object; TYPEOF does not jump.
        unsafe { profile_type(self.raw()) }
    }

    /// What R calls the type, for messages.
    pub fn kind_name(self) -> Result<&'call str> {
        if !self.is_plain() {
            // SAFETY: a live object; the shim answers an object or R's NULL.
            let class = unsafe { Sexp::from_raw(profile_class(self.raw())) };
            let name = class.map_or(Ok(None), Sexp::text)?;
            return Ok(name.unwrap_or("a matrix or array"));
        }
        Ok(match self.kind() {
            0 => "NULL",
            LGLSXP => "logical",
            INTSXP => "integer",
            REALSXP => "double",
            STRSXP => "character",
            VECSXP => "list",
            RAWSXP => "raw",
            _ => "another type",
        })
    }

    /// Whether it is what its type says: without a class, such as that of factors, or
    /// dimensions.
    pub fn is_plain(self) -> bool {
        // SAFETY: a live object; looking up attributes does not jump.
        unsafe { profile_is_plain(self.raw()) != 0 }
    }

    pub fn inherits(self, class: &CStr) -> bool {
        // SAFETY: a live object; Rf_inherits does not jump.
        unsafe { profile_inherits(self.raw(), class.as_ptr()) != 0 }
    }

    pub fn len(self) -> usize {
        // SAFETY: a live object; Rf_xlength does not jump.
        unsafe { profile_length(self.raw()) }.max(0) as usize
    }

    fn slice<T>(
        self,
        kinds: &[c_int],
        data: unsafe extern "C" fn(Raw) -> *const T,
    ) -> Result<&'call [T]> {
        if !kinds.contains(&self.kind()) || self.len() == 0 {
            return Ok(&[]);
        }
        // SAFETY: a live vector of that type; the shim catches jumps.
        let start = unsafe { data(self.raw()) };
        if start.is_null() {
            return Err(JUMPED);
        }
        // SAFETY: R's vectors are contiguous, aligned for their type, and are
        // not written to while we hold them as arguments.
        Ok(unsafe { std::slice::from_raw_parts(start, self.len()) })
    }

    /// An integer or logical vector; of any other type, nothing.
    pub fn integers(self) -> Result<&'call [i32]> {
        self.slice(&[INTSXP, LGLSXP], profile_integers)
    }

    pub fn doubles(self) -> Result<&'call [f64]> {
        self.slice(&[REALSXP], profile_doubles)
    }

    pub fn bytes(self) -> Result<&'call [u8]> {
        self.slice(&[RAWSXP], profile_bytes)
    }

    /// The strings of a character vector, as R's string objects: equal strings
    /// of one encoding are the same object.
    pub fn strings(self) -> Result<&'call [Raw]> {
        self.slice(&[STRSXP], profile_strings)
    }

    /// The elements of a list.
    pub fn elements(self) -> impl ExactSizeIterator<Item = Sexp<'call>> {
        let len = if self.kind() == VECSXP { self.len() } else { 0 };
        (0..len).map(move |i| {
            // SAFETY: `i` is in range of a list; its elements live as it does
            // and are never a null pointer.
            unsafe {
                Sexp(
                    NonNull::new_unchecked(profile_element(self.raw(), i as isize)),
                    PhantomData,
                )
            }
        })
    }

    /// The names of a vector, empty where it has none.
    pub fn names(self) -> Result<Vec<&'call str>> {
        // SAFETY: a live object; the shim answers an object or R's NULL.
        let names = unsafe { Sexp::from_raw(profile_names(self.raw())) };
        match names {
            Some(names) if names.kind() == STRSXP => names
                .strings()?
                .iter()
                .map(|&s| Ok(utf8(s)?.unwrap_or("")))
                .try_vec_of(NAMES),
            _ => Ok(Vec::new()),
        }
    }

    /// The element of a list that has this name.
    pub fn named(self, name: &str) -> Result<Option<Sexp<'call>>> {
        let at = self.names()?.iter().position(|n| *n == name);
        Ok(at.and_then(|at| self.elements().nth(at)))
    }

    /// The first string of a character vector.
    pub fn text(self) -> Result<Option<&'call str>> {
        match self.strings()?.first() {
            Some(&string) => utf8(string),
            None => Ok(None),
        }
    }

    /// A character vector of a path as R would open it, and of the same for messages.
    pub fn file(self) -> Result<FileName<'call>> {
        let [path, shown] = *self.strings()? else {
            return Err(Error::Unsupported(message!("No path.")));
        };
        Ok(FileName {
            path: path_of(path)?,
            shown: utf8(shown)?.unwrap_or_default(),
        })
    }

    /// The first value of a logical vector, `false` for NA.
    pub fn flag(self) -> Result<bool> {
        Ok(self.integers()?.first() == Some(&1))
    }
}

/// A string object's text; `None` for NA.
pub fn utf8<'call>(string: Raw) -> Result<Option<&'call str>> {
    let mut size = 0;
    // SAFETY: a live string object; translation may allocate or fail, which the
    // shim catches.
    let start = unsafe { profile_utf8(string, &mut size) };
    if start.is_null() {
        return Err(JUMPED);
    }
    if size == BYTES {
        return Err(Error::Unsupported(message!(
            "the string is marked as bytes, not as text"
        )));
    }
    let Ok(size) = usize::try_from(size) else {
        return Ok(None);
    };
    // SAFETY: `size` bytes that live until the end of the call: the string
    // itself, or R_alloc memory of its translation.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), size) };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Error::Unsupported(message!(
            "\"{}\" is not valid text in its encoding",
            bytes.escape_ascii()
        ))),
    }
}

/// A path is bytes: those of the string, whatever its encoding.
#[cfg(unix)]
fn path_of<'call>(string: Raw) -> Result<&'call Path> {
    use std::os::unix::ffi::OsStrExt;
    let mut size = 0;
    // SAFETY: a live string object, whose bytes live until the end of the call; the
    // shim does not jump.
    let bytes = unsafe {
        let start = profile_native(string, &mut size);
        std::slice::from_raw_parts(start.cast::<u8>(), size.max(0) as usize)
    };
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
fn path_of<'call>(string: Raw) -> Result<&'call Path> {
    Ok(Path::new(utf8(string)?.unwrap_or_default()))
}

/// A list of fixed length that is protected or part of one that is. What goes
/// into it is made and put in place at once, so the garbage collector never
/// sees it loose. A slot is filled once: slices of its vector stay good until
/// the call ends.
#[derive(Debug, Clone, Copy)]
pub struct Slots<'call>(Raw, PhantomData<&'call ()>);

impl<'call> Slots<'call> {
    fn new_vector(self, slot: usize, kind: c_int, len: usize) -> Result<Raw> {
        // SAFETY: a live list, and the slot is one of its own; a slot that was not
        // filled holds R's NULL, of type 0.
        let free = slot < self.len()
            && unsafe { profile_type(profile_element(self.0, slot as isize)) } == 0;
        assert!(free, "slot {slot} is filled once");
        // SAFETY: the shim catches the failure of the allocation.
        let vector = unsafe { profile_alloc(kind, len as isize) };
        if vector.is_null() {
            return Err(JUMPED);
        }
        // SAFETY: the slot exists.
        unsafe { profile_set_element(self.0, slot as isize, vector) };
        Ok(vector)
    }

    pub fn len(self) -> usize {
        // SAFETY: a live list.
        unsafe { profile_length(self.0) }.max(0) as usize
    }

    pub fn integers(self, slot: usize, len: usize) -> Result<&'call mut [i32]> {
        self.integer_like(slot, INTSXP, len)
    }

    pub fn logicals(self, slot: usize, len: usize) -> Result<&'call mut [i32]> {
        self.integer_like(slot, LGLSXP, len)
    }

    fn integer_like(self, slot: usize, kind: c_int, len: usize) -> Result<&'call mut [i32]> {
        let vector = self.new_vector(slot, kind, len)?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: a fresh vector of `len` ints, reachable from the result until the
        // call returns, of which there is no other slice.
        Ok(unsafe { std::slice::from_raw_parts_mut(profile_integer_slots(vector), len) })
    }

    pub fn doubles(self, slot: usize, len: usize) -> Result<&'call mut [f64]> {
        let vector = self.new_vector(slot, REALSXP, len)?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `integer_like`.
        Ok(unsafe { std::slice::from_raw_parts_mut(profile_double_slots(vector), len) })
    }

    pub fn bytes(self, slot: usize, len: usize) -> Result<&'call mut [u8]> {
        let vector = self.new_vector(slot, RAWSXP, len)?;
        if len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as in `integer_like`.
        Ok(unsafe { std::slice::from_raw_parts_mut(profile_byte_slots(vector), len) })
    }

    /// A character vector: each row is one of `distinct`, or NA for -1.
    pub fn strings(self, slot: usize, distinct: &[&str], rows: &[i32]) -> Result<()> {
        let vector = self.new_vector(slot, STRSXP, rows.len())?;
        let bytes = distinct.iter().map(|s| s.as_ptr().cast());
        let bytes: Vec<*const c_char> = bytes.try_vec(STRINGS)?;
        let sizes = distinct.iter().map(|s| s.len() as c_int).try_vec(STRINGS)?;
        debug_assert!(rows.iter().all(|&r| r < distinct.len() as i32));
        // SAFETY: both arrays have `distinct` entries, `rows` as many as the
        // vector; the shim catches jumps.
        let done = unsafe {
            profile_fill_strings(
                vector,
                bytes.as_ptr(),
                sizes.as_ptr(),
                distinct.len() as isize,
                rows.as_ptr(),
            )
        };
        if done == 0 { Err(JUMPED) } else { Ok(()) }
    }

    /// A list of tibbles(location_id), one for each stack, shared by the rows.
    pub fn stacks(self, slot: usize, frames: &[i32], ends: &[usize], rows: &[i32]) -> Result<()> {
        let vector = self.new_vector(slot, VECSXP, rows.len())?;
        // SAFETY: `ends` partitions `frames`, `rows` index `ends`; the shim
        // catches jumps.
        let done = unsafe {
            profile_fill_stacks(
                vector,
                frames.as_ptr(),
                ends.as_ptr(),
                ends.len() as isize,
                rows.as_ptr(),
            )
        };
        if done == 0 { Err(JUMPED) } else { Ok(()) }
    }

    /// A list with one slot for each name.
    pub fn list(self, slot: usize, names: &[&CStr]) -> Result<Slots<'call>> {
        let list = self.new_vector(slot, VECSXP, names.len())?;
        let names = names.iter().map(|n| n.as_ptr()).try_vec(NAMES)?;
        // SAFETY: as many names as slots; the shim catches jumps.
        if unsafe { profile_set_names(list, names.as_ptr()) } == 0 {
            return Err(JUMPED);
        }
        Ok(Slots(list, PhantomData))
    }

    /// Makes this list a tibble of that many rows.
    pub fn set_tibble(self, rows: usize) -> Result<()> {
        // SAFETY: a live list; the shim catches jumps.
        if unsafe { profile_set_tibble(self.0, rows as isize) } == 0 {
            return Err(JUMPED);
        }
        Ok(())
    }
}

/// Makes a list of `slots`, protected while `fill` runs, and returns it; a null
/// pointer when R has not even memory for that.
pub fn protected_list(slots: usize, fill: impl for<'call> FnOnce(Slots<'call>)) -> Raw {
    // SAFETY: the shim catches the failure; protect and unprotect are paired,
    // and `fill` neither jumps nor unwinds (outcome.rs catches panics).
    unsafe {
        let list = profile_alloc(VECSXP, slots as isize);
        if list.is_null() {
            return list;
        }
        profile_protect(list);
        fill(Slots(list, PhantomData));
        profile_unprotect();
        list
    }
}
