//! The tests of testthat that run on the stacks of a profile, by the lines of the calls of `test_that()`, `describe()`
//! and `it()`.
//!
//! testthat has no hook around the code of a test, and the stack has no descriptions. But each of these calls has a line
//! of the file of tests, at which its description stands. It is the line of the nearest outer frame that has one: code
//! of the file is evaluated by `eval()`, or by a function of the user that makes tests.

use super::packages::package_of;
use crate::collections::{Interner, Lists};
use crate::error::Result;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryGrow, TryPut, with_room};
use crate::model::{LocationId, Profile, StringId, is_deparsed};
use foldhash::fast::RandomState;
use std::collections::HashMap;

const PACKAGE: &str = "testthat";
/// The functions whose first argument is a description.
const FUNCTIONS: [&str; 3] = ["test_that", "describe", "it"];
/// The function that evaluates a file of tests.
const FILE: &str = "source_file";

/// A call in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    pub function: &'static str,
    pub file: StringId,
    pub line: i32,
}

/// What runs in a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Running {
    /// A file of tests.
    pub file: Option<StringId>,
    /// A row of `TestCalls::tests`.
    pub test: Option<u32>,
}

#[derive(Debug, Default)]
pub struct TestCalls {
    pub calls: Vec<Call>,
    /// The calls around the code of each test, the outermost one first, as rows of `calls`.
    pub tests: Interner<Lists<u32>, u32>,
    /// By sample.
    pub samples: Vec<Running>,
}

impl TestCalls {
    pub fn find(profile: &Profile, stop: Stop) -> Result<TestCalls> {
        let mut found = TestCalls::default();
        let mut known = HashMap::default();
        let mut of_stack = with_room(profile.stacks.len())?;
        let mut frames = Vec::new();
        let mut test = Vec::new();
        for (row, id) in profile.stacks.ids().enumerate() {
            cancel::at_row(row, stop)?;
            frames.clear();
            profile.stacks.get(id).append_to(&mut frames)?;
            of_stack.try_push(found.look(profile, &frames, &mut known, &mut test)?)?;
        }
        found.samples = with_room(profile.samples.stack.len())?;
        for stack in &profile.samples.stack {
            let running: Running = of_stack[stack.row()];
            found.samples.try_push(running)?;
        }
        Ok(found)
    }

    /// What runs in a stack, whose innermost frame is the first one.
    fn look(
        &mut self,
        profile: &Profile,
        frames: &[LocationId],
        known: &mut HashMap<Call, u32, RandomState>,
        test: &mut Vec<u32>,
    ) -> Result<Running> {
        let mut running = Running::default();
        let mut is_in_file = false;
        let mut place = None;
        test.clear();
        for &frame in frames.iter().rev() {
            if let (Some(function), Some((file, line))) = (test_function(profile, frame), place) {
                let call = Call {
                    function,
                    file,
                    line,
                };
                let row = match known.get(&call) {
                    Some(&row) => row,
                    None => {
                        let row = self.calls.len() as u32;
                        self.calls.try_push(call)?;
                        known.try_put(call, row)?;
                        row
                    }
                };
                test.try_push(row)?;
            }
            is_in_file = is_in_file || name_in_testthat(profile, frame) == Some(FILE);
            place = place_of(profile, frame).or(place);
            if is_in_file && running.file.is_none() {
                running.file = place_of(profile, frame).map(|(file, _)| file);
            }
        }
        if !test.is_empty() {
            running.test = Some(self.tests.intern(test)?);
        }
        Ok(running)
    }
}

fn place_of(profile: &Profile, frame: LocationId) -> Option<(StringId, i32)> {
    let line = profile.locations.get(frame).line_for_r();
    let file = profile.function_of(frame)?.filename;
    let name = profile.strings.get(file);
    (line > 0 && !name.is_empty() && !is_deparsed(name)).then_some((file, line))
}

