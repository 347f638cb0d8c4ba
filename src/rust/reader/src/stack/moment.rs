//! A point in time.

use std::time::{Instant, SystemTime};

/// A point in time, by the clock that measures durations and by the one that shows the date.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub time: Instant,
    pub date: SystemTime,
}

impl Moment {
    pub fn now() -> Moment {
        Moment {
            time: Instant::now(),
            date: SystemTime::now(),
        }
    }
}
