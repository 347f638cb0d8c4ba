//! Interrupts: each phase of reading and writing checks whether to stop.

use super::message::Layout;
use super::wire::encode;
use super::{read_until, writer};
use profile_core::error::Error;
use profile_core::formats::Writer as _;
use serde_json::{Value, json};
use std::cell::Cell;

/// Runs something that is asked to stop after `until` checks. Returns its result and the number of checks.
fn until<T>(until: u64, run: impl FnOnce(&dyn Fn() -> bool) -> T) -> (T, u64) {
    let count = Cell::new(0);
    let result = run(&|| {
        count.set(count.get() + 1);
        count.get() > until
    });
    (result, count.get())
}

#[test]
fn a_wish_to_stop_is_heard_in_each_phase() {
    // Many rows in each table, and many samples.
    let rows = |row: &dyn Fn(usize) -> Value| (0..30_000).map(row).collect::<Value>();
    let ids = json!({"traceId": "01".repeat(16), "spanId": "02".repeat(8)});
    let dictionary = json!({
        "stringTable": rows(&|i| json!(if i == 0 { String::new() } else { format!("text {i}") })),
        "functionTable": rows(&|i| json!({"nameStrindex": i})),
        "mappingTable": rows(&|i| json!({"filenameStrindex": i})),
        "locationTable": rows(&|i| json!({"lines": [{"functionIndex": i, "line": "1"}]})),
        "attributeTable": rows(&|i| json!({"keyStrindex": i})),
        "linkTable": rows(&|_| ids.clone()),
        "stackTable": rows(&|i| json!({"locationIndices": [i]})),
    });
    let samples = rows(&|i| json!({"stackIndex": i, "values": ["1"]}));
    let profile = json!({"sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "samples": samples});
    let data = json!({"resourceProfiles": [{"scopeProfiles": [{"profiles": [profile]}]}], "dictionary": dictionary});
    for bytes in [encode(&data, Layout::V11), data.to_string().into_bytes()] {
        let read = |most| {
            until(most, |stop| {
                read_until(&bytes, stop).map(|(profile, _)| profile)
            })
        };
        let (profile, most) = read(u64::MAX);
        let profile = profile.unwrap();
        assert!(most > 2 * bytes.len() as u64 / (1 << 20), "{most}");
        for until in (0..most).step_by(most as usize / 10 + 1) {
            let (result, asked) = read(until);
            assert!(matches!(result, Err(Error::Interrupted)), "{until}");
            assert_eq!(asked, until + 1);
        }
        for json in [false, true] {
            let write = |most| {
                until(most, |stop| {
                    writer(json, json).write(&profile, &mut Vec::new(), stop)
                })
            };
            let (result, most) = write(u64::MAX);
            result.unwrap();
            for until in (0..most).step_by(most as usize / 3 + 1) {
                assert!(matches!(write(until).0, Err(Error::Interrupted)), "{until}");
            }
        }
    }
}
