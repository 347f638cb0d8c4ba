//! Irregular messages: valid but unusual ones, and invalid ones.

use super::build::*;
use flate2::{Compression, write::GzEncoder};
use profile_core::Error;
use profile_core::formats::problems::ProblemKind;
use std::io::Write;

#[test]
fn any_order_and_any_ids_will_do() {
    let message = new()
        .message(2, sample(&[u64::MAX, 7], &[3]))
        .message(4, location(u64::MAX, &[(1 << 40, 1)]))
        .message(4, location(7, &[(9, 2)]))
        .message(1, value_type(3, 4))
        .message(5, function(9, 2))
        .message(5, function(1 << 40, 1))
        .strings(&["", "f", "g", "samples", "count"]);
    assert_eq!(show(&read(&message)), ["samples/count ", "3 : f:1 g:2 "]);
}

#[test]
fn numbers_may_be_packed_or_not() {
    let values = new().uint(2, 5);
    let single = new().uint(1, 1).uint(1, 2).then(&values);
    let mixed = new()
        .packed(1, &[1])
        .uint(1, 2)
        .packed(1, &[1, 2])
        .then(&values);
    let around = new()
        .uint(1, 2)
        .then(&values)
        .packed(1, &[])
        .packed(1, &[1]);
    let empty = new().packed(1, &[]).packed(2, &[5]);
    let message = [single, mixed, around, empty, values]
        .into_iter()
        .fold(base(), |b, sample| b.message(2, sample));
    assert_eq!(
        show(&read(&message))[1..],
        [
            "5 : f:10 g:20 ",
            "5 : f:10 g:20 f:10 g:20 ",
            "5 : g:20 f:10 ",
            "5 : ",
            "5 : "
        ]
    );
}

#[test]
fn inlined_calls_are_frames() {
    let message = base()
        .message(4, location(3, &[(1, 11), (2, 21), (1, 12)]))
        .message(4, location(4, &[]))
        .message(4, location(5, &[(0, 7)]))
        .message(2, sample(&[3, 4, 2, 5], &[1]));
    let profile = read(&message);
    assert_eq!(show(&profile)[1], "1 : f:11 g:21 f:12 ? g:20 ? ");
    let stack = profile.stacks.get(profile.samples.stack[0]);
    let stack = stack.to_vec().unwrap();
    let lines: Vec<_> = stack
        .iter()
        .map(|l| profile.locations.get(*l).line)
        .collect();
    assert_eq!(lines[3..], [None, Some(20), Some(7)]);
    // Go rejects lines without a function, so none is written.
    let (again, _) = try_read(&write(&profile, true)).unwrap();
    assert_eq!(show(&again), show(&profile));
}

#[test]
fn values_keep_their_sign_and_zeros() {
    let message = base()
        .message(1, value_type(5, 6))
        .message(2, sample(&[1], &[-1, i64::MIN]))
        .message(2, sample(&[1], &[0, 0]))
        .message(2, sample(&[], &[1, 0]));
    let profile = read(&message);
    let shown = show(&profile);
    assert_eq!(
        shown[1..],
        ["-1 -9223372036854776000 : f:10 ", "0 0 : f:10 ", "1 0 : "]
    );
    assert_eq!(show(&try_read(&write(&profile, false)).unwrap().0), shown);
}

#[test]
fn values_that_r_cannot_hold_are_noted() {
    let values = [1 << 53, (1 << 53) + 1, 1 << 60, i64::MAX];
    let message = values
        .iter()
        .fold(base(), |b, v| b.message(2, sample(&[1], &[*v])));
    let (profile, problems) = try_read(&message.0).unwrap();
    assert_eq!(problems.counts(), [(ProblemKind::ImpreciseValue, 2)]);
    assert_eq!(problems.kept()[0].text, "9007199254740993");
    assert_eq!(profile.values[0].column[2], (1u64 << 60) as f64);
}

#[test]
fn unknown_fields_are_skipped() {
    let unknown = new().uint(99, 1).bytes(98, b"text");
    let mut unknown = unknown.varint(97 << 3 | 1);
    unknown.0.extend([0; 8]);
    let mut unknown = unknown.varint(96 << 3 | 5);
    unknown.0.extend([0; 4]);
    let message = base()
        .then(&unknown)
        .message(5, function(3, 3).then(&unknown))
        .message(4, location(3, &[(3, 1)]).then(&unknown))
        .message(3, new().uint(1, 1).then(&unknown))
        .message(2, sample(&[3], &[1]).then(&unknown));
    assert_eq!(show(&read(&message))[1], "1 : f:1 ");
}

