//! Writing profiles as tables and reading them again, without R: no information of real files of any
//! format is lost.

use crate::common::{go_on, tables};
use crate::memory_tables::{MemoryColumn, MemoryTables};
use profile_core::Error;
use profile_core::formats::{self, Input};
use profile_core::io::input::Origin;
use profile_core::model::Profile;
use profile_core::schema::TABLES;
use profile_core::tables::{check_v2, profile_from_v2, version};
use std::fs;
use std::path::Path;

fn taken_back(tables: &MemoryTables) -> Result<Profile, Error> {
    let inputs = tables.inputs();
    let list = MemoryTables::list(&inputs);
    assert_eq!(version(&list)?, "2.0");
    check_v2(&list, &go_on)?;
    profile_from_v2(&list, &go_on)
}

/// The whole content of tables, including NA.
fn shown(tables: &MemoryTables) -> String {
    format!("{tables:#?}")
}

fn profiles() -> Vec<(String, Profile)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/testthat/data");
    let mut profiles = Vec::new();
    for format in ["rprof", "pprof", "otlp"] {
        let files = fs::read_dir(data.join(format)).unwrap();
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let input = Input::File(&path);
            if let Ok((profile, _)) = formats::read(input, None, Origin::default(), &go_on) {
                profiles.push((name, profile));
            }
        }
    }
    assert!(profiles.len() > 60, "{}", profiles.len());
    profiles
}

#[test]
fn real_profiles_come_back_from_tables() {
    let mut seen: Vec<&str> = Vec::new();
    for (name, profile) in profiles() {
        let given = tables(&profile);
        let back = taken_back(&given).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(shown(&tables(&back)), shown(&given), "{name}");
        for table in &given.tables {
            seen.push(table.name);
            assert_eq!(table.names.len(), table.columns.len());
        }
    }
    for table in TABLES {
        let info = table.info();
        // This table describes the input, not the profile.
        assert!(
            info.about_input || seen.contains(&info.name),
            "{}",
            info.name
        );
    }
}

#[test]
fn an_edited_number_counts_and_not_the_exact_one_beside_it() {
    let (_, profile) = profiles().into_iter().next().unwrap();
    let mut given = tables(&profile);
    let at = given.tables.iter().position(|t| t.name == "sources");
    let sources = &mut given.tables[at.unwrap()];
    let rows = sources.rows;
    let exact = i64::MAX - 1;
    let texts = |text: &str| MemoryColumn::Texts(vec![Some(text.to_owned()); rows]);
    for (plain, wanted) in [
        (exact as f64, Err("must be nanoseconds below 2^63, or NA")),
        ((1_u64 << 62) as f64, Ok(1 << 62)),
        (0.4, Ok(0)),
    ] {
        let sources = &mut given.tables[at.unwrap()];
        let column = MemoryColumn::Doubles(vec![plain; rows]);
        sources.set(".duration_nanos", column);
        sources.set(".duration_nanos_exact", texts("12"));
        match (taken_back(&given), wanted) {
            (Ok(profile), Ok(wanted)) => assert_eq!(profile.sources[0].duration, Some(wanted)),
            (Err(error), Err(rule)) => assert!(error.to_string().contains(rule), "{error}"),
            (found, _) => panic!("{plain}: {:?}", found.map(|_| "no error")),
        }
    }
    let sources = &mut given.tables[at.unwrap()];
    let column = MemoryColumn::Doubles(vec![exact as f64; rows]);
    sources.set(".duration_nanos", column);
    let column = texts(&exact.to_string());
    sources.set(".duration_nanos_exact", column);
    let profile = taken_back(&given).unwrap();
    assert_eq!(profile.sources[0].duration, Some(exact));
}
