//! Tests separate files with debug information: where they are searched for, and which ones are
//! used.

use crate::symbols::build::*;
use profile_core::joint::Module;
use profile_core::joint::symbols::{Files, NameSource, Symbolizer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library, its separate debug information, and an address in a function for which the stripped
/// library has no name.
struct Apart {
    folder: Folder,
    code: PathBuf,
    debug: PathBuf,
    hidden: u64,
}

fn apart(options: &[&str]) -> Apart {
    let folder = Folder::new();
    let source = folder.write("lib/sum.c", C);
    let source = fs::copy(&source, folder.0.join("sum.c")).map(|_| folder.0.join("sum.c"));
    let options = [&["-O2", "-g"], options].concat();
    let library = folder.compile("cc", &source.unwrap(), &options);
    let hidden = inside(&library, "hidden");
    let debug = folder.0.join("sum.debug");
    objcopy(&["--only-keep-debug"], &library, &debug);
    objcopy(&["--strip-all"], &library, &library);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[&link], &library, &library);
    // The file is renamed, since it would be found in the folder of the library.
    let away = folder.0.join("away.debug");
    fs::rename(debug, &away).unwrap();
    Apart {
        folder,
        code: library,
        debug: away,
        hidden,
    }
}

fn objcopy(options: &[&str], from: &Path, to: &Path) {
    output(Command::new("objcopy").args(options).arg(from).arg(to));
}

impl Apart {
    fn put(&self, name: &str) -> PathBuf {
        let path = self.folder.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(&self.debug, &path).unwrap();
        path
    }

    fn name_source(&self, module: &Module) -> NameSource {
        let folders = [self.folder.0.join("debug")];
        let found = ask_with(module, &folders, &[self.hidden]).remove(0);
        let outermost = &found[found.len() - 1];
        match outermost.name_source {
            NameSource::DebugInformation => assert_eq!(outermost.name, "hidden"),
            // A file that is not used does not provide the starts of functions either.
            _ => assert!(
                outermost.name == format!("sum.so+{:#x}", self.hidden)
                    || outermost.name == unnamed(&self.code, self.hidden)
            ),
        }
        outermost.name_source
    }

    fn place_by_id(&self, module: &Module) -> String {
        let id: String = module.build_id.iter().map(|b| format!("{b:02x}")).collect();
        format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..])
    }

    /// In the folder for debug information, under the folder of the library.
    fn place_by_folder(&self) -> String {
        format!("debug{}/sum.debug", self.folder.0.display())
    }
}

#[test]
fn debug_information_is_found_where_gdb_finds_it() {
    let all = apart(&["-Wl,--build-id"]);
    let module = module(&all.code);
    assert!(!module.build_id.is_empty());
    assert_eq!(all.name_source(&module), NameSource::Address);
    for place in [
        "sum.debug".to_owned(),
        ".debug/sum.debug".to_owned(),
        all.place_by_folder(),
        all.place_by_id(&module),
    ] {
        let path = all.put(&place);
        assert_eq!(
            all.name_source(&module),
            NameSource::DebugInformation,
            "{place}"
        );
        fs::remove_file(path).unwrap();
    }
    assert_eq!(all.name_source(&module), NameSource::Address);
}

