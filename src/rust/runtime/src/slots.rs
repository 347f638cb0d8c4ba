//! The slots of pages of R's heap: which object is at an address, and where an object is. This is asked for each reference
//! between objects.

/// The slots of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slots {
    pub size: u32,
    pub count: u32,
    /// The bytes that a vector has for data.
    pub data: u64,
    by_size: u64,
    by_count: u64,
}

impl Slots {
    pub(crate) const fn new(size: usize, count: usize, data: usize) -> Slots {
        Slots {
            size: size as u32,
            count: count as u32,
            data: data as u64,
            by_size: inverse(size as u64),
            by_count: inverse(count as u64),
        }
    }

    /// The slot at an offset from the first one; `None` if no slot starts there.
    #[inline]
    pub fn at(&self, offset: u32) -> Option<u32> {
        let slot = divided(offset, self.by_size);
        (slot * self.size == offset && slot < self.count).then_some(slot)
    }

    /// The page and the slot of an object, given its number among those in pages of its class.
    #[inline]
    pub fn page_and_slot(&self, number: u32) -> (u32, u32) {
        let page = divided(number, self.by_count);
        (page, number - page * self.count)
    }
}

/// What a number is multiplied with to divide it by another one, which is at least 2. A division takes much longer.
const fn inverse(divisor: u64) -> u64 {
    u64::MAX / divisor + 1
}

/// A number divided by the number with this inverse (Granlund and Montgomery: Division by Invariant Integers using
/// Multiplication, 1994).
#[inline]
fn divided(number: u32, inverse: u64) -> u32 {
    ((u128::from(number) * u128::from(inverse)) >> 64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_divided_by_their_inverse() {
        for divisor in 2..200 {
            for number in [
                0,
                1,
                divisor - 1,
                divisor,
                7 * divisor - 1,
                u32::MAX - 1,
                u32::MAX,
            ] {
                let divided = divided(number, inverse(divisor.into()));
                assert_eq!(divided, number / divisor, "{number} / {divisor}");
            }
        }
    }
}
