//! The keys of sets of labels.

use super::super::content_keys::{Cells, content_keys, key};
use super::origins::Origin;
use super::rows::{Sum, pairs_with_services};
use crate::collections::{Interner, Lists, TextList};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, sort_by_key, written};
use crate::model::{Label, Profile, StringId};
use hmac_sha256::Hash;
use std::borrow::Cow;

/// Numbers sets of labels by their keys.
#[derive(Default)]
pub(super) struct LabelSets {
    /// The sets as they occur. The same labels in another order are another list with the same key.
    lists: Interner<Lists<Label>>,
    number_of_list: Vec<u32>,
    pub(super) keys: Interner<TextList>,
    /// The list of each key.
    examples: Vec<u32>,
    list: Vec<Label>,
}

impl LabelSets {
    pub(super) fn number(&mut self, profile: &Profile, labels: &[Label]) -> Result<Option<u32>> {
        if labels.is_empty() {
            return Ok(None);
        }
        self.list.clear();
        for label in labels {
            self.list.try_push(Label {
                sample: 0,
                ..*label
            })?;
        }
        let list = self.lists.intern(&self.list)?;
        if list as usize == self.number_of_list.len() {
            let number = self.keys.intern(&key_of_labels(profile, labels)?)?;
            if number as usize == self.examples.len() {
                self.examples.try_push(list)?;
            }
            self.number_of_list.try_push(number)?;
        }
        Ok(Some(self.number_of_list[list as usize]))
    }

    pub(super) fn labels(
        &self,
        origins: &[Origin],
        sums: &[Sum],
    ) -> Result<Vec<(u32, u32, Label)>> {
        let mut all = Vec::new();
        for (origin, set) in pairs_with_services(origins, sums, |group| group.labels)? {
            for &label in self.lists.get(self.examples[set as usize]) {
                all.try_push((origin, set, label))?;
            }
        }
        Ok(all)
    }
}

fn key_of_labels(profile: &Profile, labels: &[Label]) -> Result<String> {
    let text = |id: StringId| profile.strings.get(id);
    let values = labels.iter().map(|l| value_of(profile, l)).try_vec_of()?;
    let numbers = labels.iter().map(number_of).try_vec()?;
    let mut columns = [
        (
            "label",
            Cells::Texts(labels.iter().map(|l| Some(text(l.key))).try_vec()?),
        ),
        (
            "value",
            Cells::Texts(values.iter().map(|v| Some(v.as_ref())).try_vec()?),
        ),
        ("number", Cells::Numbers(&numbers)),
        (
            "unit",
            Cells::Texts(labels.iter().map(|l| l.unit.map(text)).try_vec()?),
        ),
    ];
    let mut keys = content_keys(&mut columns, labels.len(), &|| false)?;
    sort_by_key(&mut keys, |key| key.clone())?;
    let mut hash = Hash::new();
    keys.iter().for_each(|key| hash.update(key));
    key(hash)
}

/// The value of a label as a text.
pub fn value_of<'p>(profile: &'p Profile, label: &Label) -> Result<Cow<'p, str>> {
    match (label.str, label.num, label.other) {
        (Some(text), ..) => Ok(Cow::Borrowed(profile.strings.get(text))),
        (None, Some(number), _) => Ok(Cow::Owned(written(format_args!("{number}"))?)),
        (None, None, Some(other)) => Ok(Cow::Borrowed(profile.strings.get(other.text))),
        (None, None, None) => Ok(Cow::Borrowed("")),
    }
}

/// The value of a label as a number; NaN if it is not an integer.
pub fn number_of(label: &Label) -> f64 {
    label.num.map_or(f64::NAN, |number| number as f64)
}