#[test]
fn labels_keep_all_that_they_say() {
    let label = |str: u64, num: i64, unit: u64| {
        let mut label = new().uint(1, 3);
        for (number, value) in [(2, str), (3, num as u64), (4, unit)] {
            if value != 0 {
                label = label.uint(number, value);
            }
        }
        label
    };
    let message = [
        label(4, 0, 0),
        label(0, -5, 6),
        label(4, 7, 0),
        label(0, 0, 6),
    ]
    .into_iter()
    .chain([label(0, 0, 0), new().uint(1, 3).uint(2, 0)])
    // Some writers write all fields: the first label is a text, the second a number.
    .chain([new().uint(1, 3).uint(2, 4).uint(3, 0).uint(4, 0)])
    .chain([new().uint(1, 3).uint(2, 0).uint(3, 5).uint(4, 0)])
    .fold(sample(&[1], &[1]), |b, label| b.message(3, label));
    let message = base().message(2, sample(&[], &[2])).message(2, message);
    let profile = read(&message);
    let expected = "1 : f:10 [f (Some(\"g\"), None, None)]\
        [f (None, Some(-5), Some(\"nanoseconds\"))]\
        [f (Some(\"g\"), Some(7), None)]\
        [f (None, Some(0), Some(\"nanoseconds\"))]\
        [f (None, Some(0), None)]\
        [f (Some(\"\"), None, None)]\
        [f (Some(\"g\"), None, None)]\
        [f (None, Some(5), None)]";
    assert_eq!(show(&profile)[2], expected);
    let (again, _) = try_read(&write(&profile, false)).unwrap();
    assert_eq!(show(&again), show(&profile));
}

#[test]
fn names_are_text_that_r_can_hold() {
    let message = new()
        .strings(&["", "samples", "count"])
        .bytes(6, b"gr\xfc\xdfe")
        .bytes(6, b"a\0b")
        .message(1, value_type(1, 2))
        .message(5, function(1, 3))
        .message(5, new().uint(1, 2).uint(3, 4))
        .message(5, new().uint(1, 3))
        .message(4, location(1, &[(1, 1)]))
        .message(4, location(2, &[(2, 1 << 40)]))
        .message(4, location(3, &[(3, -1)]))
        .message(2, sample(&[1, 2, 3], &[1]));
    let (profile, problems) = try_read(&message.0).unwrap();
    assert_eq!(
        frames(&profile, 0),
        "grüße:1 a<00>b:1099511627776 <unknown>:-1 "
    );
    let kinds: Vec<_> = problems.counts().iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        [
            ProblemKind::NotUtf8,
            ProblemKind::NulByte,
            ProblemKind::OddLineNumber
        ]
    );
}

#[test]
fn sample_types_of_one_name_are_told_apart() {
    let message = base()
        .message(1, value_type(1, 6))
        .message(2, sample(&[1], &[1, 2]));
    let profile = read(&message);
    assert_eq!(
        show(&profile)[0],
        "samples/count samples/nanoseconds/nanoseconds "
    );
    let bytes = write(&profile, true);
    assert_eq!(bytes.windows(7).filter(|w| w == b"samples").count(), 1);
    assert_eq!(show(&try_read(&bytes).unwrap().0), show(&profile));

    let message = (0..2)
        .fold(base(), |b, _| b.message(1, value_type(1, 2)))
        .message(1, value_type(0, 0))
        .message(2, sample(&[1], &[1, 2, 3, 4]));
    let profile = read(&message);
    assert_eq!(
        show(&profile)[0],
        "samples/count samples/count/count samples/count/2/count <unknown>/ "
    );
    let again = try_read(&write(&profile, true)).unwrap().0;
    assert_eq!(show(&again), show(&profile));
    assert_eq!(again.sources[0].types, profile.sources[0].types);
    assert_eq!(profile.sources[0].types[3].recorded, "");
    // If no sample remains, the types are still written.
    let empty = base().message(1, value_type(1, 2));
    let again = try_read(&write(&read(&empty), true)).unwrap().0;
    assert_eq!(again.sources[0].types, read(&empty).sources[0].types);
}

#[test]
fn what_is_said_once_is_in_the_source() {
    let message = base()
        .strings(&["one", "two"])
        .int(9, 1_500_000_000)
        .int(10, 60)
        .message(11, value_type(5, 6))
        .int(12, 10_000_000)
        .packed(13, &[8, 7, 8])
        .uint(13, 7)
        .uint(14, 1);
    let profile = read(&message);
    let source = &profile.sources[0];
    assert_eq!((source.timestamp, source.duration), (Some(1.5), Some(60)));
    assert_eq!(comments(&profile), [["two", "one", "two", "one"]]);
    assert_eq!(source.default_type.as_deref(), Some("samples"));
    let period = source.period.as_ref().unwrap();
    let type_ = period.type_.as_ref().unwrap();
    assert_eq!((period.value, type_.name.as_str()), (1e7, "cpu"));
    let none = &read(&base()).sources[0];
    assert!(none.period.is_none() && none.default_type.is_none() && none.timestamp.is_none());
}

