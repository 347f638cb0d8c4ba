//! After which delay something is tried again that failed, and random numbers.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

/// The longest delay before it is randomised.
const LONGEST: Duration = Duration::from_secs(30);

/// The delay after this number of attempts. It doubles each time. `chance`, from 0 to 1, makes it up to half shorter
/// or longer, so that not all clients retry at the same time.
pub fn delay(attempts: u32, first: Duration, chance: f64) -> Duration {
    let doubled = first.as_secs_f64() * 2_f64.powf(f64::from(attempts) - 1.0);
    let delay = doubled.min(LONGEST.as_secs_f64()) * (0.5 + chance);
    Duration::try_from_secs_f64(delay).unwrap_or(LONGEST)
}

/// A random number from 0 to 1. R's generator is not used, since that would change the random numbers of the user.
pub fn chance() -> f64 {
    let random = RandomState::new().hash_one(SystemTime::now());
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_doubled_up_to_a_bound() {
        let first = Duration::from_secs(1);
        let seconds = |attempts, chance| delay(attempts, first, chance).as_secs_f64();
        assert_eq!(seconds(1, 0.5), 1.0);
        assert_eq!(seconds(3, 0.5), 4.0);
        assert_eq!(seconds(3, 0.0), 2.0);
        assert_eq!(seconds(5, 1.0), 24.0);
        assert_eq!(seconds(u32::MAX, 1.0), 45.0);
        assert!((0..100).all(|_| (0.0..1.0).contains(&chance())));
        assert_ne!(chance(), chance());
    }
}
