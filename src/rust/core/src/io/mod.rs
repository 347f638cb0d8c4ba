//! Reads and writes files, compressed with gzip or not, and reads source files that a profile names.

pub mod gzip;
pub mod input;
pub mod observed;
pub mod pieces;
pub mod save;
pub mod source_file;
