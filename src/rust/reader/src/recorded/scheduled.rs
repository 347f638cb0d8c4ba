//! How a thread was scheduled, from `/proc/PID/task/TID/schedstat`: how long it computed, how long it waited for a
//! processor, and whether it has run at all between two ticks.
//!
//! The kernel counts a wait for a processor when it ends, so that the time of one wait is credited at the tick after its
//! end, even if it began some ticks before. The time in which a cgroup was throttled is a part of it.

/// One reading. That of a new process is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// The time on a processor, in nanoseconds. The kernel updates it only at its own ticks while the thread runs.
    pub computed: u64,
    /// The time in which it waited for a processor, in nanoseconds.
    pub delayed: u64,
    /// The number of time slices. As long as it is the same, the thread has not been woken, or waits for a processor, or is
    /// on one without interruption.
    pub slices: u64,
}

/// What a thread has done since the last tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Since {
    /// The time that it computed, in nanoseconds.
    pub computed: u64,
    /// The time for which it waited for a processor, in nanoseconds, in waits that have ended since.
    pub delayed: u64,
    /// Whether it was given a processor. If it slept at both ticks and was not, it is in the same wait.
    pub was_scheduled: bool,
}

/// The readings of a thread.
#[derive(Debug, Default)]
pub struct Schedule {
    last: Option<Scheduled>,
    delayed: Option<u64>,
}

impl Scheduled {
    /// `None` if the kernel does not count: then, all numbers are 0.
    pub fn parse(bytes: &[u8]) -> Option<Scheduled> {
        let mut fields = std::str::from_utf8(bytes).ok()?.split_ascii_whitespace();
        let mut number = || fields.next()?.parse().ok();
        let scheduled = Scheduled {
            computed: number()?,
            delayed: number()?,
            slices: number()?,
        };
        (scheduled.slices > 0).then_some(scheduled)
    }
}

impl Schedule {
    /// Takes the reading of a tick; `None` at the first one, and if it is not known.
    pub fn read(&mut self, now: Option<Scheduled>) -> Option<Since> {
        let last = std::mem::replace(&mut self.last, now);
        let (last, now) = (last?, now?);
        let since = Since {
            computed: now.computed.saturating_sub(last.computed),
            delayed: now.delayed.saturating_sub(last.delayed),
            was_scheduled: now.slices != last.slices,
        };
        self.delayed = Some(self.delayed.unwrap_or(0).saturating_add(since.delayed));
        Some(since)
    }

    /// Takes a reading. What has happened since the last one is unknown, or was done by another thread.
    pub fn skip(&mut self, now: Option<Scheduled>) {
        self.last = now;
    }

    /// The time for which it waited for a processor since this was last asked, in nanoseconds; `None` if it is not known.
    pub fn take_delayed(&mut self) -> Option<u64> {
        self.delayed.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_read() {
        let parsed = |text: &str| Scheduled::parse(text.as_bytes());
        let expected = Scheduled {
            computed: 1_234_567_890_123,
            delayed: 56_184,
            slices: 7,
        };
        assert_eq!(parsed("1234567890123 56184 7\n"), Some(expected));
        assert_eq!(parsed("1234567890123 56184 7 8"), Some(expected));
        for text in [
            "0 0 0\n",
            "",
            "1 2",
            "1 2 x",
            "-1 2 3",
            "99999999999999999999 1 1",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(Scheduled::parse(b"\xff 1 2"), None);
    }

    #[test]
    fn two_ticks_show_what_was_done_between_them() {
        let mut schedule = Schedule::default();
        let mut read = |text: &str| schedule.read(Scheduled::parse(text.as_bytes()));
        let since = |computed, delayed, was_scheduled| {
            Some(Since {
                computed,
                delayed,
                was_scheduled,
            })
        };
        assert_eq!(read("100 5 1"), None);
        assert_eq!(read("100 5 1"), since(0, 0, false));
        assert_eq!(read("130 5 1"), since(30, 0, false));
        assert_eq!(read("130 80 2"), since(0, 75, true));
        assert_eq!(read("131 80 3"), since(1, 0, true));
        // Another thread, or a kernel that was set back.
        assert_eq!(read("1 1 1"), since(0, 0, true));
        assert_eq!(read(""), None);
        assert_eq!(read("200 90 9"), None);
        assert_eq!(read("200 91 10"), since(0, 1, true));
        schedule.skip(Scheduled::parse(b"300 1000 20"));
        assert_eq!(
            schedule.read(Scheduled::parse(b"300 1003 21")),
            since(0, 3, true)
        );
        assert_eq!(schedule.take_delayed(), Some(75 + 1 + 3));
        assert_eq!(schedule.take_delayed(), None);
    }
}
