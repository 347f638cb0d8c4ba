//! The content of a message, independent of its encoding, to compare messages.
//!
//! - All indices are resolved, so the order of tables, duplicates and unused rows do not matter, nor whether strings are
//!   in the table.
//! - Attributes and maps are sorted.
//! - A sample with n values becomes n observations. In a sample that has only timestamps, each observation has the value 1.
//! - Comments are recognized in both forms: the attribute of the semantic conventions, and those of the Go collector.
//! - A single line without content is no line, a link of zeros is no link, and envelopes without profiles are omitted.
//!
//! Panics if an index is out of range.

use super::message::*;
use super::wire::{is_default, object};
use serde_json::{Map, Value, json};

fn row(d: &Value, table: &str, index: &Value) -> Value {
    match number(index) {
        0 => json!({}),
        index => resolved(d, &list(d, table)[usize::try_from(index).unwrap()]),
    }
}

/// Replaces indices by what they refer to.
pub fn resolved(d: &Value, value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| resolved(d, item)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| field(d, name, value));
            let fields =
                fields.filter(|(name, value)| name.ends_with("Value") || !is_nothing(value));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn is_nothing(value: &Value) -> bool {
    *value == json!([]) || *value == json!({}) || *value == json!("")
}

fn field(d: &Value, name: &str, value: &Value) -> (String, Value) {
    let stem = ["Strindex", "Index", "Indices"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    let mut value = match (table(name), value) {
        (Some("stringTable"), index) => match number(index) {
            0 => json!(""),
            index => list(d, "stringTable")[usize::try_from(index).unwrap()].clone(),
        },
        (Some(table), Value::Array(indices)) => {
            // Index 0 means "no attribute".
            let indices = indices
                .iter()
                .filter(|index| table != "attributeTable" || number(index) != 0);
            indices.map(|index| row(d, table, index)).collect()
        }
        (Some(table), index) => row(d, table, index),
        (None, value) => resolved(d, value),
    };
    match name {
        "attributes" | "attributeIndices" => sort(&mut value),
        "kvlistValue" => sort(&mut value["values"]),
        "lines" if value == json!([{}]) => value = json!([]),
        "linkIndex"
            if [text(&value, "traceId"), text(&value, "spanId")]
                .concat()
                .trim_matches('0')
                .is_empty() =>
        {
            value = json!({});
        }
        _ => {}
    }
    (stem.unwrap_or(name).to_owned(), value)
}

pub fn sort(values: &mut Value) {
    if let Value::Array(values) = values {
        values.sort_by_cached_key(Value::to_string);
    }
}

/// Takes a list out of an object.
pub fn take(value: &mut Value, name: &str) -> Vec<Value> {
    match value[name].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// The content of a message: resources, their scopes, and their profiles.
pub fn content(data: &Value) -> Value {
    let mut all =
        json!({"resourceProfiles": resolved(&data["dictionary"], &data["resourceProfiles"])});
    let mut resources = take(&mut all, "resourceProfiles");
    for resource in &mut resources {
        let mut scopes = take(resource, "scopeProfiles");
        for scope in &mut scopes {
            let profiles = take(scope, "profiles").into_iter().map(profile);
            scope["profiles"] = profiles.collect();
        }
        scopes.retain(|scope| !list(scope, "profiles").is_empty());
        resource["scopeProfiles"] = json!(scopes);
    }
    resources.retain(|resource| !list(resource, "scopeProfiles").is_empty());
    json!(resources)
}

/// Calls a function for the profiles of each scope.
pub fn each_scope(content: &mut Value, mut change: impl FnMut(&mut Value, &mut Vec<Value>)) {
    for resource in content.as_array_mut().unwrap() {
        for scope in resource["scopeProfiles"].as_array_mut().unwrap() {
            let mut profiles = take(scope, "profiles");
            change(scope, &mut profiles);
            scope["profiles"] = json!(profiles);
        }
    }
}

fn profile(mut profile: Value) -> Value {
    let mut observations = Vec::new();
    for mut sample in take(&mut profile, "samples") {
        let (values, times) = (
            take(&mut sample, "values"),
            take(&mut sample, "timestampsUnixNano"),
        );
        for i in 0..values.len().max(times.len()) {
            sample["value"] = values.get(i).cloned().unwrap_or(json!("1"));
            sample["timestamp"] = times.get(i).cloned().unwrap_or(Value::Null);
            observations.push(sample.clone());
        }
    }
    let (mut comments, mut numbered) = (Vec::new(), Vec::new());
    let mut attributes = take(&mut profile, "attribute");
    attributes.retain(|attribute| {
        match comment_texts(attribute) {
            Some((None, texts)) => comments.extend(texts),
            Some((Some(number), texts)) => numbered.push((number, texts)),
            None => return true,
        }
        false
    });
    numbered.sort();
    comments.extend(numbered.into_iter().flat_map(|(_, texts)| texts));
    let Value::Object(fields) = profile else {
        panic!("{profile}")
    };
    let mut fields: Map<_, _> = fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    fields.insert("attribute".to_owned(), json!(attributes));
    fields.insert("comments".to_owned(), json!(comments));
    fields.insert("observations".to_owned(), json!(observations));
    Value::Object(fields)
}

/// Returns the comments in an attribute, if it contains comments, and the number in its key if it has the form of the Go
/// collector.
pub fn comment_texts(attribute: &Value) -> Option<(Option<u32>, Vec<String>)> {
    let rest = text(attribute, "key").strip_prefix("pprof.profile.comment")?;
    let text = |value: &Value| value["stringValue"].as_str().map(str::to_owned);
    let value = &attribute["value"];
    if !attribute["unit"].is_null() {
        None
    } else if rest.is_empty() {
        let values = list(value.get("arrayValue")?, "values").iter().map(text);
        Some((None, values.collect::<Option<_>>()?))
    } else {
        let number = rest.strip_prefix('.')?.parse().ok()?;
        Some((Some(number), vec![text(value)?]))
    }
}

/// `assert_eq!` for contents, which are too large to be printed.
#[track_caller]
pub fn assert_same(left: &Value, right: &Value) {
    if let Some(difference) = difference(left, right, "") {
        panic!("{difference}");
    }
}

/// Returns the first difference: its path, and the values on both sides.
pub fn difference(left: &Value, right: &Value, place: &str) -> Option<String> {
    match (left, right) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one
                .keys()
                .chain(other.keys().filter(|name| !one.contains_key(*name)));
            let mut found = names.filter_map(|name| {
                difference(&left[name], &right[name], &format!("{place}.{name}"))
            });
            found.next()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(i, (l, r))| difference(l, r, &format!("{place}[{i}]")))
        }
        // By text, so that -0 differs from 0.
        (left, right)
            if [left, right]
                .map(Value::to_string)
                .windows(2)
                .all(|two| two[0] == two[1]) =>
        {
            None
        }
        _ => Some(format!("{place}\n--- left\n{left:#}\n--- right\n{right:#}")),
    }
}

