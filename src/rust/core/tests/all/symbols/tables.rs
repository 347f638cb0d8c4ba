//! Libraries without debug information: names are from their symbol tables.

use crate::symbols::build::*;
use profile_core::joint::symbols::{NameSource, Symbol};
use std::path::Path;

/// Compares the names at the middle and the end of each function with nm.
fn compare(library: &Path, options: &[&str]) -> Vec<Symbol> {
    let module = module(library);
    let functions = nm(options, library);
    let mut all = Vec::new();
    for known in &functions {
        if known.range.is_empty() {
            continue;
        }
        let last = known.range.end - 1;
        for address in [known.range.start, last] {
            let symbols = ask(&module, &[address]).remove(0);
            let [symbol] = &symbols[..] else {
                panic!("{symbols:?}");
            };
            let names: Vec<&str> = functions
                .iter()
                .filter(|other| other.range.contains(&address))
                .map(|other| other.name.as_str())
                .collect();
            assert!(
                names.contains(&symbol.system_name.as_str()),
                "{symbol:?} {names:?}"
            );
            assert_eq!(symbol.name_source, NameSource::SymbolTable);
            assert_eq!((symbol.filename.as_str(), symbol.line), ("", 0));
            all.extend(symbols);
        }
    }
    all
}

fn is_unnamed(symbols: &[Symbol], name: &str) {
    let [symbol] = symbols else {
        panic!("{symbols:?}");
    };
    assert_eq!(symbol.name_source, NameSource::Address);
    assert_eq!(symbol.name, name);
    assert_eq!(symbol.system_name, name);
    assert_eq!((symbol.filename.as_str(), symbol.line), ("", 0));
}

#[test]
fn the_table_of_symbols_names_functions_of_their_size_only() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2"]);
    let found = compare(&library, &[]);
    assert!(found.iter().any(|symbol| symbol.name == "hidden"));

    // Code between functions has no name, and neither have symbols without a size.
    let functions = nm(&[], &library);
    let named = |address| functions.iter().any(|known| known.range.contains(&address));
    let code = module(&library).code;
    let mut gaps = 0;
    for address in (code.start - BIAS..code.end - BIAS).filter(|address| !named(*address)) {
        let symbols = ask(&module(&library), &[address]).remove(0);
        // Stubs have names as well, see `stubs.rs`.
        if symbols[0].name.ends_with("@plt") {
            continue;
        }
        is_unnamed(&symbols, &unnamed(&library, address));
        gaps += 1;
    }
    assert!(gaps > 50, "{gaps}");
}

#[test]
fn a_stripped_library_names_what_others_may_call() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2", "-g"]);
    let hidden = inside(&library, "hidden");
    let sum = inside(&library, "c_sum");
    output(std::process::Command::new("strip").arg(&library));
    compare(&library, &["-D"]);
    let found = ask(&module(&library), &[sum, hidden]);
    assert_eq!(found[0][0].name, "c_sum");
    let name = unnamed(&library, hidden);
    // All addresses of a function have the same name, which contains its start.
    assert_ne!(name, format!("sum.so+{hidden:#x}"));
    is_unnamed(&found[1], &name);
}

#[test]
fn of_several_names_the_plainest_is_taken() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2"]);
    let address = inside(&library, "__c_other");
    let mut names: Vec<String> = nm(&[], &library)
        .into_iter()
        .filter(|known| known.range.contains(&address))
        .map(|known| known.name)
        .collect();
    names.sort();
    assert_eq!(names, ["__c_other", "c_other", "c_other_name"]);
    assert_eq!(ask(&module(&library), &[address])[0][0].name, "c_other");

    // A global name is preferred to a local one, even if it has leading underscores.
    let source = folder.write(
        "alias.s",
        ".text\n.globl __exported\n.type __exported, @function\n.type f, @function\n\
         __exported:\nf:\n.skip 32, 0x90\n.size __exported, 32\n.size f, 32\n\
         .type inner, @function\ninner:\n.skip 8, 0x90\n.size inner, 8\n\
         .globl versioned\n.type versioned, @function\nversioned:\n.skip 8, 0x90\n\
         .size versioned, 8\n.symver versioned, shown@VERSION_2\n",
    );
    let map = folder.write("alias.map", "VERSION_2 { global: *; };\n");
    let map = format!("-Wl,--version-script={}", map.display());
    let library = folder.compile("cc", &source, &["-nostdlib", &map]);
    let exported = inside(&library, "__exported");
    let found = ask(&module(&library), &[exported, inside(&library, "inner")]);
    assert_eq!(found[0][0].name, "__exported");
    assert_eq!(found[1][0].name, "inner");
    // nm also prints the version.
    let all = nm(&[], &library);
    let shown = all.iter().find(|known| known.name.starts_with("shown@"));
    let shown = shown.unwrap().range.start;
    let name = ask(&module(&library), &[shown]).remove(0).remove(0).name;
    assert!(name == "shown" || name == "versioned", "{name}");
}

