//! Small profiles for tests.

use crate::model::known_types::SAMPLES;
use crate::model::{COLLECTION, COPYING, Profile, Source, SourceKind, Values};

/// A profile of these stacks, written `a>b:3>c` (outermost first, with lines), with their counts. Samples alternate
/// between two sources. A function `p.f` belongs to the package `p`, and `collection` and `copy` are frames of R that
/// are no functions.
pub fn profile(stacks: &[(&str, f64)]) -> Profile {
    let mut profile = Profile::default();
    let source = Source {
        kind: SourceKind::MANUAL,
        ..Source::default()
    };
    let sources = [source.clone(), source].map(|source| profile.add_source(source).unwrap());
    let mut counts = Values::absent_known(&SAMPLES, 0).unwrap();
    for (row, (text, count)) in stacks.iter().enumerate() {
        let mut frames = Vec::new();
        for frame in text.split('>').filter(|frame| !frame.is_empty()) {
            // A name may contain colons.
            let is_line = |(_, line): &(&str, &str)| line.parse::<i32>().is_ok();
            let (name, line) = frame
                .rsplit_once(':')
                .filter(is_line)
                .unwrap_or((frame, "0"));
            let file = profile.strings.intern("file.R").unwrap();
            let location = profile.frame(name, file, line.parse().unwrap()).unwrap();
            frames.insert(0, location);
        }
        let stack = profile.stacks.push(&frames).unwrap();
        profile.samples.stack.push(stack);
        profile.samples.source.try_push(sources[row % 2]).unwrap();
        counts.column.try_push(*count).unwrap();
    }
    profile.values.push(counts);
    let functions: Vec<_> = profile.functions.iter().copied().collect();
    profile.functions = Default::default();
    for mut function in functions {
        let name = profile.strings.get(function.name).to_string();
        function.package = name
            .split_once('.')
            .map(|(package, _)| profile.strings.intern(package).unwrap());
        let mark = match name.as_str() {
            "collection" => Some(COLLECTION),
            "copy" => Some(COPYING),
            _ => None,
        };
        if let Some(mark) = mark {
            function.name = profile.strings.intern(mark).unwrap();
        }
        profile.functions.push(function).unwrap();
    }
    profile
}
