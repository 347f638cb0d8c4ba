//! Tests with heaps that are laid out as R does it, see [`fake`].

mod attempts;
mod cases;
mod cells;
mod copies;
mod counting;
mod damage;
mod fake;
mod known;
mod layout;
mod layouts;
mod listed;
mod paths;
mod random;
mod rows;
mod scripted;
mod shared;
mod space;
mod whole;

pub use fake::FakeHeap;
pub use random::Random;
