//! Tests debug information that is in the library itself.

use crate::symbols::build::*;
use profile_core::joint::symbols::Symbol;
use std::path::Path;
use std::process::Command;

/// Compares the results for all addresses of a library with addr2line.
fn compare(library: &Path) {
    let functions = nm(&[], library);
    let mut addresses: Vec<u64> = functions
        .iter()
        .flat_map(|known| known.range.clone())
        .collect();
    addresses.sort();
    addresses.dedup();
    // The standard library of Rust is large.
    let step = addresses.len() / 20_000 + 1;
    let addresses: Vec<u64> = addresses.into_iter().step_by(step).collect();
    let found = ask(&module(library), &addresses);
    let expected = addr2line(library, &addresses);
    let mut inlined = 0;
    let mut wrong = 0;
    for ((address, found), expected) in addresses.iter().zip(&found).zip(&expected) {
        inlined += usize::from(found.len() > 1);
        for symbol in found {
            assert!(!symbol.name.starts_with("_Z"), "{symbol:?}");
        }
        let all = found.iter().zip(expected);
        let same = all.enumerate().all(|(frame, (ours, theirs))| {
            let name = &theirs.0;
            let outermost = &expected[expected.len() - 1].0;
            let is_name = *name == ours.system_name
                // Without a linkage name, addr2line uses the name of the symbol that contains the
                // address. We do this only if there is no other name.
                || frame + 1 == expected.len() && people(name) == ours.name
                // addr2line does this also for inlined functions, which have no symbol.
                || frame == 0 && name == outermost && !ours.system_name.starts_with('_');
            is_name && theirs.1 == place(ours)
        });
        if !same || found.len() != expected.len() {
            println!("{address:#x}\n  {found:?}\n  {expected:?}");
            wrong += 1;
        }
    }
    assert_eq!(wrong, 0, "of {}", addresses.len());
    assert!(inlined > 20, "{inlined}");
}

/// The name of a symbol as we show it.
fn people(name: &str) -> String {
    let name = name.split('.').next().unwrap();
    filt(&[name]).remove(0)
}

fn place(symbol: &Symbol) -> String {
    match (symbol.filename.as_str(), symbol.line) {
        (_, 0) => "??:?".to_owned(),
        ("", line) => format!("??:{line}"),
        (file, line) => format!("{file}:{line}"),
    }
}

#[test]
fn functions_and_lines_of_c_are_those_of_addr2line() {
    for options in [["-O2", "-g"], ["-O3", "-gdwarf-4"], ["-O2", "-ggdb3"]] {
        let folder = Folder::new();
        let source = folder.write("sum.c", C);
        compare(&folder.compile("cc", &source, &options));
    }
}

#[test]
fn functions_and_lines_of_cxx_are_those_of_addr2line() {
    if !there("c++") {
        return;
    }
    for options in [["-O2", "-g"], ["-O2", "-gdwarf-4"]] {
        let folder = Folder::new();
        let source = folder.write("words.cpp", CXX);
        compare(&folder.compile("c++", &source, &options));
    }
}

#[test]
fn functions_and_lines_of_rust_are_those_of_addr2line() {
    // The option exists since Rust 1.88.
    let option = ["-Cdwarf-version=5", "--print=sysroot"];
    let rustc = Command::new("rustc").args(option).output();
    if !rustc.is_ok_and(|output| output.status.success()) {
        println!("not tested: there is no rustc, or it is old");
        return;
    }
    let folder = Folder::new();
    let source = folder.write("entry.rs", RUST);
    let library = folder.compile("rustc", &source, &["-O", "-g", "-Cdwarf-version=4"]);
    compare(&library);

    // addr2line of binutils 2.40 cannot read LLVM's version 5. The results are the same as for
    // version 4.
    let own = nm(&[], &library).into_iter();
    let own = own.filter(|known| known.name.contains("entry"));
    let addresses: Vec<u64> = own.flat_map(|known| known.range).collect();
    let four = ask(&module(&library), &addresses);
    let library = folder.compile("rustc", &source, &["-O", "-g", "-Cdwarf-version=5"]);
    assert_eq!(ask(&module(&library), &addresses), four);
}

