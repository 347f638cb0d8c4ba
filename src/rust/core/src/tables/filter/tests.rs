//! Tests with stacks written as letters, and with small tables.

use super::frame::Frame;
use super::rules::drop_called;
use super::*;
use crate::model::LocationId;
use crate::schema::memory_tables::{MemoryColumn, MemoryTable, MemoryTables};
use crate::tables::check_v2;

/// A stack written as letters, innermost first: a capital letter is a frame that was inlined into
/// the next one, a dash is an address without a symbol.
fn stack(text: &str) -> Vec<Frame> {
    let mut group = 0;
    let mut frames = Vec::new();
    for (row, letter) in text.bytes().enumerate() {
        let location = LocationId(letter.to_ascii_lowercase().into());
        frames.push(Frame {
            location,
            with_package: location,
            row,
            group,
            has_function: letter != b'-',
            is_native: letter == b'n',
            is_finalizer: letter == b'z',
            stays: true,
        });
        group += u32::from(!letter.is_ascii_uppercase());
    }
    frames
}

fn matching(letters: &str) -> Vec<i32> {
    let mut rows = vec![0; 128];
    letters.bytes().for_each(|l| rows[usize::from(l)] = 1);
    rows
}

fn left(text: &str, frames: &[Frame]) -> String {
    let letters = text.chars().zip(frames);
    letters.filter(|(_, f)| f.stays).map(|(l, _)| l).collect()
}

fn dropped(text: &str, letters: &str) -> String {
    let mut frames = stack(text);
    drop_called(&mut frames, &Matching(&matching(letters)));
    left(text, &frames)
}

fn filtered(text: &str, filters: &Filters) -> Option<String> {
    let mut frames = stack(text);
    let stays = filters.apply(&mut frames, 0);
    stays.then(|| left(text, &frames))
}

#[test]
fn dropping_starts_at_the_outermost_match_below_a_user_frame() {
    assert_eq!(dropped("abcbd", "b"), "d");
    assert_eq!(dropped("abcd", "d"), "abcd");
    assert_eq!(dropped("abcd", "bd"), "cd");
    assert_eq!(dropped("abcd", "abcd"), "abcd");
    assert_eq!(dropped("abcd", "x"), "abcd");
    assert_eq!(dropped("", "x"), "");
}

#[test]
fn dropping_cuts_the_lines_of_a_location() {
    assert_eq!(dropped("aBcd", "b"), "cd");
    assert_eq!(dropped("aBcd", "c"), "d");
    assert_eq!(dropped("aBCde", "b"), "Cde");
    assert_eq!(dropped("aBCd", "b"), "aCd", "no user frame but a itself");
    // Matching lines are removed from every location, even before the user frame.
    assert_eq!(dropped("aBc", "b"), "ac");
    assert_eq!(dropped("aBcBc", "b"), "acc");
    assert_eq!(dropped("aBcBcd", "b"), "cd");
    assert_eq!(dropped("aB-cd", "b"), "cd", "an address is no line");
}

#[test]
fn focus_and_ignore_are_about_the_stack() {
    let (b, c) = (matching("b"), matching("c"));
    let focus = Filters {
        focus: Some(Matching(&b)),
        ..Filters::default()
    };
    assert_eq!(filtered("abc", &focus).as_deref(), Some("abc"));
    assert_eq!(filtered("ac", &focus), None);
    assert_eq!(filtered("", &focus), None);
    let both = Filters {
        ignore: Some(Matching(&c)),
        ..focus
    };
    assert_eq!(filtered("abc", &both), None);
    assert_eq!(filtered("ab", &both).as_deref(), Some("ab"));
}

