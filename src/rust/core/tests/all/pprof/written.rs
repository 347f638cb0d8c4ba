//! The content of written files, mainly for profiles of Rprof.

use super::build::*;
use profile_core::formats::pprof::{self, Writer};
use profile_core::formats::{self, Input, Losses, Writer as _};
use profile_core::model::{Location, Locations, Profile};
use profile_core::{Error, Result};
use std::fs;

fn again(profile: &Profile, aggregate: bool) -> Profile {
    try_read(&write(profile, aggregate)).unwrap().0
}

#[test]
fn rprof_becomes_what_pprof_users_expect() {
    let profile = read_rprof(
        "memory profiling: GC profiling: line profiling: sample.interval=20000\n\
         #File 1: a.R\n\
         :1:2:3:4:\"f\" 1#3 \"%<>%\" \n\
         :2:2:3:4:\"<GC>\" \"f\" 1#3 \"%<>%\" \n\
         :3:2:3:4:\"f\" 1#3 \"%<>%\" \n",
    );
    let summed = again(&profile, true);
    let shown = show(&summed);
    assert_eq!(shown[0], "samples/count cpu/nanoseconds alloc_space/bytes ");
    assert_eq!(shown[1..].len(), 2);
    assert!(shown[1].starts_with("2 40000000 8 : f"), "{}", shown[1]);
    assert!(shown[2].starts_with("1 20000000 8 : <GC>"), "{}", shown[2]);
    assert!(shown[2].ends_with("[gc (Some(\"yes\"), None, None)]"));
    let source = &summed.sources[0];
    assert_eq!(source.default_type.as_deref(), Some("cpu"));
    assert_eq!(source.duration, Some(60_000_000));
    assert_eq!(
        comments(&summed),
        [["Rprof: Rprof.out, 20000 us, memory gc line"]]
    );
    let period = source.period.as_ref().unwrap();
    let unit = period.type_.as_ref().map(|type_| type_.unit.as_str());
    assert_eq!((period.value, unit), (2e7, Some("nanoseconds")));

    let ordered = show(&again(&profile, false));
    assert_eq!(
        ordered[0],
        "samples/count cpu/nanoseconds alloc_space/bytes vsize_small/bytes \
         vsize_large/bytes nodes/bytes duplications/count alloc_size/bytes dealloc_size/bytes "
    );
    assert_eq!(ordered.len(), 4);
    // Levels are not summed, regardless of the source.
    assert_eq!(show(&again(&again(&profile, false), true)), shown);
}

#[test]
fn names_stand_alone() {
    // pprof demangles names that equal the system name.
    let bytes = write(
        &read_rprof("sample.interval=20000\n\"<Anonymous>\" \n"),
        true,
    );
    let function = new().uint(1, 1).uint(2, 5);
    let field = new().message(5, function).0;
    assert!(bytes.windows(field.len()).any(|w| w == field));
    let summed = try_read(&bytes).unwrap().0;
    assert_eq!(frames(&summed, 0), "<Anonymous>:0 ");
}

#[test]
fn time_that_is_recorded_goes_before_time_that_is_derived() {
    let mut profile = read_rprof("sample.interval=20000\n\"f\" \n\"g\" \n");
    let mut time = profile.values[0].clone();
    time.type_.name = "cpu".to_owned();
    time.type_.unit = "nanoseconds".to_owned();
    time.column = vec![f64::NAN, 5.0].into();
    profile.values.push(time);
    let expected = [
        "samples/count cpu/nanoseconds ",
        "1 20000000 : f:0 ",
        "1 5 : g:0 ",
    ];
    assert_eq!(show(&again(&profile, true)), expected);
    // Types with different units are different.
    profile.values[1].type_.unit = "count".to_owned();
    assert_eq!(
        show(&again(&profile, true))[1..],
        ["1 0 : f:0 ", "1 5 : g:0 "]
    );
}

#[test]
fn runs_are_labels() {
    let profile = read_rprof(
        "sample.interval=20000\n\"f\" \nsample.interval=10000\n\"f\" \n\"<GC>\" \"f\" \n\"f\" \n",
    );
    let summed = again(&profile, true);
    let expected = [
        "samples/count cpu/nanoseconds ",
        "1 20000000 : f:0 [run (Some(\"run-1\"), None, None)]",
        "2 20000000 : f:0 [run (Some(\"run-2\"), None, None)]",
        "1 10000000 : <GC>:0 f:0 \
         [gc (Some(\"yes\"), None, None)][run (Some(\"run-2\"), None, None)]",
    ];
    assert_eq!(show(&summed), expected);
    assert_eq!(summed.sources[0].duration, Some(50_000_000));
    let period = summed.sources[0].period.as_ref().unwrap();
    assert_eq!(period.value, 2e7);
    // No label is written twice.
    assert_eq!(show(&again(&summed, true)), expected);
}

