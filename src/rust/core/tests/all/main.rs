//! Tests of the core as other crates see it. They are one program, since linking a program for each file would take
//! longer than running the tests. Only `threads.rs` is separate.

mod combine;
mod common;
mod joint;
mod known_types;
mod memory_tables;
mod otlp;
mod pprof;
mod rprof;
mod schema;
#[cfg(target_os = "linux")]
mod symbols;