#[test]
fn the_debug_information_of_another_file_does_not_count() {
    let all = apart(&["-Wl,--build-id"]);
    let module = module(&all.code);
    let mut bytes = fs::read(&all.debug).unwrap();
    let id = find(&bytes, &module.build_id);
    bytes[id] ^= 1;
    fs::write(&all.debug, bytes).unwrap();
    for place in ["sum.debug".to_owned(), all.place_by_id(&module)] {
        let path = all.put(&place);
        assert_eq!(all.name_source(&module), NameSource::Address, "{place}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn without_build_ids_the_checksum_tells() {
    let all = apart(&["-Wl,--build-id=none"]);
    let module = module(&all.code);
    assert!(module.build_id.is_empty());
    let path = all.put("sum.debug");
    assert_eq!(all.name_source(&module), NameSource::DebugInformation);
    let mut bytes = fs::read(&path).unwrap();
    bytes.push(0);
    fs::write(&path, bytes).unwrap();
    assert_eq!(all.name_source(&module), NameSource::Address);
}

#[test]
fn debug_information_suffices_where_the_file_is_gone() {
    let all = apart(&["-Wl,--build-id"]);
    let mut module = module(&all.code);
    all.put(&all.place_by_id(&module));
    fs::remove_file(&all.code).unwrap();
    assert_eq!(all.name_source(&module), NameSource::DebugInformation);
    module.path += " (deleted)";
    assert_eq!(all.name_source(&module), NameSource::DebugInformation);
    module.build_id[0] ^= 1;
    assert_eq!(all.name_source(&module), NameSource::Address);
}

#[test]
fn a_file_that_was_not_loaded_is_not_asked() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2", "-g", "-Wl,--build-id"]);
    let address = inside(&library, "c_sum");
    let same = module(&library);
    let ask_one = |module: &Module| ask(module, &[address]).remove(0).pop().unwrap();
    assert_eq!(ask_one(&same).name, "c_sum");

    // The library is built again.
    let mut other = same.clone();
    other.build_id[3] ^= 1;
    let found = ask_one(&other);
    assert_eq!(found.name_source, NameSource::Address);
    assert_eq!(found.name, format!("sum.so+{address:#x}"));

    // Without a build id in memory, the code must be at the same address.
    let mut unknown = same.clone();
    unknown.build_id.clear();
    assert_eq!(ask_one(&unknown).name_source, NameSource::DebugInformation);
    unknown.offset += 0x1000;
    assert_eq!(ask_one(&unknown).name_source, NameSource::Address);

    // A removed file, a name that is not a file, and an unreadable file.
    let pipe = folder.0.join("pipe");
    output(Command::new("mkfifo").arg(&pipe));
    let text = folder.write("text.so", "no library");
    for (path, name) in [
        ("/nowhere/sum.so".to_owned(), "sum.so"),
        (format!("{} (deleted)", library.display()), "sum.so"),
        ("linux-vdso.so.1".to_owned(), "linux-vdso.so.1"),
        (String::new(), "<unknown>"),
        (folder.0.display().to_string() + "/", "<unknown>"),
        (pipe.display().to_string(), "pipe"),
        (text.display().to_string(), "text.so"),
        ("/dev/zero".to_owned(), "zero"),
    ] {
        for build_id in [Vec::new(), same.build_id.clone()] {
            let module = Module {
                path: path.clone(),
                build_id,
                ..same.clone()
            };
            assert_eq!(ask_one(&module).name, format!("{name}+{address:#x}"));
        }
    }
}

/// The definition, with other tools.
#[test]
fn the_hash_of_a_file_is_that_of_its_ends_and_length() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2", "-g", "-Wl,--build-id"]);
    let hash = |module: &Module| {
        let files = Files::default();
        let modules = [module.clone()];
        let hash = Symbolizer::new(&modules, &files).file_hash(0).unwrap();
        hash.map(|hash| hash.iter().map(|b| format!("{b:02x}")).collect::<String>())
    };
    let script = "f=$1; n=$(wc -c < \"$f\"); { head -c 4096 \"$f\"; tail -c 4096 \"$f\"; \
                  printf \"$(printf %016x \"$n\" | sed 's/../\\\\x&/g')\"; } | sha256sum | cut -c 1-32";
    let expected = output(
        Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(&library),
    );
    let same = module(&library);
    assert_eq!(hash(&same).as_deref(), Some(expected.trim()));

    // Only of the file that was loaded.
    let mut other = same.clone();
    other.build_id[3] ^= 1;
    assert_eq!(hash(&other), None);
    for path in ["/nowhere/sum.so", "linux-vdso.so.1", "/dev/zero", ""] {
        let path = path.to_owned();
        assert_eq!(
            hash(&Module {
                path,
                ..same.clone()
            }),
            None
        );
    }
}

