//! Damaged messages: for any bytes, reading ends with a profile or an error.

use super::build::*;
use super::real;
use flate2::read::MultiGzDecoder;
use profile_core::Error;
use profile_core::formats::pprof::{self, Writer};
use profile_core::formats::{self, Input, Writer as _};
use std::fs::File;
use std::io::Read;

#[test]
fn a_message_cut_anywhere_is_read_or_refused() {
    let bytes = base()
        .int(9, -1)
        .message(11, value_type(5, 6))
        .packed(13, &[3, 4, 3])
        .message(
            2,
            sample(&[1, 2, 1], &[-1]).message(3, new().uint(1, 3).int(3, -4)),
        )
        .message(2, sample(&[2], &[300]))
        .0;
    let mut whole = 0;
    for end in 0..bytes.len() {
        match try_read(&bytes[..end]) {
            Ok(_) => whole += 1,
            Err(Error::Parse { .. } | Error::Foreign(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    // Only a truncation between two fields cannot be detected.
    assert!(whole < 20, "{whole}");
}

/// xorshift64*, so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end.max(1)
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at + 1),
            3 => {
                let end = bytes.len().min(at + random.below(50));
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, copy);
            }
            _ => {
                let end = bytes.len().min(at + 1 + random.below(8));
                bytes.drain(at..end);
            }
        }
        if bytes.is_empty() {
            return;
        }
    }
}

#[test]
fn random_damage_is_survived() {
    damage(1000);
}

#[test]
#[ignore = "thorough"]
fn much_random_damage_is_survived() {
    damage(200_000);
}

/// Reads this number of damaged files.
fn damage(rounds: usize) {
    let mut seeds: Vec<Vec<u8>> = real::files()
        .iter()
        .map(|file| {
            let mut bytes = Vec::new();
            let mut decoder = MultiGzDecoder::new(File::open(file).unwrap());
            decoder.read_to_end(&mut bytes).unwrap();
            bytes
        })
        .collect();
    seeds.push(base().message(2, sample(&[1, 2, 1], &[-1])).0);
    let mut random = Random(20_240_229);
    let mut read = 0;
    for round in 0..rounds {
        let mut bytes = seeds[round % seeds.len()].clone();
        mutate(&mut bytes, &mut random);
        if let Ok((profile, _)) = try_read(&bytes) {
            read += 1;
            // A profile that was read can be written, unless the format cannot store it.
            let mut out = Vec::new();
            let options = Writer::default();
            let _ = options.write(&profile, &mut out, &|| false);
            if !out.is_empty() {
                try_read(&out).unwrap();
            }
        }
    }
    assert!(read > rounds / 50 && read < rounds, "{read}");
}

#[test]
fn damaged_sources_are_sources_or_labels() {
    let rprof = read_rprof(
        "GC profiling: sample.interval=20000\n\"f\" \n\"<GC>\" \"f\" \n\
         sample.interval=10000\n\"f\" \n\"g\" \n",
    );
    let options = Writer {
        aggregate: false,
        source_labels: true,
    };
    let seed = write_with(&rprof, &options).0;
    let mut random = Random(20_261_121);
    let (mut read, mut told) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = seed.clone();
        mutate(&mut bytes, &mut random);
        let Ok((profile, _)) = try_read(&bytes) else {
            continue;
        };
        read += 1;
        let mut out = Vec::new();
        match options.write(&profile, &mut out, &|| false) {
            Ok(_) => {
                told += 1;
                let again = try_read(&out).unwrap().0;
                assert!(
                    again
                        .samples
                        .source
                        .iter()
                        .eq(profile.samples.source.iter())
                );
                assert_eq!(sources(&again), sources(&profile));
            }
            Err(Error::Lossy(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(told > 100 && told < read);
}

#[test]
fn claims_are_not_believed() {
    // Lengths and ids beyond the end of the file or a table do not cause allocations.
    let long = new().varint(2 << 3 | 2).varint(u64::MAX);
    assert!(try_read(&base().then(&long).0).is_err());
    let far = base().message(4, location(u64::MAX - 1, &[]));
    assert!(try_read(&far.0).is_ok());
    // A small file whose stacks would have 1e9 frames.
    let lines = vec![(1, 1); 30_000];
    let ids = vec![3; 30_000];
    let bomb = base()
        .message(4, location(3, &lines))
        .message(2, sample(&ids, &[1]));
    assert!(matches!(try_read(&bomb.0), Err(Error::Budget { .. })));
    // Thousands of comments and types that share one long text.
    let long = "x".repeat(1 << 20);
    let comments = base().strings(&[&long]).packed(13, &[7; 1 << 16]);
    let profile = read(&comments);
    assert_eq!(profile.sources[0].comments.len(), 1 << 16);
    assert!(profile.strings.iter().map(str::len).sum::<usize>() < 2 << 20);
    let long = "x".repeat(4000);
    let types = (0..900).fold(base().strings(&[&long]), |b, _| {
        b.message(1, value_type(7, 7))
    });
    let types = read(&types).values;
    assert_eq!(types.len(), 901);
    // The number that makes a name unique is the number of the type, so no search is needed.
    for (number, values) in types.iter().enumerate().skip(3) {
        let end = format!("/{number}");
        assert!(values.type_.name.ends_with(&end), "{number}");
    }
    let longer = base()
        .strings(&[&"x".repeat(4097)])
        .message(1, value_type(7, 7));
    assert!(matches!(try_read(&longer.0), Err(Error::Unsupported(_))));
    let types = (0..2000).fold(base(), |b, _| b.message(1, value_type(1, 2)));
    assert!(matches!(try_read(&types.0), Err(Error::Unsupported(_))));
}

#[test]
fn a_wish_to_stop_is_heard() {
    let bytes = base().0;
    let result = formats::read(
        Input::Bytes(&bytes[..]),
        Some(&pprof::FORMAT),
        origin(),
        &|| true,
    );
    assert!(matches!(result, Err(Error::Interrupted)));
}
