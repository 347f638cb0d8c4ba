//! Irregular and invalid JSON: what is accepted, and the errors for the rest.

use super::damaged::{refused, try_read};
use profile_core::error::{Error, Position};
use profile_core::model::Profile;

/// A message with a sample that has this value, this time, and an attribute with the value `any`.
fn message(number: &str, time: &str, any: &str) -> String {
    format!(
        r#"{{"resourceProfiles":[{{"scopeProfiles":[{{"profiles":[{{"sampleType":{{"typeStrindex":1}},"samples":[{{"attributeIndices":[1],"values":[{number}],"timestampsUnixNano":[{time}]}}]}}]}}]}}],"dictionary":{{"stringTable":["","s"],"attributeTable":[{{}},{{"keyStrindex":1,"value":{any}}}]}}}}"#
    )
}

fn value(profile: &Profile) -> i64 {
    let values = &profile.values[0];
    values.exact(0).unwrap_or(values.column[0] as i64)
}

/// Expects an error, and returns its line and message.
#[track_caller]
fn wrong(json: &str) -> (u64, String) {
    match refused(json.as_bytes()) {
        (Position::Line(line), message) => (line, message),
        (place, message) => panic!("{place}: {message}"),
    }
}

#[test]
fn whole_numbers_may_be_written_in_many_ways() {
    for (number, expected) in [
        ("1e3", 1000),
        ("-0", 0),
        ("\"-0\"", 0),
        ("2.5e1", 25),
        ("1.0", 1),
        ("\"9223372036854775807\"", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("9007199254740993", 9_007_199_254_740_993),
    ] {
        let profile = try_read(message(number, "1", "{}").as_bytes()).unwrap();
        assert_eq!(value(&profile), expected, "{number}");
    }
    for (number, told) in [
        ("1.5", "`values` must be a whole number, not the number 1.5"),
        ("1e400", "number out of range"),
        (
            "1e300",
            "`values` must be a whole number, not the number 1000",
        ),
        (
            "9223372036854775808",
            "`values` must be a whole number of 64 bits, not 9223372036854775808",
        ),
        ("01", "invalid number"),
        (
            "\"1.0\"",
            "`values` must be a whole number, not the string \"1.0\"",
        ),
        (
            "\"0x1\"",
            "`values` must be a whole number, not the string \"0x1\"",
        ),
        (
            "\"\"",
            "`values` must be a whole number, not the string \"\"",
        ),
        ("NaN", "expected value"),
        ("true", "`values` must be a whole number, not true"),
        ("{}", "`values` must be a whole number, not an object"),
        ("[1]", "`values` must be a whole number, not an array"),
        ("+1", "expected value"),
        (".5", "expected value"),
    ] {
        let (line, message) = wrong(&message(number, "1", "{}"));
        assert_eq!(line, 1);
        assert!(message.starts_with("At column "), "{number}: {message}");
        assert!(message.contains(told), "{number}: {message}");
    }
}

#[test]
fn times_end_at_2_to_the_63() {
    let time = |time: &str| try_read(message("1", time, "{}").as_bytes()).map(|p| p.samples.times);
    assert_eq!(time("9223372036854775807").unwrap(), [(0, i64::MAX)]);
    for beyond in ["9223372036854775808", "\"18446744073709551615\""] {
        assert_eq!(time(beyond).unwrap(), []);
    }
    assert!(
        wrong(&message("1", "-1", "{}"))
            .1
            .contains("64 bits, not negative")
    );
    assert!(
        wrong(&message("1", "18446744073709551616", "{}"))
            .1
            .contains("`timestampsUnixNano`")
    );
}

#[test]
fn doubles_are_numbers_or_three_words() {
    let text = |json: &str| -> Result<String, Error> {
        let any = format!(r#"{{"doubleValue":{json}}}"#);
        let profile = try_read(message("1", "1", &any).as_bytes())?;
        let value = profile.labels[0].other.unwrap();
        Ok(profile.strings.get(value.text).to_owned())
    };
    for (json, expected) in [
        ("1", "1.0"),
        ("-0", "-0.0"),
        ("\"1e3\"", "1000.0"),
        ("\"NaN\"", "NaN"),
        ("\"-Infinity\"", "-Infinity"),
        ("1e-400", "0.0"),
    ] {
        assert_eq!(text(json).unwrap(), expected, "{json}");
    }
    for json in [
        "1e400",
        "\"1e400\"",
        "\"inf\"",
        "\"nan\"",
        "\"infinity\"",
        "NaN",
        "\"\"",
        "Infinity",
    ] {
        assert!(text(json).is_err(), "{json}");
    }
}

#[test]
fn null_is_as_if_it_were_not_there() {
    let whole = message("1", "null", "null");
    assert_eq!(try_read(whole.as_bytes()).unwrap().samples.times, []);
    for json in [
        r#"{"resourceProfiles":null,"dictionary":null}"#,
        r#"{"resourceProfiles":[null],"dictionary":{"stringTable":null,"stackTable":[null]}}"#,
        r#"{"dictionary":{"locationTable":[{"lines":null,"address":null,"mappingIndex":null}]}}"#,
        r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[null],"profileId":null}]}]}]}"#,
    ] {
        assert!(try_read(json.as_bytes()).is_ok(), "{json}");
    }
    assert!(try_read(b"null").is_err());
}

