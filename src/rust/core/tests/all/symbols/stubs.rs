//! Stubs of the procedure linkage table, compared with the disassembler.

use crate::symbols::build::*;
use profile_core::joint::symbols::NameSource;
use std::path::Path;

const CALLS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern double far_away(double);
__attribute__((weak)) extern void maybe(void);
double calls(char *to, const char *from, size_t n, double x) {
  memcpy(to, from, n);
  qsort(to, n, 1, (int (*)(const void *, const void *)) strcmp);
  if (maybe) maybe();
  puts(to);
  return far_away(x) + far_away(atof(from));
}
void *address_of(void) { return (void *) puts; }
"#;

/// The stubs that the disassembler of this program names, with their addresses.
fn stubs_of(objdump: &str, library: &Path) -> Vec<(u64, String)> {
    let text = tool(objdump, &["-d"], library);
    let labels = text.lines().filter_map(|line| line.strip_suffix(">:"));
    let stubs = labels.filter_map(|label| {
        let (address, name) = label.split_once(" <")?;
        let address = u64::from_str_radix(address, 16).unwrap();
        Some((address, name.strip_suffix("@plt")?.to_owned()))
    });
    // A slot that is filled by the address of a function of the same file has no name.
    stubs.filter(|(_, name)| !name.starts_with('*')).collect()
}

fn compare(library: &Path, objdump: &str, expected: &[&str]) {
    let known = stubs_of(objdump, library);
    for name in expected {
        assert!(known.iter().any(|(_, known)| known == name), "{name}");
    }
    let module = module(library);
    for (start, name) in known {
        for address in [start, start + 4, start + 7] {
            let symbols = ask(&module, &[address]).remove(0);
            let [symbol] = &symbols[..] else {
                panic!("{symbols:?}");
            };
            assert_eq!(symbol.system_name, format!("{name}@plt"));
            assert_eq!(symbol.name, symbol.system_name);
            assert_eq!(symbol.name_source, NameSource::SymbolTable);
        }
    }
}

#[test]
fn stubs_have_the_name_of_the_function_that_they_call() {
    let folder = Folder::new();
    for (number, options) in [
        &["-O2"][..],
        &["-O2", "-g", "-Wl,-z,lazy"],
        &["-O2", "-Wl,-z,now"],
        &["-O2", "-s", "-fcf-protection", "-Wl,-z,ibtplt"],
    ]
    .into_iter()
    .enumerate()
    {
        if number == 3 && !cfg!(target_arch = "x86_64") {
            continue;
        }
        let source = folder.write(&format!("calls{number}.c"), CALLS);
        let library = folder.compile("cc", &source, options);
        compare(&library, "objdump", &["memcpy", "far_away", "qsort"]);
    }
}

#[test]
fn stubs_of_another_processor_are_named_as_well() {
    if !there("aarch64-linux-gnu-gcc") || !there("aarch64-linux-gnu-objdump") {
        return;
    }
    let folder = Folder::new();
    for (number, options) in [
        &["-O2", "-nostdlib"][..],
        &["-O2", "-nostdlib", "-mbranch-protection=standard"],
        &[
            "-O2",
            "-nostdlib",
            "-mbranch-protection=standard",
            "-Wl,-z,force-bti",
        ],
    ]
    .into_iter()
    .enumerate()
    {
        let source = folder.write(&format!("arm{number}.c"), CALLS);
        let library = folder.compile("aarch64-linux-gnu-gcc", &source, options);
        compare(
            &library,
            "aarch64-linux-gnu-objdump",
            &["memcpy", "far_away", "qsort"],
        );
    }
}

#[test]
fn names_of_cxx_are_demangled() {
    if !there("c++") {
        return;
    }
    let folder = Folder::new();
    let text = "namespace far { int away(int); }\nint near(int x) { return far::away(x) + 1; }\n";
    let source = folder.write("far.cpp", text);
    let library = folder.compile("c++", &source, &["-O2"]);
    let known = stubs_of("objdump", &library);
    let stub = known
        .iter()
        .find(|(_, name)| name.contains("away"))
        .unwrap();
    let symbol = ask(&module(&library), &[stub.0]).remove(0).remove(0);
    assert_eq!(symbol.name, "far::away@plt");
    assert_eq!(symbol.system_name, "_ZN3far4awayEi@plt");
}
