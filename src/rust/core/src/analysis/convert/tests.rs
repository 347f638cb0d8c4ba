//! Tests of conversions without R: the columns become in-memory tables, which are read again.

use super::*;
use crate::error::{Error, Result};
use crate::limits::cancel::Stop;
use crate::model::{Profile, RprofOptions, Source, SourceFile, SourceId, SourceKind, Values};
use crate::schema::memory_tables::{MemoryColumn, MemoryTable, MemoryTables};
use crate::schema::{FUNCTIONS, LOCATIONS, META_V1, Table, Version};
use crate::tables::TableList;

const GO_ON: &dyn Fn() -> bool = &|| false;

/// [`counted()`] or [`from_v1()`].
type Reading = fn(&TableList, &Origin<&str>, Stop) -> Result<Profile>;

/// A profile with one source and a sample for each text, whose letters are the names of the
/// functions of its stack, innermost first; function `f` is in the file `f.R`.
fn profile(stacks: &[&str]) -> Profile {
    let mut profile = Profile::default();
    let kind = SourceKind::MANUAL;
    let source = Source {
        kind,
        ..Source::default()
    };
    let source = profile.add_source(source).unwrap();
    let mut counts = Values::absent("samples", "count", 0).unwrap();
    for text in stacks {
        let mut stack = Vec::new();
        for name in text.split("").filter(|name| !name.is_empty()) {
            let filename = profile.strings.intern(&format!("{name}.R")).unwrap();
            stack.push(profile.frame(name, filename, 1).unwrap());
        }
        // Equal stacks are separate rows, as some readers create them.
        let stack = profile.stacks.push(&stack).unwrap();
        profile.samples.stack.push(stack);
        profile.samples.source.try_push(source).unwrap();
        counts.column.try_push(1.0).unwrap();
    }
    profile.values.push(counts);
    profile
}

fn with_counts(counts: &[f64]) -> Profile {
    let mut profile = profile(&["fg", "hg", "fg"]);
    profile.values[0].column = counts.to_vec().into();
    profile
}

fn stacks(profile: &Profile) -> Vec<String> {
    let name = |location: &_| {
        let function = profile.function_of(*location).unwrap();
        profile.strings.get(function.name)
    };
    let stacks = profile.samples.stack.iter();
    stacks
        .map(|&stack| {
            let stack = profile.stacks.get(stack).to_vec().unwrap();
            stack.iter().map(name).collect()
        })
        .collect()
}

/// The tables of version "1.0".
fn tables(profile: &Profile, columns: &ColumnsV1) -> MemoryTables {
    let mut tables = MemoryTables::default();
    let one = Version::One;
    META_V1.write(profile, one, &mut tables, GO_ON).unwrap();
    let text = |text: &str| MemoryColumn::Texts(vec![Some(text.to_owned())]);
    tables.tables.push(MemoryTable::new(
        "sample_types",
        vec!["type", "unit"],
        vec![text("samples"), text("count")],
    ));
    let stack = |&row: &i32| {
        let row = row as usize;
        let start = if row == 0 { 0 } else { columns.ends[row - 1] };
        columns.location_ids[start..columns.ends[row]].to_vec()
    };
    tables.tables.push(MemoryTable::new(
        "samples",
        vec!["value", "locations"],
        vec![
            MemoryColumn::Integers(columns.value.clone()),
            MemoryColumn::Stacks(columns.stack_of.iter().map(stack).collect()),
        ],
    ));
    LOCATIONS.write(profile, one, &mut tables, GO_ON).unwrap();
    FUNCTIONS.write(profile, one, &mut tables, GO_ON).unwrap();
    tables
}

/// Converts to version "1.0" and back by `read`.
fn back(profile: &Profile, origin: &Origin<&str>, read: Reading) -> Profile {
    let tables = tables(profile, &to_v1(profile, GO_ON).unwrap());
    let inputs = tables.inputs();
    read(&MemoryTables::list(&inputs), origin, GO_ON).unwrap()
}

fn error_of(profile: &Profile) -> String {
    let error = to_v1(profile, GO_ON).unwrap_err();
    assert!(matches!(error, Error::LossyV1(_)));
    assert_eq!(error.class(), "profile_error_lossy");
    error.to_string()
}

#[test]
fn samples_are_repeated_by_their_counts() {
    let one = with_counts(&[2.0, 1.0, 3.0]);
    let two = back(&one, &Origin::Manual, from_v1);
    assert_eq!(stacks(&two), ["fg", "fg", "hg", "fg", "fg", "fg"]);
    assert!(two.samples.source.iter().eq(&[SourceId(0); 6]));
    assert!(two.counts().unwrap().column.iter().eq(&[1.0; 6]));
    assert_eq!(two.sources[0].kind, SourceKind::MANUAL);
    // Writers of files use the counts without repeating samples.
    let counted = back(&one, &Origin::Manual, counted);
    assert_eq!(stacks(&counted), ["fg", "hg", "fg"]);
    assert!(counted.counts().unwrap().column.iter().eq(&[2.0, 1.0, 3.0]));
}

#[test]
fn more_samples_than_a_table_has_rows_are_an_error() {
    let one = with_counts(&[2_147_483_647.0, 1.0, 1.0]);
    let tables = tables(&one, &to_v1(&one, GO_ON).unwrap());
    let inputs = tables.inputs();
    let list = MemoryTables::list(&inputs);
    let error = from_v1(&list, &Origin::Manual, GO_ON).unwrap_err();
    assert_eq!(
        error.to_string(),
        "2147483649 samples: a table of version \"2.0\" has 2147483647 rows at most."
    );
}

