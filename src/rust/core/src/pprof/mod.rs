//! pprof: the profiles of Go's `pprof` and of what it inspired, one protocol
//! buffer message (`profile.proto`), most often gzip'd.
//!
//! Reading gives the samples as they are stored, one for each `Sample`. Not
//! read are mappings, addresses, columns, `is_folded`, `drop_frames`,
//! `keep_frames` and `doc_url`.
//!
//! Writing aims at what makes a profile useful in `pprof`, see [`write()`].

mod about;
mod columns;
mod ids;
mod labels;
mod load;
mod numbers;
mod outline;
mod output;
mod proto;
mod read;
mod restore;
mod samples;
mod sources;
mod symbols;
mod tables;
mod texts;
mod wire;
mod write;

pub use read::{read, read_path};
pub use write::{Report, WriteOptions, write, write_path};
