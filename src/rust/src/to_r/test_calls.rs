//! The tests that run in the samples of a profile.

use crate::arena::{Arena, RObject};
use profile_core::analysis::test_calls::{Running, TestCalls};
use profile_core::error::Result;
use profile_core::limits::memory::{TryCollect, TryGrow, with_room};
use profile_core::model::Profile;

/// `list(calls, tests, files, samples)`: `calls` has the columns `name`, `file` and `line`; `tests` the columns `test` and `call`, a
/// row for each call around a test, the outermost one first; `files` are names; and
/// `samples` has the columns `file` and `test`, numbers of `files` and of `tests`, or NA.
pub fn test_calls<'call>(
    arena: Arena<'call>,
    profile: &Profile,
    found: &TestCalls,
) -> Result<RObject<'call>> {
    let text = |id| profile.strings.get(id);
    let calls = &found.calls;
    let calls = arena.list(&[
        (
            "name",
            arena.texts(&calls.iter().map(|call| call.function).try_vec()?)?,
        ),
        (
            "file",
            arena.texts(&calls.iter().map(|call| text(call.file)).try_vec()?)?,
        ),
        (
            "line",
            arena.integer_vector(&calls.iter().map(|call| call.line).try_vec()?)?,
        ),
    ])?;
    let (mut test, mut call) = (Vec::new(), Vec::new());
    for id in found.tests.ids() {
        for &row in found.tests.get(id) {
            test.try_push(id as i32 + 1)?;
            call.try_push(row as i32 + 1)?;
        }
    }
    let tests = arena.list(&[
        ("test", arena.integer_vector(&test)?),
        ("call", arena.integer_vector(&call)?),
    ])?;
    let mut files: Vec<&str> = Vec::new();
    let mut file_of = with_room(found.samples.len())?;
    let mut test_of = with_room(found.samples.len())?;
    let none = i32::MIN;
    for Running { file, test } in &found.samples {
        file_of.try_push(match file.map(text) {
            Some(name) => match files.iter().rposition(|&other| other == name) {
                Some(row) => row as i32 + 1,
                None => {
                    files.try_push(name)?;
                    files.len() as i32
                }
            },
            None => none,
        })?;
        test_of.try_push(test.map_or(none, |test| test as i32 + 1))?;
    }
    let samples = arena.list(&[
        ("file", arena.integer_vector(&file_of)?),
        ("test", arena.integer_vector(&test_of)?),
    ])?;
    arena.list(&[
        ("calls", calls),
        ("tests", tests),
        ("files", arena.texts(&files)?),
        ("samples", samples),
    ])
}
