//! The current time. Only the main loop reads it, and R's thread for what it asks of the agent. Everything else gets it
//! as an argument, so that tests can choose it.

use crate::system;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment, on three clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// For delays and deadlines. This clock stops while the system is suspended.
    pub instant: Instant,
    /// The time since boot, including the time during which the system was suspended.
    pub boot: Duration,
    /// For users and servers. This clock may be set back.
    pub date: SystemTime,
}

impl Now {
    pub fn read() -> Now {
        Now {
            instant: Instant::now(),
            boot: system::boot_time(),
            date: SystemTime::now(),
        }
    }

    /// Seconds since 1970, if the clock is set to a later date.
    pub fn unix(&self) -> Option<f64> {
        let since = self.date.duration_since(UNIX_EPOCH).ok()?;
        Some(since.as_secs_f64())
    }
}