/// Replaces each profile by those that its attributes describe: types and periods that are written in the way that other
/// tools know.
pub fn as_recorded(content: &mut Value) {
    each_scope(content, |_, profiles| {
        *profiles = std::mem::take(profiles)
            .into_iter()
            .flat_map(recorded)
            .collect()
    });
}

fn recorded(mut profile: Value) -> Vec<Value> {
    let mut attributes = take(&mut profile, "attribute");
    let mut taken = |key: &str| {
        let place = attributes
            .iter()
            .position(|attribute| text(attribute, "key") == key)?;
        Some(attributes.remove(place)["value"].take())
    };
    let (types, period) = (taken("profile.sample_types"), taken("profile.period"));
    profile["attribute"] = json!(attributes);
    let mut all = vec![profile];
    if let Some(types) = types {
        let [profile] = &all[..] else { unreachable!() };
        assert_eq!(
            profile["sampleType"],
            json!({"type": "samples", "unit": "count"})
        );
        assert_eq!(
            profile["periodType"],
            json!({"type": "cpu", "unit": "nanoseconds"})
        );
        let mut cpu = profile.clone();
        cpu["sampleType"] = cpu["periodType"].clone();
        for observation in cpu["observations"].as_array_mut().into_iter().flatten() {
            let value = number(&observation["value"]) * number(&profile["period"]);
            observation["value"] = json!(value.to_string());
        }
        match text(&types, "stringValue") {
            "cpu" => all = vec![cpu],
            "samples,cpu" => all.push(cpu),
            other => panic!("{other}"),
        }
    }
    if let Some(period) = period {
        let parts = list(&period["arrayValue"], "values");
        let name = |at: usize| {
            parts
                .get(at)
                .map_or("", |part| part["stringValue"].as_str().unwrap())
        };
        for profile in &mut all {
            assert_eq!(profile["period"], json!("1"));
            profile["period"] = parts
                .first()
                .map_or(Value::Null, |part| part["intValue"].clone());
            profile["periodType"] = object(json!({"type": name(1), "unit": name(2)}));
            let Value::Object(fields) = profile else {
                unreachable!()
            };
            fields.retain(|name, value| !name.starts_with("period") || !is_default(value));
        }
    }
    all
}