#[test]
fn names_of_cxx_are_those_of_the_demangler_without_parameters() {
    if !there("c++") {
        return;
    }
    let folder = Folder::new();
    let source = folder.write("words.cpp", CXX);
    let library = folder.compile("c++", &source, &["-O2"]);
    let found = compare(&library, &[]);
    for symbol in &found {
        // Clones of a function have the same name.
        let plain = symbol.system_name.split('.').next().unwrap();
        let expected = if plain.starts_with("_Z") {
            filt(&[plain]).remove(0)
        } else {
            symbol.system_name.clone()
        };
        assert_eq!(symbol.name, expected, "{symbol:?}");
    }
    for name in [
        "ns::hot_loop",
        "ns::Sum<double>::add",
        "ns::words",
        "cxx_entry",
    ] {
        assert!(found.iter().any(|symbol| symbol.name == name), "{name}");
    }
    assert!(found.iter().any(|symbol| symbol.system_name.contains('.')));
}

#[test]
fn names_of_rust_come_without_a_hash() {
    if !there("rustc") {
        return;
    }
    for mangling in ["legacy", "v0"] {
        let folder = Folder::new();
        let source = folder.write("entry.rs", RUST);
        let mangling = format!("-Csymbol-mangling-version={mangling}");
        let mut options = vec!["-O", "-Cstrip=none", &mangling];
        if mangling.ends_with("legacy") {
            // Current compilers need this option for mangling schemes other than v0; older
            // compilers do not have it.
            options = vec!["-O", "-Cstrip=none"];
        }
        let library = folder.compile("rustc", &source, &options);
        let own: Vec<u64> = nm(&[], &library)
            .into_iter()
            .filter(|known| known.name.contains("inside") || known.name == "rust_entry")
            .map(|known| known.range.start)
            .collect();
        let found = ask(&module(&library), &own).concat();
        let mut names: Vec<&str> = found.iter().map(|symbol| symbol.name.as_str()).collect();
        names.sort();
        names.dedup();
        assert!(names.contains(&"rust_entry"), "{names:?}");
        assert!(
            names.contains(&"<f64 as entry::inside::Step>::step"),
            "{names:?}"
        );
        let generic = names
            .iter()
            .any(|name| name.starts_with("entry::inside::generic"));
        assert!(generic, "{names:?}");
        for symbol in &found {
            let mangled =
                symbol.system_name.starts_with("_ZN") || symbol.system_name.starts_with("_R");
            assert_eq!(mangled, symbol.name != symbol.system_name, "{symbol:?}");
            assert!(!symbol.name.contains("::h"), "{symbol:?}");
        }
    }
}

#[test]
fn irregular_names_are_made_printable() {
    let folder = Folder::new();
    let source = folder.write(
        "odd.s",
        ".text\n.type line_feed, @function\nline_feed:\n.skip 8, 0x90\n.size line_feed, 8\n\
         .type bomb, @function\nbomb:\n.skip 8, 0x90\n.size bomb, 8\n",
    );
    let library = folder.compile("cc", &source, &["-nostdlib"]);
    let mut bytes = std::fs::read(&library).unwrap();
    // The assembler would reject these names.
    for (from, to) in [
        (&b"line_feed"[..], &b"line\nfeed"[..]),
        (b"bomb", b"b\xffmb"),
    ] {
        for at in 0..bytes.len() - from.len() {
            if &bytes[at..at + from.len()] == from {
                bytes[at..at + from.len()].copy_from_slice(to);
            }
        }
    }
    let feed = nm(&[], &library)
        .iter()
        .map(|known| known.range.start)
        .min()
        .unwrap();
    std::fs::write(&library, bytes).unwrap();
    let found = ask(&module(&library), &[feed, feed + 8]);
    assert_eq!(found[0][0].name, "line\u{fffd}feed");
    assert_eq!(found[1][0].name, "b\u{fffd}mb");
}