#[test]
fn gzip_may_have_several_members() {
    let message = base().message(2, sample(&[1], &[1])).0;
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = message.split_at(33);
    let members = [gzip(first), gzip(second)].concat();
    let (profile, _) = try_read(&members).unwrap();
    assert_eq!(show(&profile)[1], "1 : f:10 ");
    for end in 2..members.len() {
        assert!(try_read(&members[..end]).is_err() || end == gzip(first).len());
    }
    assert!(try_read(&[&members[..], b"trailing"].concat()).is_err());
}

#[test]
fn of_fields_that_stand_there_twice_the_last_counts() {
    // Go's reader accepts these as well.
    let twice = |number, value| new().uint(number, u64::MAX - 7).uint(number, value);
    let line = twice(1, 2).then(&twice(2, 30)).then(&twice(3, 4));
    let message = base()
        .message(3, twice(1, 1).then(&twice(5, 0)))
        .message(4, twice(1, 3).then(&twice(2, 1)).message(4, line))
        .message(5, twice(1, 3).then(&twice(2, 3)).then(&twice(5, 6)))
        .message(11, twice(1, 5).then(&twice(2, 6)))
        .then(&twice(12, 100))
        .then(&twice(14, 1))
        .message(
            2,
            sample(&[3], &[1]).message(3, twice(1, 3).then(&twice(3, 5))),
        );
    // No problem is recorded either.
    let profile = read(&message);
    assert_eq!(show(&profile)[1], "1 : g:30 [f (None, Some(5), None)]");
    let stack = profile.stacks.get(profile.samples.stack[0]);
    let location = profile.locations.get(stack.first().unwrap());
    assert_eq!(location.column, 4);
    assert_eq!(
        profile.sources[0].period.as_ref().map(|p| p.value),
        Some(100.0)
    );
}

#[test]
fn what_go_refuses_is_refused() {
    let one = base().message(2, sample(&[1], &[1]));
    let says = |message: &Bytes, words: &str| {
        let (at, text) = refused(message);
        assert!(text.contains(words), "{text}");
        assert!(at <= message.0.len() as u64);
        at
    };
    says(&one.clone().then(&one), "several profiles");
    let timed = new().strings(&[""]).int(9, 5);
    says(&timed.clone().then(&timed), "several profiles");
    says(&new().uint(12, 5), "string table");
    says(&new().strings(&["a"]), "first string");
    says(&base().message(5, function(3, 70)), "String index 70");
    says(&base().message(5, function(3, u64::MAX)), "String index -1");
    says(&base().uint(14, 7), "String index 7");
    says(&base().uint(13, 7), "String index 7");
    says(
        &base().message(2, sample(&[3], &[1])),
        "no location with the id 3",
    );
    says(
        &base().message(2, sample(&[0], &[1])),
        "no location with the id 0",
    );
    says(
        &base().message(4, location(3, &[(3, 1)])),
        "no function with the id 3",
    );
    says(&base().message(4, location(0, &[])), "no id");
    says(&base().message(4, location(2, &[])), "second location");
    says(&base().message(5, function(2, 1)), "second function");
    says(&base().message(2, sample(&[1], &[])), "0 values");
    says(&base().message(2, sample(&[1], &[1, 2])), "2 values");
    says(&new().strings(&[""]).message(2, new()), "no sample type");
    says(&base().uint(2, 1), "Field 2 should hold");
    says(&base().bytes(9, b""), "Field 9 should hold");
    says(&base().varint(7 << 3 | 3), "wire type 3");
    says(&base().varint(2), "field number 0");
    let at = base().0.len() as u64;
    assert_eq!(
        says(&base().varint(6 << 3 | 2).varint(1 << 62), "bytes starts"),
        at + 10
    );
    let mut endless = base().varint(9 << 3);
    endless.0.extend([0xff; 11]);
    assert_eq!(says(&endless, "more than ten bytes"), at + 1);
}

#[test]
fn other_formats_are_named() {
    let says = |bytes: &[u8], words: &str| {
        let error = try_read(bytes).unwrap_err();
        assert!(matches!(error, Error::Foreign(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(words), "{text}");
    };
    says(b"", "is empty");
    says(
        b"memory profiling: sample.interval=20000\n",
        "looks like an Rprof file",
    );
    says(
        b"sample.interval=20000\n\"f\" \n",
        "looks like an Rprof file",
    );
    says(b"\"f\" \"g\" \n\"f\" \n", "looks like an Rprof file");
    says(b"{\"a\": 1}", "looks like JSON");
    says(b"2 samples\n", "text");
    says(&[0; 5000], "not a protocol buffer message");
    // A message may start with the byte of a quote.
    let message = new()
        .message(4, location(1, &[]))
        .then(&new().strings(&[""]));
    assert_eq!(message.0[0], b'"');
    assert!(try_read(&message.0).is_ok());
}
