//! What a recording of processes is asked for, and what it returns: the same on all systems.
//!
//! - [`settings`]: which processes to record, and how; [`ticks`]: when samples are due; [`states`]: of threads;
//!   [`scheduled`]: how long they computed, and waited for a processor;
//! - [`source`]: describes a process in a profile; [`memory`]: its memory, and how it ended; [`result`]: what was
//!   recorded; [`threads`]: the CPU time of other threads; [`waits`]: what a thread waits for; [`dump`]: one stack of a process, also of one that has left a core file.

pub mod dump;
pub mod memory;
pub mod result;
pub mod scheduled;
pub mod settings;
pub mod source;
pub mod states;
pub mod threads;
pub mod ticks;
pub mod waits;
