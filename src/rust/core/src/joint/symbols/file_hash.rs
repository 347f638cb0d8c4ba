//! The hash of a file that OpenTelemetry defines as its deterministic build id, for files whose
//! linker wrote none, or that were stripped of it:
//! https://opentelemetry.io/docs/specs/otel/profiles/mappings/
//!
//! It is the first half of the SHA-256 digest of the first and the last 4096 bytes of the file,
//! which may overlap, and of its length. A crate for one digest of two pages would be eight crates.

/// The number of bytes that are hashed at each end of a file.
pub const END: u64 = 4096;

/// The hash of a file with this length, by its first and its last bytes.
pub fn file_hash(first: &[u8], last: &[u8], length: u64) -> [u8; 16] {
    let digest = sha256(&[first, last, &length.to_be_bytes()]);
    let mut hash = [0; 16];
    hash.iter_mut()
        .zip(digest.iter().flat_map(|word| word.to_be_bytes()))
        .for_each(|(to, byte)| *to = byte);
    hash
}

/// The fractional parts of the cube roots of the first 64 prime numbers.
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The fractional parts of the square roots of the first eight prime numbers.
const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The SHA-256 digest (FIPS 180-4) of the concatenation of these parts.
fn sha256(parts: &[&[u8]]) -> [u32; 8] {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    // A one bit follows the message, then as many zeros as are needed, then its length in bits.
    let zeros = (64 + 55 - length % 64) % 64;
    let bits = (length as u64 * 8).to_be_bytes();
    let message = parts.iter().flat_map(|part| part.iter().copied());
    let padding = std::iter::once(0x80).chain(std::iter::repeat_n(0, zeros));
    let mut state = START;
    let mut block = [0; 64];
    for (i, byte) in message.chain(padding).chain(bits).enumerate() {
        block[i % 64] = byte;
        if i % 64 == 63 {
            add_block(&mut state, &block);
        }
    }
    state
}

fn add_block(state: &mut [u32; 8], block: &[u8; 64]) {
    let mut words = [0; 64];
    for (i, byte) in block.iter().enumerate() {
        words[i / 4] = (words[i / 4] << 8) | u32::from(*byte);
    }
    for i in 16..64 {
        let (w, v) = (words[i - 15], words[i - 2]);
        let s0 = w.rotate_right(7) ^ w.rotate_right(18) ^ (w >> 3);
        let s1 = v.rotate_right(17) ^ v.rotate_right(19) ^ (v >> 10);
        words[i] = sum([words[i - 16], s0, words[i - 7], s1]);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (round, word) in ROUND.into_iter().zip(words) {
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let first = sum([h, s1, choice, round, word]);
        let second = s0.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
    }
    for (sum, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *sum = sum.wrapping_add(new);
    }
}

fn sum<const N: usize>(words: [u32; N]) -> u32 {
    words.into_iter().fold(0, u32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(parts: &[&[u8]]) -> String {
        let digest = sha256(parts);
        digest.iter().map(|word| format!("{word:08x}")).collect()
    }

    /// The examples of FIPS 180, and lengths around a block, by `sha256sum`.
    #[test]
    fn digests_are_those_of_the_standard() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(&[]), empty);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(&[b"abc"]), abc);
        assert_eq!(digest(&[b"a", b"", b"bc"]), abc);
        let two_blocks = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(digest(&[text]), two_blocks);
        for (length, start) in [
            (55, "9f4390f8d30c2dd9"),
            (56, "b35439a4ac6f0948"),
            (63, "7d3e74a05d7db15b"),
            (64, "ffe054fe7ae0cb6d"),
            (65, "635361c48bb9eab1"),
            (8200, "d8279234ea4354c6"),
        ] {
            let text = "a".repeat(length);
            assert!(digest(&[text.as_bytes()]).starts_with(start), "{length}");
        }
    }
}
