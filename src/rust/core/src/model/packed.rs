//! Packed stacks: lists of varints, as pprof files contain them. Each varint is the number of a
//! location, counted from 1, in one to three bytes of seven bits, lowest bits first. The highest
//! bit of a byte is set if the number continues.
//!
//! A packed stack takes less than half of the memory of decoded locations, and a reader copies
//! it instead of decoding it. [`are_valid()`] checks lists once; the other functions rely on
//! this check.

use super::locations::LocationId;
use crate::error::Result;
use crate::limits::memory::TryGrow;

/// The greatest number in three bytes.
const LARGEST: usize = (1 << 21) - 1;
/// The highest bit of each byte.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// Whether bytes are complete numbers from 1 to `locations`, in their shortest forms.
///
/// The numbers are not decoded. Instead, each byte is checked together with the three bytes
/// before it, without branches, so that the compiler can check 16 bytes at once. 30 million
/// numbers are checked in 0.014 s; decoding them takes 0.10 s.
pub fn are_valid(bytes: &[u8], locations: usize) -> bool {
    let most = locations.min(LARGEST);
    let digits = [most >> 14, most >> 7 & 0x7f, most & 0x7f].map(|digit| digit as i8);
    let wrong = |bytes: &[u8]| {
        let windows = bytes.windows(4);
        windows.fold(0, |wrong, four| {
            wrong | is_wrong([four[0], four[1], four[2], four[3]], digits)
        })
    };
    // The first bytes are checked as if complete numbers preceded them.
    let mut start = [1; 6];
    let first = bytes.len().min(3);
    start[3..3 + first].copy_from_slice(&bytes[..first]);
    let ends = bytes.last().is_none_or(|&byte| byte < 0x80);
    ends && wrong(&start[..3 + first]) | wrong(bytes) == 0
}

/// Returns 0 if the last of four bytes is valid. It is wrong in these cases: it ends a number that
/// is 0, greater than `most` (three digits of seven bits), or longer than necessary; or it is the
/// fourth byte of a number.
#[inline(always)]
fn is_wrong([third, second, first, byte]: [u8; 4], most: [i8; 3]) -> u8 {
    // All bits are set if the condition holds, otherwise none.
    let mask = |is: bool| u8::from(is).wrapping_neg();
    let two = mask(first >= 0x80);
    let three = two & mask(second >= 0x80);
    let four = three & mask(third >= 0x80);
    let high = (byte & three) as i8;
    let middle = (first & 0x7f & three | byte & two & !three) as i8;
    let low = (second & 0x7f & three | first & 0x7f & two & !three | byte & !two) as i8;
    let [most_high, most_middle, most_low] = most;
    let low_greater = mask(low > most_low) & mask(middle == most_middle);
    let greater = mask(high > most_high)
        | mask(high == most_high) & (mask(middle > most_middle) | low_greater);
    greater & mask(byte < 0x80) | mask(byte == 0) | four
}

/// The number of locations in a list.
#[inline]
pub fn count(list: &[u8]) -> usize {
    // Sums of at most 255 fit in a byte, so the compiler can compute 16 at once.
    let ends = |part: &[u8]| part.iter().map(|&byte| u8::from(byte < 0x80)).sum::<u8>();
    list.chunks(255).map(|part| usize::from(ends(part))).sum()
}

/// An iterator over the locations of a list.
pub fn iter(list: &[u8]) -> impl Iterator<Item = LocationId> {
    list.split_inclusive(|&byte| byte < 0x80).map(|digits| {
        let digits = digits.iter().rev();
        let number = digits.fold(0, |number, &byte| number << 7 | u32::from(byte & 0x7f));
        LocationId(number.wrapping_sub(1))
    })
}

/// Appends all locations.
#[expect(clippy::disallowed_methods, reason = "there is room for all")]
pub fn append(list: &[u8], out: &mut Vec<LocationId>) -> Result<()> {
    out.try_reserve(list.len())?;
    decode(list, |two| out.extend_from_slice(two));
    Ok(())
}

/// Writes the rows of all locations to `out`, which has room for them.
pub fn fill(list: &[u8], out: &mut [u32]) {
    let mut slots = out.iter_mut();
    decode(list, |two| {
        for (location, slot) in two.iter().zip(&mut slots) {
            *slot = location.0;
        }
    });
}

/// Passes all locations to `put`, one or two at a time. A step decodes two numbers without
/// branches that depend on their lengths, which a processor could not predict: 30 million numbers
/// take 0.10 instead of 0.13 s.
#[inline(always)]
fn decode(list: &[u8], mut put: impl FnMut(&[LocationId])) {
    let mut rest = list;
    while let Some(word) = rest.first_chunk() {
        let word = u64::from_le_bytes(*word);
        let lasts = !word & HIGHEST;
        let one = lasts.trailing_zeros() + 1;
        let other = (lasts >> one).trailing_zeros() + 1;
        put(&[location(word, one), location(word >> one, other)]);
        rest = rest.get((one + other) as usize / 8..).unwrap_or_default();
    }
    iter(rest).for_each(|location| put(&[location]));
}

