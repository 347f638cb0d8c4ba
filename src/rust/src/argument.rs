//! Reads arguments from R, without copying them and without letting R jump.
//!
//! extendr's own conversions are not suitable for user input: their errors end in R's `error()`,
//! with the message as format string; they assume that strings are UTF-8; their slices request
//! write access, for which R copies or expands shared vectors; and each element of a list that
//! becomes an `Robj` takes an entry in a table that never shrinks. Therefore entry points take
//! `&Robj`, and [`argument()`] reads it.

use crate::guard::guarded;
use crate::vector_data;
use extendr_api::{GetSexp, Robj, SEXP};
use extendr_ffi::{
    ALTREP, DATAPTR_RO, R_CHAR, R_ClassSymbol, R_DimSymbol, R_NaString, R_NamesSymbol, R_NilValue,
    R_RowNamesSymbol, Rboolean, Rf_getAttrib, Rf_install, Rf_isObject, Rf_xlength, TYPEOF,
    cetype_t,
};
use profile_core::error::{Error, Result};
use profile_core::limits::memory::{TryCollect, owned};
use profile_core::message;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::path::Path;

pub use extendr_ffi::SEXPTYPE::{self, INTSXP, LGLSXP, RAWSXP, REALSXP, STRSXP, VECSXP};

// Lint: extendr declares the target of SEXP `non_exhaustive`.
#[allow(improper_ctypes)]
unsafe extern "C" {
    // extendr does not declare these functions of R's API.
    fn Rf_translateCharUTF8(string: SEXP) -> *const c_char;
    fn Rf_getCharCE(string: SEXP) -> c_int;
    fn Rf_inherits(object: SEXP, class: *const c_char) -> c_int;
}

/// An argument of the current call, or a part of one. R keeps it alive and unchanged until
/// the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Sexp<'call>(SEXP, PhantomData<&'call ()>);

/// A file as `R/paths.R` passes it: its path, and the path as shown in messages.
#[derive(Debug, Clone, Copy)]
pub struct FileName<'call> {
    pub path: &'call Path,
    pub shown: &'call str,
}

pub fn argument(argument: &Robj) -> Sexp<'_> {
    // SAFETY: R keeps the object alive until the call returns.
    Sexp(unsafe { argument.get() }, PhantomData)
}

/// The text of an argument that R code always passes as a string.
pub fn text(argument: &Robj) -> Result<&str> {
    Ok(self::argument(argument).text()?.unwrap_or_default())
}

