//! On which processor the thread runs that reads stacks.
//!
//! If that is the processor of the process, Linux often lets the process go on until it makes a system call, and only
//! then runs the thread that has woken. So a program that asks for its CPU time now and then seemed to spend a third
//! of its time with that, in fact two percent (`bench/attach`). A thread that wants short turns gets them sooner, and
//! one that runs on another processor does not disturb at all.

use std::mem::{size_of, zeroed};

/// The shortest turn that the kernel knows, in nanoseconds. Before Linux 6.12 it has no effect.
const SHORT: u64 = 100_000;

/// How a thread is scheduled while this exists.
pub struct Placement {
    /// The processors that it may use, if they are known.
    allowed: Option<libc::cpu_set_t>,
    /// How it was scheduled before.
    before: Option<libc::sched_attr>,
}

impl Placement {
    /// For the calling thread, which must also be the one that drops it.
    pub fn of_this_thread() -> Placement {
        let before = attributes().filter(|found| found.sched_policy == libc::SCHED_OTHER as u32);
        if let Some(before) = before {
            set_attributes(libc::sched_attr {
                sched_runtime: SHORT,
                ..before
            });
        }
        Placement {
            allowed: allowed(),
            before,
        }
    }

    /// Leaves this processor, if the thread is there and there is another one. Returns whether it has left.
    pub fn leave(&self, processor: usize) -> bool {
        let Some(allowed) = &self.allowed else {
            return false;
        };
        // SAFETY: it has no preconditions.
        let current = unsafe { libc::sched_getcpu() };
        if usize::try_from(current) != Ok(processor) || processor >= libc::CPU_SETSIZE as usize {
            return false;
        }
        let mut others = *allowed;
        // SAFETY: the number of the processor is smaller than the size of the set.
        unsafe { libc::CPU_CLR(processor, &mut others) };
        // SAFETY: it reads a set only.
        let has_others = unsafe { libc::CPU_COUNT(&others) } > 0;
        // It may use all again, and usually remains where it is.
        has_others && allow(&others) && allow(allowed)
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // What other threads had before is 0 or the usual turn.
            set_attributes(before);
        }
    }
}

fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: a set is an array of integers. The kernel writes no more than its size, and fails if it has more
    // processors.
    unsafe {
        let mut set = zeroed();
        let result = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (result == 0).then_some(set)
    }
}

fn allow(processors: &libc::cpu_set_t) -> bool {
    // SAFETY: the kernel reads a set of this size.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), processors) == 0 }
}

fn attributes() -> Option<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: they are integers. The kernel writes no more than this size.
    unsafe {
        let mut attributes: libc::sched_attr = zeroed();
        let result = libc::syscall(libc::SYS_sched_getattr, 0, &mut attributes, size, 0);
        (result == 0).then_some(attributes)
    }
}

/// It may be forbidden, and nothing depends on it.
fn set_attributes(attributes: libc::sched_attr) {
    // SAFETY: the kernel reads as many bytes as the attributes say that they have.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_if_there_are_others() {
        let placement = Placement::of_this_thread();
        // SAFETY: a set is an array of integers.
        let allowed = allowed().unwrap_or_else(|| unsafe { zeroed() });
        // SAFETY: it reads a set only.
        let has_others = unsafe { libc::CPU_COUNT(&allowed) } > 1;
        for _ in 0..100 {
            // SAFETY: it has no preconditions.
            let processor = unsafe { libc::sched_getcpu() } as usize;
            let has_left = placement.leave(processor);
            // It may have been moved before.
            if !has_others {
                assert!(!has_left);
            } else if has_left {
                return;
            }
        }
        assert!(!has_others);
        assert!(!placement.leave(usize::MAX));
    }

    #[test]
    fn turns_are_as_they_were_afterwards() {
        let runtime = || attributes().map(|attributes| attributes.sched_runtime);
        let before = runtime();
        {
            let _placement = Placement::of_this_thread();
            // Old kernels say 0.
            assert!(runtime().is_none_or(|runtime| runtime == SHORT || runtime == 0));
        }
        assert_eq!(runtime(), before);
    }
}
