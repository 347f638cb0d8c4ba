//! Protocol buffers: what the formats that are coded so share.
//!
//! pprof and OpenTelemetry write their profiles as messages of numbered fields, with
//! all texts in one table. Here are the fields ([`wire`]), messages as
//! structs ([`rows`]), and what writing needs: equal
//! things once ([`numbers`]), in large pieces ([`output`]).

pub mod numbers;
pub mod output;
pub mod rows;
pub mod wire;
