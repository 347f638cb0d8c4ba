//! What profiles of a message were recorded as: types and periods that are written in the way that other tools know.

use super::content::{Content, ProfileContent, Resolved};

const SAMPLE_TYPES: &str = "profile.sample_types";
const PERIOD: &str = "profile.period";

/// Replaces each profile by those that its attributes describe.
pub fn as_recorded(mut content: Content) -> Content {
    for scope in content.resources.iter_mut().flat_map(|r| &mut r.scopes) {
        let profiles = std::mem::take(&mut scope.profiles);
        scope.profiles = profiles.into_iter().flat_map(recorded).collect();
    }
    content
}

/// Takes an attribute of a profile.
fn take(profile: &mut ProfileContent, key: &str) -> Option<Resolved> {
    let attributes = &mut profile.facts.attributes;
    let place = attributes.iter().position(|a| a.key == key)?;
    Some(attributes.remove(place).value)
}

fn recorded(mut profile: ProfileContent) -> Vec<ProfileContent> {
    let types = take(&mut profile, SAMPLE_TYPES);
    let period = take(&mut profile, PERIOD);
    let mut all = Vec::new();
    if let Some(types) = types {
        let Resolved::String(types) = types else {
            panic!("{types:?}");
        };
        assert_eq!(pair("samples", "count"), profile.facts.sample_type);
        assert_eq!(pair("cpu", "nanoseconds"), profile.facts.period_type);
        let mut cpu = profile.clone();
        cpu.facts.sample_type = pair("cpu", "nanoseconds");
        for observation in &mut cpu.observations {
            observation.value *= profile.facts.period;
        }
        match types.as_str() {
            "cpu" => all.push(cpu),
            "samples,cpu" => all.extend([profile, cpu]),
            other => panic!("{other}"),
        }
    } else {
        all.push(profile);
    }
    if let Some(Resolved::Array(parts)) = period {
        let (value, type_) = match parts.as_slice() {
            [] => (0, pair("", "")),
            [Resolved::Int(value)] => (*value, pair("", "")),
            [
                Resolved::Int(value),
                Resolved::String(name),
                Resolved::String(unit),
            ] => (*value, pair(name, unit)),
            other => panic!("{other:?}"),
        };
        for profile in &mut all {
            assert_eq!(profile.facts.period, 1);
            (profile.facts.period, profile.facts.period_type) = (value, type_.clone());
        }
    }
    all
}

fn pair(name: &str, unit: &str) -> (String, String) {
    (name.to_owned(), unit.to_owned())
}
