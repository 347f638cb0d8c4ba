//! Lists in memory that may be damaged.

/// Notices that a list leads back to where it was, after at most about three times the number of its elements (Brent:
/// An improved Monte Carlo factorization algorithm, 1980). The counts of a damaged heap can be so large that they alone
/// do not end a list before memory does.
#[derive(Default)]
pub struct Cycle {
    steps: u64,
    /// The last element whose number is a power of two.
    earlier: u64,
}

impl Cycle {
    /// Goes to the next element. Returns whether it was there before; not every time that it is.
    pub fn has(&mut self, address: u64) -> bool {
        let has = self.steps > 0 && address == self.earlier;
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.earlier = address;
        }
        has
    }
}
