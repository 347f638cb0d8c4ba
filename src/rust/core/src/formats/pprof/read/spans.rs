//! Creates links to spans from the labels that [`crate::formats::pprof::write`] stores them in.
//!
//! Other labels with these keys, which are not ids as OpenTelemetry defines them, remain labels.

use crate::error::Result;
use crate::formats::pprof::span_labels::{SPAN_ID, TRACE_ID};
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::TryGrow;
use crate::model::{Label, Link, Profile, StringId, Strings};

/// Moves the labels to the samples.
pub fn from_labels(profile: &mut Profile, stop: Stop) -> Result<()> {
    let key = |key| {
        let mut strings = (0..).zip(profile.strings.iter());
        let found = strings.find(|(_, text)| *text == key);
        found.map(|(row, _)| StringId(row))
    };
    let (Some(trace), Some(span)) = (key(TRACE_ID), key(SPAN_ID)) else {
        return Ok(());
    };
    let mut links = Vec::new();
    let samples = profile.labels.chunk_by(|a, b| a.sample == b.sample);
    for (i, labels) in samples.enumerate() {
        cancel::at_row(i, stop)?;
        let trace_id = id(labels, trace, 32, &profile.strings);
        let span_id = id(labels, span, 16, &profile.strings);
        if let (Some(trace_id), Some(span_id), Some(label)) = (trace_id, span_id, labels.first()) {
            links.try_push((label.sample, Link { trace_id, span_id }))?;
        }
    }
    let mut left = links.iter().peekable();
    profile.labels.retain(|label| {
        while left.next_if(|(row, _)| *row < label.sample).is_some() {}
        let is_linked = left.peek().is_some_and(|(row, _)| *row == label.sample);
        !is_linked || ![trace, span].contains(&label.key)
    });
    profile.samples.links = links;
    Ok(())
}

/// The only label with this key, if it is an id with this number of lower-case hexadecimal digits.
fn id(labels: &[Label], key: StringId, digits: usize, strings: &Strings) -> Option<StringId> {
    let mut found = labels.iter().filter(|label| label.key == key);
    let (label, None) = (found.next()?, found.next()) else {
        return None;
    };
    let id = label.str.filter(|_| label.num.is_none())?;
    let text = strings.get(id);
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_id =
        text.len() == digits && text.bytes().all(is_digit) && text.bytes().any(|byte| byte != b'0');
    is_id.then_some(id)
}