/// addr2line does not print columns and the lines at which functions begin; these are from the
/// source.
#[test]
fn columns_and_first_lines_are_those_of_the_source() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2", "-g"]);
    let lines: Vec<&str> = C.lines().collect();
    let line_with = |text: &str| {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap() as u32 + 1
    };
    let range = nm(&[], &library)
        .into_iter()
        .find(|known| known.name == "hidden")
        .unwrap()
        .range;
    let found = ask(&module(&library), &range.collect::<Vec<u64>>());
    let mut calls = 0;
    for frames in &found {
        let [inner, middle, outer] = &frames[..] else {
            continue;
        };
        assert_eq!(inner.name, "step");
        assert_eq!(inner.start_line, line_with("double step("));
        assert!([inner.start_line, inner.start_line + 1].contains(&inner.line));
        assert_eq!(middle.name, "twice");
        assert_eq!(middle.start_line, line_with("double twice("));
        let text = lines[middle.line as usize - 1];
        assert!(
            text[middle.column as usize - 1..].starts_with("step("),
            "{middle:?}"
        );
        assert_eq!(outer.name, "hidden");
        assert_eq!(outer.start_line, line_with("double hidden("));
        assert_eq!(outer.line, line_with("sum += twice"));
        let text = lines[outer.line as usize - 1];
        assert!(
            text[outer.column as usize - 1..].starts_with("twice("),
            "{outer:?}"
        );
        calls += 1;
    }
    assert!(calls > 5, "{calls}");
}

#[test]
fn compressed_debug_information_tells_the_same() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let options = ["-O2", "-g", "-gz=none", "-Wl,--build-id=none"];
    let library = folder.compile("cc", &source, &options);
    let addresses: Vec<u64> = nm(&[], &library)
        .into_iter()
        .flat_map(|known| known.range)
        .collect();
    let plain = ask(&module(&library), &addresses);
    let objcopy = ["--compress-debug-sections=zlib"];
    output(Command::new("objcopy").args(objcopy).arg(&library));
    let headers = tool("readelf", &["-tW"], &library);
    assert!(headers.contains("ZLIB"), "{headers}");
    assert_eq!(ask(&module(&library), &addresses), plain);
}

/// gfortran's linkage names differ from the names in the source.
#[test]
fn names_of_fortran_are_those_of_the_source() {
    if !there("gfortran") {
        return;
    }
    let folder = Folder::new();
    let source = folder.write(
        "axpy.f90",
        "module vectors\ncontains\nsubroutine scale_all(n, x)\n  integer :: n\n  real :: x(n)\n\
         x = x * 2\nend subroutine\nend module\n\
         subroutine myaxpy(n, x, y)\n  integer :: n\n  real :: x(n), y(n)\n  y = y + 2 * x\n\
         end subroutine\n",
    );
    let pairs = [
        ("myaxpy_", "myaxpy"),
        ("__vectors_MOD_scale_all", "scale_all"),
    ];
    for (options, debug) in [(["-O2", "-g"], true), (["-O2", "-g0"], false)] {
        let library = folder.compile("gfortran", &source, &options);
        for (linkage, plain) in pairs {
            let address = inside(&library, linkage);
            let found = ask(&module(&library), &[address]).remove(0).pop().unwrap();
            assert_eq!(found.name, if debug { plain } else { linkage });
            assert_eq!(found.system_name, linkage);
        }
    }
}

/// Clang counts files from 0 in version 5, unlike GCC. Lines 5 and 3 are from `.loc`, line 4 is
/// from the entry.
#[test]
fn files_may_be_counted_from_0() {
    let folder = Folder::new();
    let source = folder.write(
        "zero.s",
        ".file 0 \"/folder\" \"zero.c\"\n.text\n.globl start\n.size start, 64\n\
         start: .loc 0 5 3\nnop\n.skip 63, 0x90\n\
         .section .debug_abbrev\n\
         .byte 1, 0x11, 1, 0x10, 0x17, 0x11, 1, 0x12, 6, 0, 0\n\
         .byte 2, 0x2e, 0, 3, 8, 0x11, 1, 0x12, 6, 0x3a, 0xb, 0x3b, 0xb, 0, 0\n.byte 0\n\
         .section .debug_info\n.long end - begin\n\
         begin: .short 5\n.byte 1, 8\n.long 0\n\
         .byte 1\n.long 0\n.quad start\n.long 64\n\
         .byte 2\n.asciz \"zero\"\n.quad start\n.long 64\n.byte 0, 4\n.byte 0\nend:\n",
    );
    let library = folder.compile("cc", &source, &["-nostdlib"]);
    // Whether code starts a page of its own depends on the linker.
    let found = ask(&module(&library), &[inside(&library, "start")]).remove(0);
    let [symbol] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(symbol.name, "zero");
    assert_eq!(symbol.filename, "/folder/zero.c");
    assert_eq!([symbol.line, symbol.column, symbol.start_line], [5, 3, 4]);
}
