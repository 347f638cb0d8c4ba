//! OTLP profiles: an independent code of the messages, the rules of the specification, and
//! messages that are allowed but odd.

pub mod otlp {
    mod attributes;
    pub mod bombs;
    mod broken;
    pub mod check;
    mod codes;
    pub mod content;
    pub mod damaged;
    pub mod json;
    mod meaning;
    pub mod message;
    pub mod nodes;
    pub mod odd;
    mod odd_json;
    pub mod references;
    mod roundtrip;
    mod rows;
    pub mod same;
    mod stop;
    pub mod whole;
    pub mod wire;
}