#[test]
fn hide_and_show_are_about_lines() {
    let (b, ab) = (matching("b"), matching("ab"));
    let hide = Filters {
        hide: Some(Matching(&b)),
        ..Filters::default()
    };
    assert_eq!(filtered("aBcd", &hide).as_deref(), Some("acd"));
    assert_eq!(filtered("a-B-", &hide).as_deref(), Some("a-"));
    assert_eq!(filtered("bb", &hide), None);
    assert_eq!(filtered("", &hide), None);
    let show = Filters {
        show: Some(Matching(&ab)),
        ..Filters::default()
    };
    assert_eq!(filtered("aBcd-b", &show).as_deref(), Some("aBb"));
    assert_eq!(filtered("c-", &show), None);
    let both = Filters {
        hide: Some(Matching(&b)),
        ..show
    };
    assert_eq!(filtered("aBcd-b", &both).as_deref(), Some("a"));
}

#[test]
fn outermost_frames_of_r_are_cut_with_native_ones_among_them() {
    let cut = |text, outermost| {
        let filters = Filters {
            outermost,
            ..Filters::default()
        };
        filtered(text, &filters)
    };
    assert_eq!(cut("abcd", 2).as_deref(), Some("ab"));
    assert_eq!(cut("anbncnn", 1).as_deref(), Some("anbn"));
    assert_eq!(cut("anbncnn", 2).as_deref(), Some("an"));
    assert_eq!(cut("nabc", 3).as_deref(), Some("n"));
    // A finalizer has no callers.
    assert_eq!(cut("z", 2).as_deref(), Some("z"));
    assert_eq!(cut("za", 1).as_deref(), Some("z"));
    for (text, outermost) in [("ab", 2), ("a", 2), ("", 1), ("nn", 1)] {
        assert_eq!(cut(text, outermost), None);
    }
}

#[test]
fn stacks_are_cut_at_either_end() {
    let b = matching("b");
    let outer = Filters {
        show_from: Some(Matching(&b)),
        ..Filters::default()
    };
    assert_eq!(filtered("abcbd", &outer).as_deref(), Some("abcb"));
    assert_eq!(filtered("aBcBcd", &outer).as_deref(), Some("aBB"));
    assert_eq!(filtered("acd", &outer), None);
    let inner = Filters {
        prune_from: Some(Matching(&b)),
        ..Filters::default()
    };
    assert_eq!(filtered("abcbd", &inner).as_deref(), Some("bcbd"));
    assert_eq!(filtered("aABcABcd", &inner).as_deref(), Some("BcBcd"));
    assert_eq!(filtered("acd", &inner).as_deref(), Some("acd"));
    assert_eq!(filtered("", &inner).as_deref(), Some(""));
}

#[test]
fn matches_that_are_too_short_match_nothing() {
    let filters = Filters {
        drop: vec![Matching(&[])],
        drop_of_source: &[1],
        hide: Some(Matching(&[])),
        ..Filters::default()
    };
    assert_eq!(filtered("aBcd", &filters).as_deref(), Some("aBcd"));
    for rule in [0, -1, 2, i32::MIN] {
        let filters = Filters {
            drop_of_source: &[rule],
            ..Filters::default()
        };
        assert_eq!(filtered("ab", &filters).as_deref(), Some("ab"));
    }
}