impl<'call> Sexp<'call> {
    /// An object that R keeps alive and unchanged during the call.
    pub(crate) fn of(object: SEXP) -> Sexp<'call> {
        Sexp(object, PhantomData)
    }

    /// The underlying object, for functions of R.
    pub(crate) fn object(self) -> SEXP {
        self.0
    }

    /// R's `NULL`.
    pub fn null() -> Sexp<'call> {
        // SAFETY: a constant of R.
        Sexp(unsafe { R_NilValue }, PhantomData)
    }

    /// The address of the object, which is valid as long as R keeps the object.
    pub fn address(self) -> u64 {
        self.0 as u64
    }

    pub fn is_null(self) -> bool {
        self.kind() == SEXPTYPE::NILSXP
    }

    /// The type of the object.
    pub fn kind(self) -> SEXPTYPE {
        // SAFETY: a live object.
        unsafe { TYPEOF(self.0) }
    }

    /// R's name of the class or type, for messages.
    pub fn kind_name(self) -> Result<&'call str> {
        if !self.is_plain() {
            // SAFETY: a live object; the result is R's NULL if it has no class.
            let class = unsafe { Rf_getAttrib(self.0, R_ClassSymbol) };
            let name = Sexp(class, PhantomData).text()?;
            return Ok(name.unwrap_or("a matrix or array"));
        }
        Ok(match self.kind() {
            SEXPTYPE::NILSXP => "NULL",
            LGLSXP => "logical",
            INTSXP => "integer",
            REALSXP => "double",
            STRSXP => "character",
            VECSXP => "list",
            RAWSXP => "raw",
            _ => "another type",
        })
    }

    /// Whether it is a plain vector: without dimensions and without a class, unlike factors.
    pub fn is_plain(self) -> bool {
        // SAFETY: a live object; looking these up neither allocates nor jumps.
        unsafe {
            Rf_isObject(self.0) == Rboolean::FALSE
                && Rf_getAttrib(self.0, R_DimSymbol) == R_NilValue
        }
    }

    pub fn inherits(self, class: &CStr) -> bool {
        // SAFETY: a live object; this does not jump.
        unsafe { Rf_inherits(self.0, class.as_ptr()) != 0 }
    }

    pub fn len(self) -> usize {
        // SAFETY: a live object.
        usize::try_from(unsafe { Rf_xlength(self.0) }).unwrap_or(0)
    }

    /// The data of a vector of one of these types; empty for any other type.
    ///
    /// # Safety
    /// Vectors of these types store a `T` for each element.
    unsafe fn data<T>(self, kinds: &[SEXPTYPE]) -> Result<&'call [T]> {
        if !kinds.contains(&self.kind()) || self.len() == 0 {
            return Ok(&[]);
        }
        // SAFETY: a vector with elements.
        let start = match unsafe { ALTREP(self.0) } {
            0 => unsafe { DATAPTR_RO(self.0) },
            _ => vector_data::data(self.0)?,
        };
        // SAFETY: vectors are contiguous, aligned for their type, and not written to while
        // they are arguments.
        Ok(unsafe { std::slice::from_raw_parts(start.cast(), self.len()) })
    }

    /// The elements of an integer or logical vector; empty for any other type.
    pub fn integers(self) -> Result<&'call [i32]> {
        // SAFETY: both are stored as `int`.
        unsafe { self.data(&[INTSXP, LGLSXP]) }
    }

    pub fn doubles(self) -> Result<&'call [f64]> {
        // SAFETY: stored as `double`.
        unsafe { self.data(&[REALSXP]) }
    }

    pub fn bytes(self) -> Result<&'call [u8]> {
        // SAFETY: stored as bytes.
        unsafe { self.data(&[RAWSXP]) }
    }

    /// The strings of a character vector, as R's string objects: equal strings of one
    /// encoding are the same object.
    pub fn strings(self) -> Result<&'call [SEXP]> {
        // SAFETY: stored as pointers.
        unsafe { self.data(&[STRSXP]) }
    }

    /// The strings that a computed column repeats, see [`vector_data::texts_of()`].
    pub fn repeated_strings(self) -> Result<Option<&'call [SEXP]>> {
        let texts = vector_data::texts_of(self.0);
        texts
            .map(|texts| Sexp(texts, PhantomData).strings())
            .transpose()
    }

    /// The elements of a list; empty for any other type.
    pub fn elements(self) -> Result<&'call [Sexp<'call>]> {
        // SAFETY: stored as pointers, which is the representation of `Sexp`; they live as long as
        // the list.
        unsafe { self.data(&[VECSXP]) }
    }

    /// The names of the elements of a list; empty if it has none.
    pub fn names(self) -> Result<Vec<&'call str>> {
        texts(self.name_strings()?)
    }

    /// The names of the elements as R's string objects, which need not be valid text.
    pub fn name_strings(self) -> Result<&'call [SEXP]> {
        if self.kind() != VECSXP {
            return Ok(&[]);
        }
        // SAFETY: the names of a list are an attribute; looking it up does not allocate.
        let names = unsafe { Rf_getAttrib(self.0, R_NamesSymbol) };
        Sexp(names, PhantomData).strings()
    }

    /// Its explicit classes, without the implicit ones that R derives from its type.
    pub fn classes(self) -> Result<Vec<&'call str>> {
        // SAFETY: a live object; looking up its class does not allocate.
        let classes = unsafe { Rf_getAttrib(self.0, R_ClassSymbol) };
        texts(Sexp(classes, PhantomData).strings()?)
    }

    /// The number of rows of a data frame by its `row.names`, regardless of the length of its
    /// columns.
    pub fn row_names(self) -> Result<usize> {
        let (object, count) = (self.0, Cell::new(0));
        let found = &count;
        // SAFETY: a live object. R allocates a vector for names that are stored in compact form.
        guarded(|| unsafe {
            found.set(Rf_xlength(Rf_getAttrib(object, R_RowNamesSymbol)));
            R_NilValue
        })?;
        Ok(usize::try_from(count.get()).unwrap_or(0))
    }

    /// An attribute, R's `NULL` if there is none.
    pub fn attribute(self, name: &CStr) -> Result<Sexp<'call>> {
        let object = self.0;
        // SAFETY: a live object. R allocates a symbol for a new name.
        let found = guarded(|| unsafe { Rf_getAttrib(object, Rf_install(name.as_ptr())) })?;
        Ok(Sexp(found, PhantomData))
    }

    /// The element of a list with this name.
    pub fn named(self, name: &str) -> Result<Option<Sexp<'call>>> {
        let at = self.names()?.iter().position(|n| *n == name);
        match at {
            Some(at) => Ok(self.elements()?.get(at).copied()),
            None => Ok(None),
        }
    }

    /// The first string of a character vector.
    pub fn text(self) -> Result<Option<&'call str>> {
        match self.strings()?.first() {
            Some(&string) => utf8(string),
            None => Ok(None),
        }
    }

    /// The strings of a character vector, empty for NA.
    pub fn texts(self) -> Result<Vec<&'call str>> {
        texts(self.strings()?)
    }

    /// A copy of the first string of a character vector.
    pub fn owned_text(self) -> Result<Option<String>> {
        self.text()?.map(owned).transpose()
    }

    /// The strings of a character vector as paths, as R would open them.
    pub fn paths(self) -> Result<Vec<&'call Path>> {
        let paths = self.strings()?.iter().map(|&path| path_of(path));
        paths.try_vec_of()
    }

    /// Reads a character vector with a path as R would open it, and the path as shown in messages.
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

    /// The first value of a logical vector, `None` for NA.
    pub fn optional_flag(self) -> Result<Option<bool>> {
        Ok(match self.integers()?.first() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        })
    }
}

