use super::*;
use profile_runtime::memory::Piece;
use std::cell::RefCell;

/// Variables that a test changes while they are searched.
struct Variables<'w>(&'w RefCell<Vec<u64>>);

const START: u64 = 0x1000;

impl Memory for Variables<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        let words = self.0.borrow();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let start = address.wrapping_sub(START) as usize;
        let part = bytes.get(start..start + into.len());
        part.map(|part| into.copy_from_slice(part)).is_some()
    }

    fn read_pieces(&mut self, _: &[Piece], _: &mut [u8]) -> usize {
        0
    }
}

/// The addresses of words.
fn range(words: Range<u64>) -> Range<u64> {
    START + 8 * words.start..START + 8 * words.end
}

fn allocated(round: u32) -> Allocated {
    let round = u64::from(round);
    Allocated {
        objects: 7 + round,
        large: 1000 + 10 * round,
        small: 20 + 3 * round,
    }
}

/// Finds the counts among ten words; `change` is what each round does to them.
fn find(change: impl Fn(u32, &mut Vec<u64>)) -> Option<Counts> {
    let words = RefCell::new((100..110).collect::<Vec<u64>>());
    let parts = [range(0..4), range(4..10)];
    let found = Counts::find(&mut Variables(&words), &parts, |round| {
        change(round, &mut words.borrow_mut());
        Ok(allocated(round))
    });
    found.unwrap()
}

/// As R does it: word 2 counts objects, word 5 large data, and word 8 small data.
fn count(round: u32, words: &mut [u64]) {
    let new = allocated(round);
    words[2] += new.objects;
    words[5] += new.large;
    words[8] += new.small;
}

#[test]
fn counts_are_what_grows_by_what_is_allocated() {
    let found = find(|round, words| {
        count(round, words);
        // Others grow in one round, or in each one, but not by this.
        words[0] += 1;
        words[9] += if round == 1 { 8 } else { 5 };
    });
    let counts = found.unwrap();
    assert_eq!(
        [counts.objects, counts.large, counts.small],
        [START + 16, START + 40, START + 64]
    );
    let words = RefCell::new(vec![0, 0, 3, 0, 0, 500, 0, 0, 25, 0]);
    let in_use = counts.read(&mut Variables(&words));
    let expected = InUse {
        objects: 3,
        large: 8 * 500,
        small: 8 * 25,
    };
    assert_eq!(in_use, Some(expected));
    assert_eq!(counts.read(&mut Variables(&RefCell::default())), None);
}

#[test]
fn nothing_is_found_where_this_is_uncertain() {
    // Two variables count objects.
    let twice = find(|round, words| {
        count(round, words);
        words[3] += allocated(round).objects;
    });
    assert_eq!(twice, None);
    // R has collected garbage in one of the rounds.
    for collected in 0..ROUNDS {
        let found = find(|round, words| {
            count(round, words);
            if round == collected {
                words[2] = 50;
                words[5] -= 400;
            }
        });
        assert_eq!(found, None, "{collected}");
    }
    assert_eq!(find(|_, _| ()), None);
}

#[test]
fn only_whole_words_are_read() {
    for (range, expected) in [
        (16..40, (16, 24)),
        (17..40, (24, 16)),
        (16..47, (16, 24)),
        (17..18, (24, 0)),
        (u64::MAX - 3..u64::MAX, (u64::MAX, 0)),
    ] {
        assert_eq!(words(&range), expected, "{range:?}");
    }
}
