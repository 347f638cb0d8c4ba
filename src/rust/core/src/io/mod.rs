//! Where bytes come from and where they go: files, and gzip.

pub mod gzip;
pub mod input;
pub mod save;
