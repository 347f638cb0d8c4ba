//! Completes the labels of waits when a recording ends: their order, and names of processes.

use crate::recorded::waits::{WAITS_FOR_NAME, process_name};
use profile_core::error::Result;
use profile_core::limits::memory::{TryPut, TryText, sort_by_key};
use profile_core::model::Profile;
use std::collections::HashMap;

/// Names processes in waits by their roles, such as `worker 2`, given their IDs and roles; and sorts labels by sample, since
/// waits for a processor are known later.
pub fn name_by_roles(roles: &[(i32, Option<&str>)], profile: &mut Profile) -> Result<()> {
    if !profile.labels.is_sorted_by_key(|label| label.sample) {
        sort_by_key(&mut profile.labels, |label| label.sample)?;
    }
    let Some(key) = profile.strings.find(WAITS_FOR_NAME) else {
        return Ok(());
    };
    let mut words = HashMap::new();
    for &(pid, role) in roles {
        if let Some(role) = role {
            words.try_put(process_name(pid), short_role(role))?;
        }
    }
    let mut renamed = HashMap::new();
    for label in profile.labels.iter_mut().filter(|label| label.key == key) {
        let Some(old) = label.str else {
            continue;
        };
        let new = match renamed.get(&old) {
            Some(&new) => new,
            None => {
                let text = with_roles(profile.strings.get(old), &words)?;
                let new = profile.strings.intern(&text)?;
                renamed.try_put(old, new)?;
                new
            }
        };
        label.str = Some(new);
    }
    Ok(())
}

/// `worker 2` of `worker 2 of 4`.
fn short_role(role: &str) -> &str {
    match role.split_once(" of ") {
        Some((worker, _)) if worker.starts_with("worker ") => worker,
        _ => role,
    }
}

/// Names that are joined by commas.
fn with_roles(names: &str, words: &HashMap<String, &str>) -> Result<String> {
    let mut text = String::new();
    for (at, name) in names.split(", ").enumerate() {
        text.try_push_str(if at > 0 { ", " } else { "" })?;
        text.try_push_str(words.get(name).copied().unwrap_or(name))?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::samples::add_label;
    use crate::recorded::waits::WAITS_FOR;

    #[test]
    fn processes_get_the_names_of_their_roles() {
        let mut profile = Profile::default();
        for (sample, name) in [
            (0, "process 77"),
            (1, "process 78, process 9"),
            (2, "process 76, 127.0.0.1:80"),
            (3, "process 5"),
        ] {
            add_label(sample, WAITS_FOR_NAME, name, &mut profile).unwrap();
        }
        // This was known later.
        add_label(1, WAITS_FOR, "processor", &mut profile).unwrap();
        let roles = [
            (76, Some("worker 1 of 2")),
            (77, Some("worker 2 of 2 for 76")),
            (78, Some("fork of 5")),
            (5, None),
        ];
        name_by_roles(&roles, &mut profile).unwrap();
        let text = |id| profile.strings.get(id);
        let labels = profile.labels.iter();
        let labels = labels.map(|label| (label.sample, text(label.str.unwrap())));
        let expected = [
            (0, "worker 2"),
            (1, "fork of 5, process 9"),
            (1, "processor"),
            (2, "worker 1, 127.0.0.1:80"),
            (3, "process 5"),
        ];
        assert_eq!(labels.collect::<Vec<_>>(), expected);
        assert_eq!(text(profile.labels[2].key), WAITS_FOR);
    }
}
