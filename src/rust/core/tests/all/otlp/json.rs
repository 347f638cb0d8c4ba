//! Irregular and invalid JSON: what is accepted, and the errors for the rest.

use super::{read, refused, try_read};
use profile_core::error::{Error, Position};

/// A message with a sample that has this value, this time, and an attribute with the value `any`.
fn message(number: &str, time: &str, any: &str) -> String {
    format!(
        r#"{{"resourceProfiles":[{{"scopeProfiles":[{{"profiles":[{{"sampleType":{{"typeStrindex":1}},"samples":[{{"attributeIndices":[1],"values":[{number}],"timestampsUnixNano":[{time}]}}]}}]}}]}}],"dictionary":{{"stringTable":["","s"],"attributeTable":[{{}},{{"keyStrindex":1,"value":{any}}}]}}}}"#
    )
}

/// Expects an error, and returns its line and message.
#[track_caller]
fn wrong(json: &str) -> (u64, String) {
    match refused(json.as_bytes()) {
        (Position::Line(line), message) => (line, message),
        (place, message) => panic!("{place}: {message}"),
    }
}

/// Each line has a number, and the number that is read, or after a `!` a part of the error.
const NUMBERS: &str = r#"
1e3 | 1000
-0 | 0
"-0" | 0
2.5e1 | 25
1.0 | 1
"9223372036854775807" | 9223372036854775807
-9223372036854775808 | -9223372036854775808
9007199254740993 | 9007199254740993
1.5 | !`values` must be a whole number, not the number 1.5
1e400 | !number out of range
1e300 | !`values` must be a whole number, not the number 1000
9223372036854775808 | !`values` must be a whole number of 64 bits, not 9223372036854775808
01 | !invalid number
"1.0" | !`values` must be a whole number, not the string "1.0"
"0x1" | !`values` must be a whole number, not the string "0x1"
"" | !`values` must be a whole number, not the string ""
NaN | !expected value
true | !`values` must be a whole number, not true
{} | !`values` must be a whole number, not an object
[1] | !`values` must be a whole number, not an array
+1 | !expected value
.5 | !expected value"#;

#[test]
fn whole_numbers_may_be_written_in_many_ways() {
    for line in NUMBERS.lines().skip(1) {
        let (number, expected) = line.split_once(" | ").unwrap();
        let json = message(number, "1", "{}");
        if let Some(told) = expected.strip_prefix('!') {
            let (line, message) = wrong(&json);
            assert_eq!(line, 1);
            assert!(
                message.starts_with("At column ") && message.contains(told),
                "{number}: {message}"
            );
        } else {
            let values = &read(json.as_bytes()).values[0];
            let value = values.exact(0).unwrap_or(values.column[0] as i64);
            assert_eq!(value.to_string(), expected, "{number}");
        }
    }
}

#[test]
fn times_end_at_2_to_the_63() {
    let times = |time: &str| read(message("1", time, "{}").as_bytes()).samples.times;
    assert_eq!(times("9223372036854775807"), [(0, i64::MAX)]);
    for none in ["9223372036854775808", "\"18446744073709551615\"", "null"] {
        assert_eq!(times(none), []);
    }
    for (time, told) in [
        ("-1", "64 bits, not negative"),
        ("18446744073709551616", "`timestampsUnixNano`"),
    ] {
        assert!(wrong(&message("1", time, "{}")).1.contains(told));
    }
}