#[test]
fn tables_in_any_order_get_new_depths() {
    let mut tables = MemoryTables::default();
    let names = texts(&["f", "f", "f"]);
    let zeros = integers(&[0, 0, 0]);
    for (name, columns) in [
        (
            "meta",
            vec![("key", texts(&["version"])), ("value", texts(&["2.0"]))],
        ),
        (
            "sources",
            vec![
                ("source_id", integers(&[7])),
                ("source_type", texts(&["rprof"])),
                ("source_uri", texts(&["a"])),
                ("source_timestamp", MemoryColumn::Doubles(vec![0.0])),
            ],
        ),
        (
            "samples",
            vec![
                ("sample_id", integers(&[5, 3])),
                ("source_id", integers(&[7, 7])),
            ],
        ),
        (
            "sample_values",
            vec![
                ("sample_id", integers(&[])),
                ("type", texts(&[])),
                ("unit", texts(&[])),
                ("value", MemoryColumn::Doubles(vec![])),
            ],
        ),
        (
            "sample_locations",
            vec![
                ("sample_id", integers(&[3, 5, 5, 5])),
                ("depth", integers(&[2, 9, 4, 1])),
                ("location_id", integers(&[2, 1, 2, 3])),
            ],
        ),
        (
            "locations",
            vec![
                ("location_id", integers(&[1, 2, 3])),
                ("function_id", integers(&[1, 2, 3])),
                ("line", zeros.clone()),
                (".inlined", MemoryColumn::Logicals(vec![0, 0, 1])),
            ],
        ),
        (
            "functions",
            vec![
                ("function_id", integers(&[1, 2, 3])),
                ("name", names.clone()),
                ("system_name", names.clone()),
                ("filename", names),
                ("start_line", zeros),
            ],
        ),
    ] {
        let (names, columns) = columns.into_iter().unzip();
        tables.tables.push(MemoryTable::new(name, names, columns));
    }
    let filters = Filters {
        hide: Some(Matching(&[0, 1, 0])),
        ..Filters::default()
    };
    let inputs = tables.inputs();
    let reading = check_v2(&MemoryTables::list(&inputs), &|| false).unwrap();
    let left = filter(&reading, &filters, true, &|| false).unwrap();
    assert_eq!(left.samples, [true, false]);
    assert_eq!(left.outermost, [true, false]);
    let FilteredFrames::Rows {
        depths,
        no_longer_inlined,
    } = left.frames
    else {
        panic!("Nothing is known of these tables.");
    };
    assert_eq!(depths, [0, 2, 0, 1]);
    let inlined_into_hidden = [3];
    assert_eq!(no_longer_inlined, inlined_into_hidden);
}

fn integers(values: &[i32]) -> MemoryColumn {
    MemoryColumn::Integers(values.to_vec())
}

fn texts(texts: &[&str]) -> MemoryColumn {
    MemoryColumn::Texts(texts.iter().map(|text| Some((*text).into())).collect())
}

#[test]
fn samples_are_selected_regardless_of_their_stacks() {
    let filters = Filters {
        samples: &[1, 0, 1],
        ..Filters::default()
    };
    let selected: Vec<bool> = (0..4).map(|sample| filters.selects(sample)).collect();
    assert_eq!(selected, [true, false, true, true]);
    assert!(Filters::default().selects(0));
}

/// Letters that are left out after a frame `x`.
#[derive(Debug)]
struct After(&'static str);

impl Plumbing for After {
    fn shows(&self, id: LocationId, position: &mut Position) -> bool {
        let letter = char::from(u8::try_from(id.row()).unwrap());
        let is_shown = !(position.inside && self.0.contains(letter));
        position.inside |= letter == 'x';
        is_shown
    }
}

#[test]
fn what_is_left_out_depends_on_outer_frames_and_no_sample_is_lost() {
    let plumbing = After("abx");
    let filters = Filters {
        plumbing: Some(&plumbing),
        ..Filters::default()
    };
    let left = |text| filtered(text, &filters).unwrap();
    assert_eq!(left("abcxab"), "cxab");
    assert_eq!(left("abxx"), "x");
    // The frames of other rules are not there.
    let hidden = matching("x");
    let filters = Filters {
        hide: Some(Matching(&hidden)),
        ..filters
    };
    assert_eq!(filtered("abcxab", &filters).unwrap(), "abcab");
}

#[test]
fn my_code_is_shown_with_what_it_calls() {
    let rows = matching("m");
    let filters = Filters {
        mine: Some(Matching(&rows)),
        ..Filters::default()
    };
    let left = |text| filtered(text, &filters).unwrap();
    assert_eq!(left("cbaMd"), "aM");
    assert_eq!(left("bamcmd"), "amcm");
    assert_eq!(left("cba"), "a");
    assert_eq!(left(""), "");
}