/// The texts of string objects, empty for NA.
fn texts<'call>(strings: &[SEXP]) -> Result<Vec<&'call str>> {
    let texts = strings.iter().map(|&name| Ok(utf8(name)?.unwrap_or("")));
    texts.try_vec_of()
}

/// Whether a string object is marked as bytes, and therefore is not text in any encoding.
pub fn is_bytes(string: SEXP) -> bool {
    // SAFETY: a live string object.
    unsafe { Rf_getCharCE(string) == cetype_t::CE_BYTES as c_int }
}

/// The bytes of a string object, in whatever encoding.
pub fn bytes_of<'call>(string: SEXP) -> &'call [u8] {
    // SAFETY: a live string object, whose bytes live until the end of the call.
    unsafe { CStr::from_ptr(R_CHAR(string)) }.to_bytes()
}

/// A string object's text; `None` for NA.
pub fn utf8<'call>(string: SEXP) -> Result<Option<&'call str>> {
    // SAFETY: a live string object, and a constant of R.
    let (is_na, encoding) = unsafe { (string == R_NaString, Rf_getCharCE(string)) };
    if is_na {
        return Ok(None);
    }
    // Bytes are not text in any encoding: R would raise an error when translating them.
    if is_bytes(string) {
        return Err(Error::Unsupported(message!(
            "the string is marked as bytes, not as text"
        )));
    }
    // SAFETY: a C string that lives until the end of the call.
    let stored = unsafe { CStr::from_ptr(R_CHAR(string)) };
    let text = if encoding == cetype_t::CE_UTF8 as c_int || stored.to_bytes().is_ascii() {
        stored
    } else {
        translated(string)?
    };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(Error::Unsupported(message!(
            "\"{}\" is not valid text in its encoding",
            text.to_bytes().escape_ascii()
        ))),
    }
}

/// The string in UTF-8.
fn translated<'call>(string: SEXP) -> Result<&'call CStr> {
    let start = Cell::new(std::ptr::null());
    let found = &start;
    // SAFETY: a live string object; translation may allocate and fail.
    guarded(|| unsafe {
        found.set(Rf_translateCharUTF8(string));
        R_NilValue
    })?;
    // SAFETY: a C string in R's transient memory, which lives until the end of the call.
    Ok(unsafe { CStr::from_ptr(start.get()) })
}

/// A path consists of the bytes of the string, whatever its encoding is.
#[cfg(unix)]
fn path_of<'call>(string: SEXP) -> Result<&'call Path> {
    use std::os::unix::ffi::OsStrExt;
    Ok(Path::new(std::ffi::OsStr::from_bytes(bytes_of(string))))
}

#[cfg(not(unix))]
fn path_of<'call>(string: SEXP) -> Result<&'call Path> {
    Ok(Path::new(utf8(string)?.unwrap_or_default()))
}
