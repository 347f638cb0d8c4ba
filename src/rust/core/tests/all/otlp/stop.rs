//! Interrupts: each phase of reading and writing checks whether to stop.

use super::bombs::{data, profile, sample};
use super::json::to_json;
use super::message::*;
use super::whole::attribute;
use super::wire::encode;
use profile_core::error::Error;
use profile_core::formats::otlp::{self, Writer};
use profile_core::formats::{self, Input, Writer as _};
use profile_core::io::input::Origin;
use std::cell::Cell;

/// Counts the checks for an interrupt, and requests one after `until` checks.
struct Asked {
    count: Cell<u64>,
    until: u64,
}

impl Asked {
    fn new(until: u64) -> Asked {
        Asked {
            count: Cell::new(0),
            until,
        }
    }

    fn ask(&self) -> bool {
        self.count.set(self.count.get() + 1);
        self.count.get() > self.until
    }
}

#[test]
fn a_wish_to_stop_is_heard_in_each_phase() {
    let read = |bytes: &[u8], asked: &Asked| {
        formats::read(
            Input::Bytes(bytes),
            Some(&otlp::FORMAT),
            Origin::default(),
            &|| asked.ask(),
        )
    };
    // Many rows in each table, and many samples.
    let frames = 60_000;
    let line = |i| Line {
        function_index: i,
        line: 1,
        column: 0,
    };
    let dictionary = Dictionary {
        string_table: (0..frames)
            .map(|i| {
                if i == 0 {
                    String::new()
                } else {
                    format!("text {i}")
                }
            })
            .collect(),
        function_table: (0..frames)
            .map(|i| Function {
                name_strindex: i,
                ..Function::default()
            })
            .collect(),
        mapping_table: (0..frames)
            .map(|i| Mapping {
                filename_strindex: i,
                ..Mapping::default()
            })
            .collect(),
        location_table: (0..frames)
            .map(|i| Location {
                lines: vec![line(i)],
                ..Location::default()
            })
            .collect(),
        attribute_table: (0..frames)
            .map(|i| attribute(i, AnyValue::Empty, 0))
            .collect(),
        link_table: vec![
            Link {
                trace_id: vec![1; 16],
                span_id: vec![2; 8]
            };
            frames as usize
        ],
        stack_table: (0..frames)
            .map(|i| Stack {
                location_indices: vec![i],
            })
            .collect(),
    };
    let samples = (0..frames).map(|stack_index| Sample {
        stack_index,
        ..sample(1)
    });
    let data = data(vec![profile(samples.collect())], dictionary);
    let message = encode(&data, Layout::V11);
    let json = to_json(&data).to_string().into_bytes();
    for bytes in [message, json] {
        let asked = Asked::new(u64::MAX);
        let (profile, _) = read(&bytes, &asked).unwrap();
        let most = asked.count.get();
        assert!(most > 2 * bytes.len() as u64 / (1 << 20), "{most}");
        for until in (0..most).step_by(most as usize / 10 + 1) {
            let asked = Asked::new(until);
            assert!(
                matches!(read(&bytes, &asked), Err(Error::Interrupted)),
                "{until}"
            );
            assert_eq!(asked.count.get(), until + 1);
        }
        for json in [false, true] {
            let options = Writer {
                json,
                aggregate: json,
                ..Writer::default()
            };
            let write = |asked: &Asked| options.write(&profile, &mut Vec::new(), &|| asked.ask());
            let asked = Asked::new(u64::MAX);
            write(&asked).unwrap();
            let most = asked.count.get();
            for until in (0..most).step_by(most as usize / 3 + 1) {
                assert!(matches!(write(&Asked::new(until)), Err(Error::Interrupted)));
            }
        }
    }
}