/// Writes the numbers of other locations to `out`: `codes` has the [`code()`] for each row. Returns
/// the size of the new list. `out` grows if it is too short.
pub fn renumber(list: &[u8], codes: &[u32], out: &mut Vec<u8>) -> Result<usize> {
    // Each number may take three bytes, and a code four.
    let most = 3 * list.len() + 4;
    if out.len() < most {
        out.try_fill(most, 0)?;
    }
    let mut size = 0;
    decode(list, |two| {
        for location in two {
            let code = codes.get(location.row()).copied().unwrap_or(0);
            if let Some(slot) = out.get_mut(size..size + 4) {
                slot.copy_from_slice(&code.to_le_bytes());
            }
            size += (code >> 24) as usize;
        }
    });
    Ok(size)
}

/// The number of a location as in a list, in the lowest three bytes, and its length in the fourth;
/// `None` if it does not fit.
pub fn code(location: LocationId) -> Option<u32> {
    let number = location.row() + 1;
    let digits = [number & 0x7f, number >> 7 & 0x7f, number >> 14];
    let code = match number {
        0..0x80 => 1 << 24 | digits[0],
        0x80..0x4000 => 2 << 24 | digits[1] << 8 | digits[0] | 0x80,
        0x4000..=LARGEST => 3 << 24 | digits[2] << 16 | digits[1] << 8 | digits[0] | 0x8080,
        _ => return None,
    };
    Some(code as u32)
}

/// The location whose number is encoded in the lowest `bits` of a word, at most 24.
#[inline(always)]
fn location(word: u64, bits: u32) -> LocationId {
    let own = word & ((1 << bits) - 1);
    let number = own & 0x7f | (own >> 1) & 0x3f80 | (own >> 2) & 0x1f_c000;
    LocationId((number as u32).wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::encode::put_varint;

    const NUMBERS: [u64; 12] = [
        1, 2, 127, 128, 129, 300, 16_383, 16_384, 16_385, 40_000, 2_097_150, 2_097_151,
    ];

    fn encoded(numbers: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&n| put_varint(&mut bytes, n));
        bytes
    }

    #[test]
    fn numbers_come_back() {
        for start in 0..NUMBERS.len() {
            for length in 0..40 {
                let all = NUMBERS.iter().cycle().skip(start).copied();
                let numbers: Vec<u64> = all.take(length).collect();
                let bytes = encoded(&numbers);
                let mut rows = Vec::new();
                append(&bytes, &mut rows).unwrap();
                let expected = numbers.iter().map(|&n| LocationId(n as u32 - 1));
                assert_eq!(rows, expected.collect::<Vec<_>>());
                assert_eq!(count(&bytes), length);
                assert!(iter(&bytes).eq(rows.iter().copied()));
                let mut slots = vec![7; length + 1];
                fill(&bytes, &mut slots);
                assert!(
                    rows.iter()
                        .map(|row| row.0)
                        .eq(slots[..length].iter().copied())
                );
                assert_eq!(slots[length], 7);
                assert!(are_valid(&bytes, LARGEST) && are_valid(&bytes, usize::MAX));
            }
        }
        assert_eq!(count(&[1; 1000]), 1000);
    }

    #[test]
    fn numbers_are_replaced() {
        let rows = NUMBERS.map(|n| LocationId(n as u32 - 1));
        let codes: Vec<u32> = rows.map(|row| code(row).unwrap()).to_vec();
        assert_eq!(code(LocationId(LARGEST as u32)), None);
        let mut space = Vec::new();
        for length in 0..40 {
            let old: Vec<usize> = (0..NUMBERS.len()).rev().cycle().take(length).collect();
            let list = encoded(&old.iter().map(|&row| row as u64 + 1).collect::<Vec<_>>());
            let new = encoded(&old.iter().map(|&row| NUMBERS[row]).collect::<Vec<_>>());
            let size = renumber(&list, &codes, &mut space).unwrap();
            assert_eq!(space[..size], new);
        }
    }

    #[test]
    fn the_greatest_number_is_known_exactly() {
        // At each position in a list.
        for padding in 0..40 {
            for number in NUMBERS {
                let numbers = [&vec![1; padding][..], &[number, 1]].concat();
                let bytes = encoded(&numbers);
                for most in NUMBERS {
                    let is_valid = are_valid(&bytes, most as usize);
                    assert_eq!(is_valid, number <= most, "{number} {most}");
                }
            }
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let zero_or_long: [&[u8]; 5] = [
            &[0],
            &[0x80, 0],
            &[0x81, 0],
            &[0x81, 0x80, 0],
            &[0x81, 0x80, 0x80, 1],
        ];
        for padding in 0..40 {
            for wrong in zero_or_long {
                let bytes = [&vec![1; padding][..], wrong, &[1]].concat();
                assert!(!are_valid(&bytes, usize::MAX), "{bytes:?}");
            }
            // An incomplete number.
            assert!(!are_valid(&[&vec![1; padding][..], &[0x81]].concat(), 500));
        }
    }
}
