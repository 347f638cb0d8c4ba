//! Shared functions of the tests of formats: they read a text, and format the resulting profile as
//! text.

use super::{Format, Input, Problems, Writer, rprof};
use crate::error::Result;
use crate::io::input::Origin;
use crate::model::{LocationId, Profile};

/// Reads a text in a format. `max_memory` is the limit that users can set.
pub fn read_with(
    format: &'static Format,
    text: &(impl AsRef<[u8]> + ?Sized),
    max_memory: Option<u64>,
) -> Result<(Profile, Problems)> {
    let text = text.as_ref();
    let origin = Origin {
        name: "input".to_owned(),
        stored: text.len() as u64,
        max_memory,
        ..Origin::default()
    };
    super::read(Input::Bytes(text), Some(format), origin, &|| false)
}

/// Reads a text that has no errors.
pub fn read(format: &'static Format, text: &(impl AsRef<[u8]> + ?Sized)) -> (Profile, Problems) {
    read_with(format, text, None).unwrap()
}

/// The profile of a file of `Rprof()`.
pub fn rprof_profile(text: &str) -> Profile {
    read(&rprof::FORMAT, text).0
}

/// The output of a writer, which must not have losses.
pub fn written(writer: &impl Writer, profile: &Profile) -> String {
    let mut out = Vec::new();
    let losses = writer.write(profile, &mut out, &|| false).unwrap();
    assert!(losses.is_empty());
    String::from_utf8(out).unwrap()
}

/// The keys of problems.
pub fn kinds(problems: &Problems) -> Vec<&'static str> {
    let kinds = problems.counts().iter();
    kinds.map(|(kind, _)| kind.key()).collect()
}

pub struct Sample {
    pub source: usize,
    /// The innermost frame is the first one.
    pub frames: Vec<String>,
    pub values: Vec<f64>,
}

impl Sample {
    /// The frames, outermost first, as `f;g`.
    pub fn outermost_first(&self) -> String {
        let frames: Vec<_> = self.frames.iter().rev().cloned().collect();
        frames.join(";")
    }

    /// The frames as `g < f`.
    pub fn innermost_first(&self) -> String {
        self.frames.join(" < ")
    }

    /// The values, with a blank between them.
    pub fn values_text(&self) -> String {
        let values: Vec<_> = self.values.iter().map(f64::to_string).collect();
        values.join(" ")
    }

    /// The values that are known.
    pub fn known_values(&self) -> Vec<f64> {
        let values = self.values.iter().copied();
        values.filter(|value| !value.is_nan()).collect()
    }
}

/// All samples, with frames as `frame` shows them.
pub fn samples(profile: &Profile, frame: impl Fn(LocationId) -> String) -> Vec<Sample> {
    let sample = |row: usize| {
        let stack = profile.stacks.get(profile.samples.stack[row]);
        let values = profile.values.iter();
        Sample {
            source: profile.samples.source[row].row(),
            frames: stack.to_vec().unwrap().into_iter().map(&frame).collect(),
            values: values.map(|values| values.column[row]).collect(),
        }
    };
    (0..profile.samples.len()).map(sample).collect()
}

/// The name of a function.
pub fn name_of(profile: &Profile, location: LocationId) -> &str {
    let function = profile.function_of(location).unwrap();
    profile.strings.get(function.name)
}
