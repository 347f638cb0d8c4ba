//! References that lead to no object: they are damaged, or R was just making or removing the object.

use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

/// The most references of a snapshot that are kept.
const MOST: usize = 10_000;

/// A reference: the address of the object that has it, its number, and where it leads.
pub type Reference = (u64, u32, u64);

#[derive(Debug, Default)]
pub struct Wrong {
    /// All of them.
    pub count: u64,
    /// The first ones. They are in ascending order once [`Wrong::sort()`] was called.
    first: Vec<Reference>,
}

impl Wrong {
    pub fn add(&mut self, reference: Reference) -> Result<()> {
        self.count += 1;
        if self.first.len() < MOST {
            self.first.try_push(reference)?;
        }
        Ok(())
    }

    pub fn sort(&mut self) {
        self.first.sort_unstable();
    }

    /// Whether all of them are among those of an earlier snapshot. Both must be sorted.
    pub fn are_in(&self, earlier: &Wrong) -> bool {
        // Beyond those that are kept, only the numbers can be compared.
        let are_known = self.count == self.first.len() as u64 || self.count == earlier.count;
        let is_in = |reference| earlier.first.binary_search(reference).is_ok();
        are_known && self.first.iter().all(is_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(references: impl IntoIterator<Item = Reference>) -> Wrong {
        let mut wrong = Wrong::default();
        for reference in references {
            wrong.add(reference).unwrap();
        }
        wrong.sort();
        wrong
    }

    #[test]
    fn references_are_compared_with_their_holders() {
        let earlier = wrong([(3, 0, 30), (1, 1, 10), (2, 5, 20)]);
        for same in [&[][..], &[(1, 1, 10)], &[(2, 5, 20), (1, 1, 10)]] {
            assert!(wrong(same.iter().copied()).are_in(&earlier));
        }
        for other in [(1, 1, 11), (4, 1, 10), (1, 2, 10)] {
            assert!(!wrong([(1, 1, 10), other]).are_in(&earlier), "{other:?}");
        }
    }

    #[test]
    fn of_very_many_the_numbers_are_compared() {
        let many = |count: u64| wrong((0..count).map(|number| (number, 1, 1)));
        let most = MOST as u64;
        let earlier = many(most + 2);
        assert_eq!((earlier.count, earlier.first.len()), (most + 2, MOST));
        assert!(many(most + 2).are_in(&earlier));
        assert!(!many(most + 1).are_in(&earlier));
        assert!(many(most - 1).are_in(&earlier));
    }
}