#[test]
fn doubles_are_numbers_or_three_words() {
    let text = |json: &str| {
        let profile =
            try_read(message("1", "1", &format!(r#"{{"doubleValue":{json}}}"#)).as_bytes())?;
        let value = profile.labels[0].other.unwrap();
        Ok::<_, Error>(profile.strings.get(value.text).to_owned())
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
    read(message("1", "null", "null").as_bytes());
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
        (r"\ud83d\ude00", "😀"),
        (r"\u0000", "<00>"),
        ("\x7f", "\x7f"),
        ("ü\u{2028}", "ü\u{2028}"),
        (r"\/\b", "/\u{8}"),
    ] {
        assert_eq!(text(inside.as_bytes()).unwrap(), expected);
    }
    let wrong: [&[u8]; 8] = [
        br"\ud83d",
        br"\ude00\ud83d",
        br"\ud83dx",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        br"\x41",
        br"\u12",
    ];
    for inside in wrong {
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

/// Each line has a message and a part of its error. Fields in the form of protocol buffers are errors.
const WRONG: &str = r#"
{"dictionary":{"stringTable":["","a"],"stringTable":["b"]}} | the field `stringTable` occurs twice in this object
{"resourceProfiles":[{"schemaUrl":"x","schemaUrl":"y"},{}]} | the field `schemaUrl` occurs twice in this object
{"dictionary":[]} | `dictionary` must be an object, not an array
{"dictionary":"a"} | `dictionary` must be an object, not a string
{"resourceProfiles":{}} | `resourceProfiles` must be an array, not an object
{"resourceProfiles":5} | `resourceProfiles` must be an array, not the number 5
{"dictionary":{"stringTable":[["a"]]}} | `stringTable` must be a string, not an array
{"dictionary":{"linkTable":[{"traceId":"xyz"}]}} | `traceId` must be hexadecimal digits
{"dictionary":{"linkTable":[{"traceId":"abc"}]}} | `traceId` must be hexadecimal digits
{"resource_profiles":[]} | `resource_profiles` must be `resourceProfiles`
{"resourceProfiles":[{"scope_profiles":[]}]} | `scope_profiles` must be `scopeProfiles`
{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample_type":{}}]}]}]} | `sample_type` must be `sampleType`
{"resourceProfiles":[],"dictionary":{"string_table":[""]}} | `string_table` must be `stringTable`
{"resourceProfiles":[{"resource":{"attributes":[{"value":{"string_value":"b"}}]}}]} | `string_value` must be `stringValue`"#;

#[test]
fn a_field_may_not_come_twice_nor_as_another_type_nor_with_another_name() {
    for line in WRONG.lines().skip(1) {
        let (json, told) = line.split_once(" | ").unwrap();
        let message = wrong(json).1;
        assert!(message.contains(told), "{json}: {message}");
        assert!(
            !told.contains('_') || message.contains("lowerCamelCase"),
            "{message}"
        );
    }
    let (line, message) = wrong("{\"resourceProfiles\":[]}\n{\"resource_profiles\":[]}");
    assert!(
        line == 2 && message.contains("`resource_profiles` must be `resourceProfiles`"),
        "{line}: {message}"
    );
}

#[test]
fn other_names_are_ignored() {
    for json in [
        r#"{"resourceProfiles":[],"a_b":1,"resource_profile":2,"_":3,"resource_profiles_":4}"#,
        r#"{"resourceProfiles":[{"New_Field":1,"scope__profiles":2,"scope_Profiles":3}]}"#,
        r#"{"dictionary":{},"new":1}"#,
    ] {
        assert!(read(json.as_bytes()).sources.is_empty(), "{json}");
    }
    for (json, found) in [
        ("{}", "it looks like JSON"),
        (r#"{"a":1}"#, "it looks like JSON"),
        (r#"{"b":{"dictionary":{}}}"#, "it looks like JSON"),
        (r#"{"resourceSpans":[]}"#, "data that are not profiles"),
    ] {
        let error = try_read(json.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn an_error_is_told_with_its_line() {
    let good = message("1", "1", "{}");
    // A file with one message, and files with one message per line.
    for (json, line) in [
        (
            "{\n \"dictionary\": {},\n \"resourceProfiles\": 5}".to_owned(),
            3,
        ),
        (format!("{good}\n\n{{\"dictionary\":5}}\n{good}"), 3),
        (format!("{good}{good}"), 1),
        (format!("{good}\n{good},\n"), 2),
        (format!("\u{feff}{good}\n\u{feff}{good}"), 2),
    ] {
        assert_eq!(wrong(&json).0, line);
    }
    read(format!("\u{feff}{good}\r\n\r\n{good}").as_bytes());
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
        assert_eq!(read(json.as_bytes()).samples.len(), 1);
    }
    assert!(matches!(
        try_read(blanks.as_bytes()),
        Err(Error::Foreign(_))
    ));
}
