//! Whether a thread computes at a tick, so that the tick counts for its CPU time.
//!
//! The state that the system reports is not enough: a thread that has just been woken is `running` as well, although it
//! still stands in the call that waited, and may wait for a processor for longer than it then computes. On a busy
//! machine, `Sys.sleep()` would have a third of the CPU time. A thread that lost its processor while it computed is
//! `running`, too, and counts. What tells them apart is where the thread is: in a system call that waits or elsewhere.
//! A thread that is on a processor uses it, whatever it does.
//!
//! Other rules were tried with `bench/live-shares`, with four times as many busy processes as processors: if a thread that
//! lost its processor in a system call that works did not count, shares were off by up to 23 points, since the kernel
//! takes processors away mostly at the end of system calls. If only threads on a processor counted, they were off by up to
//! 10 points. By this rule, they are off by up to 9.

/// The system call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemCall {
    /// It is not in a system call.
    None,
    /// In one that works, such as one that returns memory to the system.
    Works,
    /// In one that waits for time, another process or data.
    Waits,
    /// This is not known, because the thread was not held.
    Unknown,
}

/// What is known about a thread whose state is `running`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    pub call: SystemCall,
    /// Whether it was on a processor at the tick, if that is known.
    pub on_processor: Option<bool>,
}

impl Evidence {
    pub fn computes(self) -> bool {
        match (self.call, self.on_processor) {
            (SystemCall::None | SystemCall::Works, _) | (_, Some(true)) => true,
            (SystemCall::Waits, _) => false,
            // It may have lost its processor while it computed, or it may still have to wake up. Nothing is recorded of
            // it, which affects all code alike.
            (SystemCall::Unknown, Some(false)) => false,
            (SystemCall::Unknown, None) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_computes_unless_it_stands_in_a_call_that_waits() {
        let computes = |call| {
            [None, Some(false), Some(true)]
                .map(|on_processor| Evidence { call, on_processor }.computes())
        };
        // Its processor is unknown; it has none; it has one.
        assert_eq!(computes(SystemCall::None), [true, true, true]);
        assert_eq!(computes(SystemCall::Works), [true, true, true]);
        assert_eq!(computes(SystemCall::Waits), [false, false, true]);
        assert_eq!(computes(SystemCall::Unknown), [true, false, true]);
    }
}