/// The name of a function of testthat, or of one that may be so.
fn name_in_testthat(profile: &Profile, frame: LocationId) -> Option<&str> {
    let name = profile.strings.get(profile.function_of(frame)?.name);
    match package_of(profile, frame) {
        Some(PACKAGE) => {}
        Some(_) => return None,
        None if place_of(profile, frame).is_some() => return None,
        None => {}
    }
    Some(name.strip_prefix("testthat::").unwrap_or(name))
}

fn test_function(profile: &Profile, frame: LocationId) -> Option<&'static str> {
    let name = name_in_testthat(profile, frame)?;
    FUNCTIONS.into_iter().find(|&function| function == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Source, SourceId};

    const GO_ON: Stop = &|| false;

    /// A profile of these stacks, written `a>b@file:3`, outermost first; `[file]` is `<file>`.
    fn profile(stacks: &[&str]) -> Profile {
        let mut profile = Profile::default();
        let source: SourceId = profile.add_source(Source::default()).unwrap();
        for text in stacks {
            let mut frames = Vec::new();
            for frame in text.split('>') {
                let (name, place) = frame.split_once('@').unwrap_or((frame, ":0"));
                let (file, line) = place.rsplit_once(':').unwrap();
                let file = file.replace('[', "<").replace(']', ">");
                let file = profile.strings.intern(&file).unwrap();
                let line = line.parse().unwrap();
                frames.insert(0, profile.frame(name, file, line).unwrap());
            }
            let stack = profile.stacks.push(&frames).unwrap();
            profile.samples.stack.push(stack);
            profile.samples.source.try_push(source).unwrap();
        }
        profile
    }

    /// The file and the calls of each sample, such as `a.R test_that:3 it:4`.
    fn running(stacks: &[&str]) -> Vec<String> {
        let profile = profile(stacks);
        let found = TestCalls::find(&profile, GO_ON).unwrap();
        let text = |running: &Running| {
            let mut text = running
                .file
                .map_or("-", |file| profile.strings.get(file))
                .to_owned();
            for &row in running.test.map_or(&[][..], |test| found.tests.get(test)) {
                let Call {
                    function,
                    file,
                    line,
                } = found.calls[row as usize];
                text += &format!(" {function}:{}:{line}", profile.strings.get(file));
            }
            text
        };
        found.samples.iter().map(text).collect()
    }

    #[test]
    fn tests_are_the_lines_of_their_calls() {
        let file = "test_file>source_file>eval@a.R:";
        let [one, nested, outside, loaded, helper] = [
            "7>test_that>test_code>eval@a.R:8>f@b.R:1",
            "9>describe>test_code>eval@a.R:10>it>test_code>eval@a.R:11>f",
            "1>f",
            "0>f",
            "3>check@helper.R:20>testthat::test_that>eval@helper.R:21>f",
        ]
        .map(|rest| format!("{file}{rest}"));
        // Functions of packages have lines of the text that R makes of them.
        let deparsed = "test_file@[testthat::test_file]:3>source_file>eval@a.R:7>test_that@[testthat::test_that]:5>\
            test_code>eval@a.R:8>f@[pkg::f]:1";
        let found = running(&[
            &one, &nested, &outside, &loaded, &helper, deparsed, "f@c.R:1", "g",
        ]);
        let expected = [
            "a.R test_that:a.R:7",
            "a.R describe:a.R:9 it:a.R:10",
            "a.R",
            "-",
            "a.R test_that:helper.R:20",
            "a.R test_that:a.R:7",
            "-",
            "-",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn functions_of_the_user_are_no_tests() {
        let own = "source_file>eval@a.R:3>it@a.R:1>f";
        assert_eq!(
            running(&[own, "it>f", "eval@a.R:3>f>test_that"]),
            ["a.R", "-", "- test_that:a.R:3"]
        );
        let mut of_package = profile(&["eval@a.R:3>test_that>f"]);
        let functions: Vec<_> = of_package.functions.iter().copied().collect();
        of_package.functions = Default::default();
        for mut function in functions {
            function.package = Some(of_package.strings.intern("tinytest").unwrap());
            of_package.functions.push(function).unwrap();
        }
        assert!(
            TestCalls::find(&of_package, GO_ON)
                .unwrap()
                .calls
                .is_empty()
        );
    }
}