#[test]
fn equal_stacks_are_one() {
    let columns = to_v1(&profile(&["fg", "hg", "", "fg"]), GO_ON).unwrap();
    assert_eq!(columns.value, [1; 4]);
    assert_eq!(columns.stack_of, [0, 1, 2, 0]);
    assert_eq!(columns.ends, [2, 4, 4]);
    assert_eq!(columns.location_ids, [1, 2, 3, 2]);
}

#[test]
fn samples_without_a_count_are_left_out() {
    let columns = to_v1(&with_counts(&[f64::NAN, 7.0, 0.0]), GO_ON).unwrap();
    assert_eq!(columns.value, [7]);
    assert_eq!(columns.stack_of, [1]);
}

#[test]
fn counts_are_integers() {
    assert_eq!(
        error_of(&with_counts(&[1.0, 3e9, 1.0])),
        "Sample 2 has the count 3000000000, but version \"1.0\" contains only integers from 1 to \
         2147483647."
    );
    let error = error_of(&with_counts(&[1.0, 1.0, 0.5]));
    assert!(error.starts_with("Sample 3 has the count 0.5, "), "{error}");
}

#[test]
fn the_count_is_samples_or_the_first_type_in_count() {
    let mut of_objects = with_counts(&[1.0, 2.0, 3.0]);
    let mut time = Values::absent("cpu", "nanoseconds", 0).unwrap();
    time.column = vec![1e7; 3].into();
    let mut objects = Values::absent("objects", "count", 0).unwrap();
    objects.column = vec![4.0, 5.0, 6.0].into();
    of_objects.values.insert(0, time);
    of_objects.values.insert(1, objects);
    assert_eq!(to_v1(&of_objects, GO_ON).unwrap().value, [1, 2, 3]);
    of_objects.values.pop();
    assert_eq!(to_v1(&of_objects, GO_ON).unwrap().value, [4, 5, 6]);
    of_objects.values.pop();
    assert_eq!(
        error_of(&of_objects),
        "Version \"1.0\" contains counts of samples, but no value type of this profile has the \
         unit `count`."
    );
    let mut empty = profile(&[]);
    empty.values.clear();
    assert!(to_v1(&empty, GO_ON).unwrap().value.is_empty());
}

#[test]
fn headers_and_files_become_text_and_back() {
    let mut one = with_counts(&[2.0, 1.0, 1.0]);
    let origin = Origin::Rprof {
        headers: vec![
            "GC profiling: sample.interval=1000",
            "no header",
            "sample.interval=5",
        ],
        files: vec![
            "#File 7: x.R",
            "no file",
            "#File 1: h.R",
            "#File 2: f.R",
            "#File 3: ",
        ],
    };
    let two = back(&one, &origin, from_v1);
    let options = two.sources.iter().map(|source| source.options.unwrap());
    let gc = RprofOptions {
        gc: true,
        ..RprofOptions::default()
    };
    assert_eq!(options.collect::<Vec<_>>(), [gc, RprofOptions::default()]);
    // All samples belong to the first run.
    assert!(two.samples.source.iter().eq(&[SourceId(0); 4]));
    // `f.R` is needed by the first sample, and the lines keep their order.
    let place = |file: &SourceFile| (file.number, file.before);
    let places: Vec<_> = two.sources[0].files.iter().map(place).collect();
    assert_eq!(places, [(7, 0), (1, 0), (2, 0), (3, 4)]);
    assert!(two.sources[1].files.is_empty());
    let Origin::Rprof { headers, files } = to_v1(&two, GO_ON).unwrap().origin else {
        panic!("not of Rprof");
    };
    assert_eq!(
        headers,
        ["GC profiling: sample.interval=1000", "sample.interval=5"]
    );
    assert_eq!(
        files,
        ["#File 7: x.R", "#File 1: h.R", "#File 2: f.R", "#File 3: "]
    );
    // `h.R` is needed after two samples of the first row.
    let origin = Origin::Rprof {
        headers: vec![],
        files: vec!["#File 1: h.R"],
    };
    let two = back(&one, &origin, from_v1);
    assert_eq!(place(&two.sources[0].files[0]), (1, 2));
    assert_eq!(two.sources[0].kind, SourceKind::RPROF);
    assert_eq!(two.sources[0].options, None);
    // Writers of files get one run.
    one.sources.clear();
    let origin = Origin::Rprof {
        headers: vec!["sample.interval=1", "sample.interval=2"],
        files: vec![],
    };
    let counted = back(&one, &origin, counted);
    assert_eq!(counted.sources.len(), 1);
    assert_eq!(counted.sources[0].period.as_ref().unwrap().value, 1.0);
}

#[test]
fn comments_become_text_and_back() {
    let one = profile(&["f"]);
    let origin = Origin::Pprof {
        comments: vec!["one", "", "one"],
    };
    let two = back(&one, &origin, from_v1);
    assert_eq!(two.sources[0].kind, SourceKind::PPROF);
    let comments = ["one", "", "one"].map(str::to_owned).to_vec();
    let origin = to_v1(&two, GO_ON).unwrap().origin;
    assert_eq!(origin, Origin::Pprof { comments });
    assert_eq!(to_v1(&one, GO_ON).unwrap().origin, Origin::Manual);
}