#[test]
fn files_are_opened_once_and_only_when_they_are_asked() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let library = folder.compile("cc", &source, &["-O2", "-g"]);
    let modules = [module(&library), module(&library)];
    let address = BIAS + inside(&library, "c_sum");
    let files = Files::default();
    let mut symbols = Symbolizer::new(&modules, &files);
    let known = symbols.at(0, address).unwrap();
    fs::remove_file(&library).unwrap();
    assert_eq!(symbols.at(0, address).unwrap(), known);
    assert_eq!(known[0].name_source, NameSource::DebugInformation);
    assert_eq!(
        symbols.at(1, address).unwrap()[0].name_source,
        NameSource::Address
    );
    // A module that does not exist.
    assert_eq!(symbols.at(2, 7).unwrap()[0].name, "<unknown>+0x7");
}

#[test]
fn it_is_known_what_is_known_of_a_module() {
    let folder = Folder::new();
    let source = folder.write("sum.c", C);
    let full = folder.compile("cc", &source, &["-O2", "-g"]);
    let address = BIAS + inside(&full, "c_sum");
    let few = folder.0.join("few.so");
    objcopy(&["--strip-debug"], &full, &few);
    let mut gone = module(&full);
    gone.path = "/nowhere".to_owned();
    let modules = [module(&full), module(&few), gone];
    let files = Files::default();
    let mut symbols = Symbolizer::with_debug_folders(&modules, &files, Vec::new());
    let mut flags = Vec::new();
    for row in 0..3 {
        assert_eq!(symbols.found(row), Default::default());
        symbols.at(row, address).unwrap();
        let known = symbols.found(row);
        flags.push([
            known.functions,
            known.filenames,
            known.line_numbers,
            known.inline_frames,
        ]);
    }
    assert_eq!(flags, [[true; 4], [true, false, false, false], [false; 4]]);
}

/// In Debian packages, debug information that several files share is in another file.
#[test]
fn what_files_of_debug_information_share_is_found() {
    if !there("dwz") || !there("c++") {
        return;
    }
    let folder = Folder::new();
    let mut libraries = Vec::new();
    for name in ["one", "two"] {
        let source = folder.write(&format!("{name}.cpp"), CXX);
        libraries.push(folder.compile("c++", &source, &["-O2", "-g"]));
    }
    let addresses: Vec<u64> = nm(&[], &libraries[0])
        .iter()
        .flat_map(|known| known.range.clone().step_by(3))
        .collect();
    let before = ask(&module(&libraries[0]), &addresses);
    let mut dwz = Command::new("dwz");
    dwz.current_dir(&folder.0).args(["-m", "shared.debug"]);
    output(dwz.args(&libraries));
    let sections = tool("readelf", &["-SW"], &libraries[0]);
    assert!(sections.contains(".gnu_debugaltlink"), "{sections}");
    let after = ask(&module(&libraries[0]), &addresses);
    assert_eq!(before, after);
    // Without that file some names are missing, but no name is wrong.
    fs::remove_file(folder.0.join("shared.debug")).unwrap();
    let alone = ask(&module(&libraries[0]), &addresses);
    assert_ne!(before, alone);
    for (before, alone) in before.iter().zip(&alone) {
        let known = alone
            .iter()
            .filter(|symbol| symbol.name_source != NameSource::Address);
        for symbol in known.filter(|symbol| symbol.name != "<unknown>") {
            // Symbolizer have clones: `cxx_entry.cold`.
            let name = symbol.name.split(".cold").next().unwrap();
            let same = before.iter().any(|other| other.name == name);
            assert!(same, "{symbol:?} {before:?}");
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    let found = bytes.windows(part.len()).position(|window| window == part);
    found.unwrap()
}
