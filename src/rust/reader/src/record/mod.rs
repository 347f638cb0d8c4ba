//! Recordings of running processes: samples at random moments, as a profile.
//!
//! - [`recorder`]: records processes into a profile, in which each process is a [`source`] and has a [`role`];
//! - [`family`]: which processes belong to them; [`changed`]: those that execute another program; [`master`]: one of them
//!   that records itself; [`lookout`]: which there are while one is recorded alone;
//! - [`session`]: takes a sample of a process at each tick; [`stride`]: which ticks are used;
//! - [`stop_and_read`]: keeps a thread where it is while its stack is read; [`samples`]: adds the stack to the profile;
//! - [`waiting`]: what the process waits for meanwhile; [`wait_labels`]: the labels at the end;
//! - [`cpu_clock`]: how much CPU time a sample stands for;
//! - [`follow`]: which thread of a process runs R; [`activity`]: what it does, for lists of processes;
//! - [`slot`]: what a process does for parallel work;
//! - [`threads`]: the CPU time of all threads of a process;
//! - [`memory`]: how much memory processes take, and whether they were killed for it;
//! - [`dump`]: reads one stack of a process; [`own_delay`]: how long this one waited for processors.

pub mod activity;
pub mod changed;
pub mod cpu_clock;
pub mod dump;
pub mod family;
pub mod follow;
pub mod lookout;
pub mod master;
pub mod memory;
pub mod own_delay;
pub mod own_positions;
pub mod recorder;
pub mod role;
pub mod samples;
pub mod session;
pub mod slot;
pub mod source;
pub mod stop_and_read;
mod stride;
pub mod threads;
pub mod wait_labels;
pub mod waiting;
