//! Protocol buffers: what the formats that are coded so share.
//!
//! pprof and OpenTelemetry write their profiles as messages of numbered fields, with
//! all texts in one table. Here are the fields ([`wire`]), reading a whole message
//! ([`load`]) and its texts ([`texts`]), and what writing needs: equal things once
//! ([`numbers`]), in large pieces ([`output`]).

pub mod load;
pub mod numbers;
pub mod output;
pub mod texts;
pub mod wire;
