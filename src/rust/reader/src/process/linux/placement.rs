//! Controls which processor the thread that reads stacks runs on.
//!
//! If that is the processor of the recorded process, Linux often lets the process continue until it makes a system
//! call, and runs the thread, which has woken, only then. So a program that queried its CPU time now and then seemed
//! to spend a third of its time on that, when it was in fact two percent (`bench/attach`). A thread that requests
//! short time slices gets them sooner, and one that runs on another processor does not interfere at all.

use std::cell::Cell;
use std::mem::{size_of, zeroed};

/// The shortest time slice that the kernel supports, in nanoseconds. It has no effect before Linux 6.12.
const SHORT: u64 = 100_000;

/// The scheduling of a thread, as long as this exists.
pub struct Placement {
    /// The processors that it may use, if they are known.
    allowed: Option<libc::cpu_set_t>,
    /// Those of them on which no recorded process was seen at this tick.
    free: Cell<Option<libc::cpu_set_t>>,
    /// How it was scheduled before.
    before: Option<libc::sched_attr>,
}

impl Placement {
    /// Changes the scheduling of the calling thread, which must also be the one that drops this.
    pub fn current() -> Placement {
        let before = attributes().filter(|found| found.sched_policy == libc::SCHED_OTHER as u32);
        if let Some(before) = before {
            set_attributes(libc::sched_attr {
                sched_runtime: SHORT,
                ..before
            });
        }
        let allowed = allowed();
        Placement {
            allowed,
            free: Cell::new(allowed),
            before,
        }
    }

    /// Begins a tick.
    pub fn begin_tick(&self) {
        self.free.set(self.allowed);
    }

    /// Moves the thread to another processor, if it runs on this one, where a process was seen, and there is another one
    /// without such a process. Returns whether it was moved.
    pub fn leave(&self, processor: usize) -> bool {
        let (Some(allowed), Some(mut free)) = (&self.allowed, self.free.get()) else {
            return false;
        };
        if processor >= libc::CPU_SETSIZE as usize {
            return false;
        }
        // SAFETY: the number of the processor is smaller than the size of the set.
        unsafe { libc::CPU_CLR(processor, &mut free) };
        self.free.set(Some(free));
        // SAFETY: it has no preconditions.
        let current = unsafe { libc::sched_getcpu() };
        // SAFETY: it only reads a set.
        let is_any_free = unsafe { libc::CPU_COUNT(&free) } > 0;
        // The thread may use all processors again, and usually remains on the new one.
        usize::try_from(current) == Ok(processor) && is_any_free && allow(&free) && allow(allowed)
    }
}

impl Drop for Placement {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // The previous time slice is 0 or the usual one.
            set_attributes(before);
        }
    }
}

fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: a set is an array of integers. The kernel writes no more than its size, and fails if there are more
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
    // SAFETY: the attributes are integers. The kernel writes no more than this size.
    unsafe {
        let mut attributes: libc::sched_attr = zeroed();
        let result = libc::syscall(libc::SYS_sched_getattr, 0, &mut attributes, size, 0);
        (result == 0).then_some(attributes)
    }
}

/// Fails if this is not permitted, which does not matter: nothing depends on it.
fn set_attributes(attributes: libc::sched_attr) {
    // SAFETY: the kernel reads as many bytes as the attributes state as their size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_a_processor_if_there_are_others() {
        let placement = Placement::current();
        let allowed = allowed().unwrap();
        // SAFETY: it only reads a set.
        let has_others = unsafe { libc::CPU_COUNT(&allowed) } > 1;
        for processor in 0..libc::CPU_SETSIZE as usize {
            // SAFETY: the number is smaller than the size of the set, and a set is an array of integers.
            let (is_allowed, mut only) =
                unsafe { (libc::CPU_ISSET(processor, &allowed), zeroed()) };
            if is_allowed {
                // SAFETY: see above.
                unsafe { libc::CPU_SET(processor, &mut only) };
                // From here on, the thread runs on this processor.
                assert!(allow(&only));
                placement.begin_tick();
                assert_eq!(placement.leave(processor), has_others);
                assert!(!placement.leave(usize::MAX));
                let now = super::allowed().unwrap();
                // SAFETY: it only reads sets.
                let may_return = unsafe { libc::CPU_EQUAL(&now, &allowed) };
                assert_eq!(may_return, has_others);
            }
        }
    }

    #[test]
    fn a_thread_stays_if_processes_are_everywhere() {
        let placement = Placement::current();
        // SAFETY: it has no preconditions.
        let current = unsafe { libc::sched_getcpu() } as usize;
        let others = (0..libc::CPU_SETSIZE as usize).filter(|&other| other != current);
        for other in others.chain([current]) {
            placement.leave(other);
        }
        // This thread may be anywhere by now.
        // SAFETY: it has no preconditions.
        let current = unsafe { libc::sched_getcpu() } as usize;
        assert!(!placement.leave(current));
    }

    #[test]
    fn a_thread_stays_where_no_process_is() {
        let placement = Placement::current();
        let allowed = allowed().unwrap();
        let other = (0..libc::CPU_SETSIZE as usize)
            // SAFETY: the number is smaller than the size of the set.
            .find(|&processor| !unsafe { libc::CPU_ISSET(processor, &allowed) });
        assert!(!placement.leave(other.unwrap()));
    }

    #[test]
    fn turns_are_as_they_were_afterwards() {
        let runtime = || attributes().map(|attributes| attributes.sched_runtime);
        let before = runtime();
        {
            let _placement = Placement::current();
            // Old kernels report 0.
            assert!(runtime().is_none_or(|runtime| runtime == SHORT || runtime == 0));
        }
        assert_eq!(runtime(), before);
    }
}
