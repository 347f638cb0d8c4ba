//! OTLP profiles: an independent code of the messages, the rules of the specification, and
//! messages that are allowed but odd.

mod otlp {
    mod attributes;
    mod broken;
    pub mod check;
    mod codes;
    pub mod content;
    pub mod json;
    mod meaning;
    pub mod message;
    pub mod odd;
    mod references;
    mod roundtrip;
    mod rows;
    pub mod same;
    pub mod whole;
    pub mod wire;
}
