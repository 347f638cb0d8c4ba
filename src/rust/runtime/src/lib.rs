//! How R stores its calls and objects. This is not part of R's API, so code that uses it checks what it reads: the
//! sampler reads R's calls in a signal handler, the reader reads them from another process.
//!
//! Everything here is for 64-bit systems. The layouts are from `Defn.h` and `Rinternals.h` in R's source code, and were
//! compared with R 4.2.2, 4.5.0 and 4.6.2.

#![forbid(unsafe_code)]

pub mod contexts;
pub mod heap;
pub mod objects;
