//! Reads and writes files, compressed with gzip or not.

pub mod gzip;
pub mod input;
pub mod pieces;
pub mod save;
