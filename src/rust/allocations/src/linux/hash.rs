//! Numbers by which stacks are recognised.

/// A number that depends on all words that were added, and on their order.
#[derive(Debug, Default)]
pub struct Hash(u64);

impl Hash {
    #[inline]
    pub fn add(&mut self, word: u64) {
        // The upper and the lower half of a product depend on all bits of its factors.
        let factors = (
            self.0 ^ word,
            0x9e37_79b9_7f4a_7c15 ^ self.0.rotate_left(32),
        );
        let product = u128::from(factors.0) * u128::from(factors.1);
        self.0 = (product as u64) ^ ((product >> 64) as u64).wrapping_add(word);
    }

    pub fn number(&self) -> u64 {
        self.0
    }
}

/// A number of 128 bits for these bytes.
pub fn of_bytes(bytes: &[u8]) -> u128 {
    let [mut first, mut second] = [Hash::default(), Hash(!0)];
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        first.add(word);
        second.add(word.rotate_left(29));
    }
    first.add(bytes.len() as u64);
    second.add(bytes.len() as u64);
    u128::from(first.number()) << 64 | u128::from(second.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_differ_have_other_numbers() {
        let texts = [
            "",
            "\0",
            "a",
            "a\0",
            "abcdefgh",
            "abcdefgh\0",
            "abcdefgi",
            "bacdefgh",
        ];
        let numbers: std::collections::HashSet<u128> =
            texts.iter().map(|text| of_bytes(text.as_bytes())).collect();
        assert_eq!(numbers.len(), texts.len());
    }
}
