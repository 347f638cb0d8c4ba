//! Protocol buffers: code that the formats that use them share.
//!
//! pprof and OpenTelemetry store a profile as a message of numbered fields, with all strings
//! in one table. [`decode`] reads fields and [`encode`] writes them, [`messages`] declares
//! small messages as structs. For writing, [`tables`] stores each distinct entry of a table
//! once, and [`output`] buffers the fields.

pub mod decode;
pub mod encode;
pub mod messages;
pub mod output;
pub mod tables;