#[test]
fn texts_are_unicode() {
    let text = |inside: &[u8]| {
        let json = message("1", "1", r#"{"stringValue":"?"}"#);
        let (start, end) = json.split_once('?').unwrap();
        try_read(&[start.as_bytes(), inside, end.as_bytes()].concat()).map(|profile| {
            let text = profile.labels[0].str.unwrap();
            profile.strings.get(text).to_owned()
        })
    };
    for (inside, expected) in [
        (&br"\ud83d\ude00"[..], "😀"),
        (br"\u0000", "<00>"),
        (b"\x7f", "\x7f"),
        ("ü\u{2028}".as_bytes(), "ü\u{2028}"),
        (br"\/\b", "/\u{8}"),
    ] {
        assert_eq!(text(inside).unwrap(), expected);
    }
    for inside in [
        &br"\ud83d"[..],
        br"\ude00\ud83d",
        br"\ud83dx",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        br"\x41",
        br"\u12",
    ] {
        assert!(
            matches!(text(inside), Err(Error::Parse { .. })),
            "{inside:?}"
        );
    }
    // With bytes that cannot occur in JSON, the file has another format.
    assert!(matches!(
        text(b"\x01"),
        Err(Error::Parse { .. } | Error::Foreign(_))
    ));
}

#[test]
fn what_is_wrong_is_quoted_in_part() {
    let long = format!("\"{}\"", "é".repeat(1_000_000));
    let (_, message) = wrong(&message(&long, "1", "{}"));
    assert!(message.len() < 300, "{}", message.len());
    assert!(
        message.contains("not the string \"éééé") && message.ends_with("é\"…."),
        "{message}"
    );
}

#[test]
fn a_field_may_not_come_twice_nor_as_another_type() {
    for (json, told) in [
        (
            r#"{"dictionary":{"stringTable":["","a"],"stringTable":["b"]}}"#,
            "the field `stringTable` occurs twice in this object",
        ),
        (
            r#"{"resourceProfiles":[{"schemaUrl":"x","schemaUrl":"y"},{}]}"#,
            "the field `schemaUrl` occurs twice in this object",
        ),
        (
            r#"{"dictionary":[]}"#,
            "`dictionary` must be an object, not an array",
        ),
        (
            r#"{"dictionary":"a"}"#,
            "`dictionary` must be an object, not a string",
        ),
        (
            r#"{"resourceProfiles":{}}"#,
            "`resourceProfiles` must be an array, not an object",
        ),
        (
            r#"{"resourceProfiles":5}"#,
            "`resourceProfiles` must be an array, not the number 5",
        ),
        (
            r#"{"dictionary":{"stringTable":[["a"]]}}"#,
            "`stringTable` must be a string, not an array",
        ),
        (
            r#"{"dictionary":{"linkTable":[{"traceId":"xyz"}]}}"#,
            "`traceId` must be hexadecimal digits",
        ),
        (
            r#"{"dictionary":{"linkTable":[{"traceId":"abc"}]}}"#,
            "`traceId` must be hexadecimal digits",
        ),
    ] {
        let message = wrong(json).1;
        assert!(message.contains(told), "{json}: {message}");
    }
}

#[test]
fn an_error_is_told_with_its_line() {
    let good = message("1", "1", "{}");
    // A file with one message, and files with one message per line.
    assert_eq!(
        wrong("{\n \"dictionary\": {},\n \"resourceProfiles\": 5}").0,
        3
    );
    assert_eq!(
        wrong(&format!("{good}\n\n{{\"dictionary\":5}}\n{good}")).0,
        3
    );
    assert_eq!(wrong(&format!("{good}{good}")).0, 1);
    assert_eq!(wrong(&format!("{good}\n{good},\n")).0, 2);
    assert_eq!(wrong(&format!("\u{feff}{good}\n\u{feff}{good}")).0, 2);
    assert!(try_read(format!("\u{feff}{good}\r\n\r\n{good}").as_bytes()).is_ok());
    // An error in the converted message has a path, and the line if there are several.
    let far = good.replace("\"attributeIndices\":[1]", "\"stackIndex\":7");
    let sample = "resourceProfiles[0].scopeProfiles[0].profiles[0].samples[0]";
    assert_eq!(
        refused(far.as_bytes()).0,
        Position::Field(sample.to_owned())
    );
    let (place, _) = refused(format!("{good}\n{far}\n").as_bytes());
    assert_eq!(place, Position::Field(format!("line 2, {sample}")));
}

#[test]
fn what_is_not_known_is_passed_over_however_deep() {
    let deep = |count: usize| [&"[".repeat(count), &"]".repeat(count)[..]].concat();
    for count in [10, 200, 1_000_000] {
        let json = format!(r#"{{"dictionary":{{}},"other":{}}}"#, deep(count));
        assert!(try_read(json.as_bytes()).is_ok(), "{count}");
        let json = format!(r#"{{"dictionary":{{"stringTable":{}}}}}"#, deep(count));
        assert!(try_read(json.as_bytes()).is_err(), "{count}");
        assert!(try_read(json.as_bytes().split_at(count).0).is_err());
    }
    let objects = r#"{"dictionary":"#.repeat(100_000);
    assert!(try_read(objects.as_bytes()).is_err());
    let values = r#"{"arrayValue":{"values":["#.repeat(100_000);
    let (_, told) = wrong(&message("1", "1", &values));
    assert!(told.contains("nested more than 100 times"), "{told}");
}

#[test]
fn blanks_are_nothing() {
    let good = message("1", "1", "{}");
    let blanks = " \n".repeat(10 << 20);
    let inside = good.replacen('{', &format!("{{{blanks}"), 1);
    for json in [format!("{good}{blanks}"), format!("{blanks}{good}"), inside] {
        assert_eq!(try_read(json.as_bytes()).unwrap().samples.len(), 1);
    }
    assert!(matches!(
        try_read(blanks.as_bytes()),
        Err(Error::Foreign(_))
    ));
}