#[test]
fn a_profile_may_be_empty() {
    let summed = again(&read_rprof("sample.interval=20000\n"), true);
    assert_eq!(show(&summed), ["samples/count cpu/nanoseconds "]);
    assert!(show(&again(&Profile::default(), true))[0].is_empty());
}

#[test]
fn frame_types_are_left_out() {
    let profile = read_rprof("sample.interval=20000\n\"f\" \"g\" \n\"h\" \n\"f\" \"g\" \n");
    let mut typed = profile.clone();
    let native = typed.frame_type("native").unwrap();
    assert!(native.is_some() && typed.frame_type("").unwrap().is_none());
    typed.locations = Locations::default();
    for &location in profile.locations.iter() {
        let location = Location {
            frame_type: native,
            ..location
        };
        let id = typed.locations.push(location).unwrap();
        assert_eq!(
            typed.frame_type_of(&typed.locations.get(id)),
            Some("native")
        );
    }
    assert_eq!(write(&typed, true), write(&profile, true));
    assert_eq!(write(&typed, false), write(&profile, false));
    // Stacks that do not differ in anything else are equal.
    let stack = typed.stacks.get(typed.samples.stack[2]);
    let mut stack = stack.to_vec().unwrap();
    let unknown = profile.locations.get(stack[0]);
    stack[0] = typed.locations.push(unknown).unwrap();
    typed.samples.stack[2] = typed.stacks.push(&stack).unwrap();
    assert_eq!(write(&typed, true), write(&profile, true));
}

#[test]
fn labels_in_another_order_are_the_same() {
    let label = |key: u64| new().uint(1, key).uint(2, 5);
    let both = |a, b| sample(&[1], &[1]).message(3, label(a)).message(3, label(b));
    let message = base().message(2, both(3, 4)).message(2, both(4, 3));
    let profile = read(&message);
    assert_eq!(again(&profile, true).samples.len(), 1);
    assert_eq!(show(&again(&profile, false)), show(&profile));
}

#[test]
fn what_does_not_fit_is_said() {
    let fails = |value: f64| -> Result<Losses> {
        let mut profile = read_rprof("sample.interval=20000\n\"f\" \n\"f\" \n");
        profile.values[0].column.each().unwrap()[1] = value;
        let mut out = Vec::new();
        Writer::default().write(&profile, &mut out, &|| false)
    };
    for value in [0.5, f64::INFINITY, 1e19, -1e19] {
        let error = fails(value).unwrap_err();
        assert!(matches!(error, Error::Lossy(_)));
        let text = error.to_string();
        assert!(
            text.contains("Sample 2") && text.contains("`samples`"),
            "{text}"
        );
    }
    // The count of a sample can be stored, its time cannot.
    assert!(fails(9e15).unwrap_err().to_string().contains("`cpu`"));
    assert!(fails(f64::NAN).is_ok());
    let sum = base()
        .message(2, sample(&[1], &[1 << 62]))
        .message(2, sample(&[1], &[1 << 62]));
    let mut out = Vec::new();
    let error = Writer::default().write(&read(&sum), &mut out, &|| false);
    assert!(error.unwrap_err().to_string().contains("sum of type"));
}

#[test]
fn files_are_written_whole_and_always_alike() {
    let path = std::env::temp_dir().join(format!("profile-pprof-{}.pb.gz", std::process::id()));
    let profile = read_rprof("sample.interval=20000\n\"f\" \n");
    let options = Writer::default();
    formats::write_file(&options, &profile, &path, None, &|| false).unwrap();
    let first = fs::read(&path).unwrap();
    let stopped = formats::write_file(&options, &profile, &path, None, &|| true);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    assert_eq!(fs::read(&path).unwrap(), first);
    formats::write_file(&options, &profile.clone(), &path, None, &|| false).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first);
    assert_eq!(first[4..8], [0; 4]);
    let (read, _) = formats::read(Input::File(&path), Some(&pprof::FORMAT), origin(), &|| {
        false
    })
    .unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(show(&read)[1], "1 20000000 : f:0 ");
    let missing = formats::read(Input::File(&path), Some(&pprof::FORMAT), origin(), &|| {
        false
    });
    assert!(matches!(missing, Err(Error::Open { .. })));
}
