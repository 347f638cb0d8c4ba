//! Names of fields in JSON: fields in the form of protocol buffers are errors, unknown fields are ignored.

use super::damaged::{refused, try_read};

/// The message of an error.
fn message(json: &str) -> String {
    refused(json.as_bytes()).1
}

#[test]
fn names_with_underscores_are_errors() {
    for (json, name, right) in [
        (
            r#"{"resource_profiles":[]}"#,
            "resource_profiles",
            "resourceProfiles",
        ),
        (
            r#"{"resourceProfiles":[{"scope_profiles":[]}]}"#,
            "scope_profiles",
            "scopeProfiles",
        ),
        (
            r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample_type":{}}]}]}]}"#,
            "sample_type",
            "sampleType",
        ),
        (
            r#"{"resourceProfiles":[],"dictionary":{"string_table":[""]}}"#,
            "string_table",
            "stringTable",
        ),
        (
            r#"{"resourceProfiles":[{"resource":{"attributes":[{"key":"a","value":{"string_value":"b"}}]}}]}"#,
            "string_value",
            "stringValue",
        ),
        (
            "{\"resourceProfiles\":[]}\n{\"resource_profiles\":[]}",
            "resource_profiles",
            "resourceProfiles",
        ),
    ] {
        let text = message(json);
        assert!(
            text.contains(&format!("`{name}` must be `{right}`")),
            "{text}"
        );
        assert!(text.contains("lowerCamelCase"), "{text}");
    }
}

#[test]
fn other_names_are_ignored() {
    for json in [
        r#"{"resourceProfiles":[],"a_b":1,"resource_profile":2,"_":3,"resource_profiles_":4}"#,
        r#"{"resourceProfiles":[{"New_Field":1,"scope__profiles":2,"scope_Profiles":3}]}"#,
        r#"{"dictionary":{},"new":1}"#,
    ] {
        assert!(
            try_read(json.as_bytes()).unwrap().sources.is_empty(),
            "{json}"
        );
    }
}

#[test]
fn a_file_without_a_known_field_is_of_another_kind() {
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
