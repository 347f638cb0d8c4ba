//! Symbolization of libraries that are compiled by the tests, compared with the results of binutils.

pub mod build;
mod damage;
mod debug;
mod places;
mod stubs;
mod tables;
