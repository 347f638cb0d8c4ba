//! Checks that only the table of known sample types contains their names.

use profile_core::model::known_types::{KNOWN_TYPES, known_type};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that also occur as words in the code.
const WORDS: [&str; 5] = ["samples", "cpu", "wall", "nodes", "calls"];

/// The files with this extension in a folder and those below it, except tests.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap_or_default().to_owned();
        if name == "tests" {
            continue;
        }
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

#[test]
fn no_other_place_names_them() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    files(&core.join("src"), "rs", &mut all);
    files(&core.join("../src"), "rs", &mut all);
    files(&core.join("../../../R"), "R", &mut all);
    assert!(all.len() > 300);
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_table = path.ends_with("model/known_types.rs");
        for known in KNOWN_TYPES {
            let named = format!("\"{}\"", known.name);
            let lines = code.lines().filter(|line| line.contains(&named));
            let lines = lines.filter(|line| !line.trim_start().starts_with(['#', '/']));
            let expected = usize::from(is_table);
            if !WORDS.contains(&known.name) {
                assert_eq!(lines.count(), expected, "{named} in {}", path.display());
            }
        }
    }
}

#[test]
fn each_type_is_found_by_its_name_and_unit() {
    for known in KNOWN_TYPES {
        assert_eq!(known_type(known.name, known.unit), Some(known));
        assert_eq!(known_type(known.name, "other"), None);
    }
}
