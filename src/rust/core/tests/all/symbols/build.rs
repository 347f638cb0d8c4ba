//! Compiles libraries for the tests, and runs binutils on them.

use profile_core::joint::symbols::{Files, Symbol, Symbolizer};
use profile_core::joint::{Module, Role};
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The address at which the libraries would be loaded.
pub const BIAS: u64 = 0x7f12_3450_0000;

pub const C: &str = r#"
#include <stddef.h>

static double step(double x, double y) {
  return x * y + 1.0 / (y + 2.0);
}

static inline __attribute__((always_inline)) double twice(double x, double y) {
  double first = step(x, y);
  return first + step(y, x + 1);
}

static __attribute__((noinline)) double hidden(const double *v, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += twice(v[i], sum);
  return sum;
}

double c_sum(const double *v, size_t n) {
  return hidden(v, n) + hidden(v + 1, n - 1);
}

__attribute__((noinline)) double __c_other(double x) {
  return step(x, 3) / 7;
}

double c_other(double x) __attribute__((alias("__c_other")));
double c_other_name(double x) __attribute__((weak, alias("__c_other")));

double c_last(double x) {
  return __c_other(x) + 1;
}
"#;

pub const CXX: &str = r#"
#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace ns {

static inline __attribute__((always_inline)) double once(double x) {
  return x / 3.0 + x * x;
}

template <class T> struct Sum {
  T total;
  explicit Sum(T start);
  __attribute__((noinline)) void add(T x) { total += once(x) * total; }
};

template <class T> __attribute__((noinline)) Sum<T>::Sum(T start) : total(start) {}

static __attribute__((noinline)) double of_file(double x) { return once(once(x)); }

__attribute__((noinline)) double hot_loop(const std::vector<double> &v) {
  Sum<double> sum(of_file(1));
  for (double x : v) sum.add(x);
  return sum.total;
}

namespace {
__attribute__((noinline)) int count(std::map<std::string, int> &m, const std::string &key) {
  return ++m[key];
}
}  // namespace

struct Less {
  bool operator()(const std::string &a, const std::string &b) const { return a.size() < b.size(); }
};

int words(std::vector<std::string> v) {
  std::map<std::string, int> m;
  std::sort(v.begin(), v.end(), Less());
  int most = 0;
  for (const auto &word : v) most = std::max(most, count(m, word));
  auto twice = [&](int n) { return n * 2 + static_cast<int>(m.size()); };
  return twice(most);
}

}  // namespace ns

extern "C" double cxx_entry(double x) {
  std::vector<double> v(100, x);
  return ns::hot_loop(v);
}
"#;

pub const RUST: &str = r#"
mod inside {
    pub trait Step {
        fn step(&self) -> f64;
    }
    impl Step for f64 {
        #[inline(never)]
        fn step(&self) -> f64 {
            self.sqrt() + 1.0 / (self + 2.0)
        }
    }
    #[inline(never)]
    pub fn generic<T: Step>(all: &[T]) -> f64 {
        all.iter().map(|x| x.step() * 2.0).sum()
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rust_entry(n: usize) -> f64 {
    let mut all: Vec<f64> = (0..n).map(|i| i as f64).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    inside::generic(&all)
}
"#;

/// A folder that is removed at the end of the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("profile-symbols-{}-{next}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        // The path as in debug information.
        Folder(path.canonicalize().unwrap())
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Compiles a source file to a library in the same folder.
    pub fn compile(&self, compiler: &str, source: &Path, options: &[&str]) -> PathBuf {
        let library = source.with_extension("so");
        let mut command = Command::new(compiler);
        command.current_dir(&self.0).args(options);
        match compiler {
            "rustc" => command.args(["--crate-type=cdylib", "--edition=2024"]),
            _ => command.args(["-shared", "-fPIC"]),
        };
        // The name is relative, so that the folder must be determined.
        command.arg(source.file_name().unwrap());
        output(command.arg("-o").arg(&library));
        library
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn tool(name: &str, arguments: &[&str], file: &Path) -> String {
    output(Command::new(name).args(arguments).arg(file))
}

/// Tests that need a tool which is not installed print this, and pass.
pub fn there(compiler: &str) -> bool {
    let there = Command::new(compiler).arg("--version").output().is_ok();
    if !there {
        println!("not tested: there is no {compiler}");
    }
    there
}

/// A module as the sampler would describe it, from the output of readelf.
pub fn module(library: &Path) -> Module {
    let segments = tool("readelf", &["-lW"], library);
    let code = segments.lines().find(|line| line.contains(" R E "));
    let fields: Vec<&str> = code.unwrap().split_whitespace().collect();
    let start = BIAS + hex(fields[2]);
    let notes = tool("readelf", &["-nW"], library);
    let id = notes.split_once("Build ID: ");
    let id = id.and_then(|(_, rest)| rest.split_whitespace().next());
    Module {
        path: library.to_str().unwrap().to_owned(),
        role: Role::Library,
        bias: BIAS,
        code: start..start + hex(fields[5]),
        offset: hex(fields[1]),
        build_id: bytes(id.unwrap_or("")),
        file: None,
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).unwrap() as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

pub fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

/// A function in the output of nm. Its kind shows whether it is local.
#[derive(Debug, Clone)]
pub struct Known {
    pub range: Range<u64>,
    pub kind: char,
    pub name: String,
}

pub fn nm(options: &[&str], library: &Path) -> Vec<Known> {
    let options = [&["-S", "--defined-only"], options].concat();
    let all = tool("nm", &options, library);
    all.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [start, size, kind, name] = fields[..] else {
                return None;
            };
            let start = hex(start);
            Some(Known {
                range: start..start + hex(size),
                kind: kind.chars().next()?,
                name: name.to_owned(),
            })
        })
        .filter(|known| "tTwWi".contains(known.kind))
        .collect()
}

/// The name that an address without a symbol gets, from the unwind tables in the output of readelf:
/// "... FDE cie=00000000 pc=0000000000001040..0000000000001066".
pub fn unnamed(library: &Path, address: u64) -> String {
    let tables = tool("readelf", &["--wide", "--debug-dump=frames"], library);
    let start = tables
        .lines()
        .filter_map(|line| line.split_once(" pc=")?.1.split_once(".."))
        .map(|(start, end)| hex(start)..hex(end))
        .find(|range| range.contains(&address))
        .map_or(address, |range| range.start);
    format!("sum.so+{start:#x}")
}

/// Functions with file and line, innermost first, as `addr2line` knows them.
pub fn addr2line(library: &Path, addresses: &[u64]) -> Vec<Vec<(String, String)>> {
    let mut child = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-e"])
        .arg(library)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let questions: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let mut input = child.stdin.take().unwrap();
    let asking = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let answers = child.wait_with_output().unwrap();
    asking.join().unwrap().unwrap();
    let mut all = Vec::new();
    let text = String::from_utf8(answers.stdout).unwrap();
    let mut lines = text.lines().peekable();
    while let Some(address) = lines.next() {
        assert!(address.starts_with("0x"), "{address}");
        let mut frames = Vec::new();
        while let Some(name) = lines.next_if(|line| !line.starts_with("0x")) {
            let place = lines.next().unwrap();
            let place = place.split(" (discriminator").next().unwrap();
            // A file without a line is the source file of a symbol.
            let place = if place.ends_with(":?") { "??:?" } else { place };
            frames.push((name.to_owned(), place.to_owned()));
        }
        all.push(frames);
    }
    assert_eq!(all.len(), addresses.len());
    all
}

pub fn filt(names: &[&str]) -> Vec<String> {
    // Without parameters.
    let mut command = Command::new("c++filt");
    let text = output(command.arg("-p").args(names));
    text.lines().map(str::to_owned).collect()
}

/// The symbols at addresses of the file.
pub fn ask(module: &Module, addresses: &[u64]) -> Vec<Vec<Symbol>> {
    ask_with(module, &[], addresses)
}

pub fn ask_with(module: &Module, folders: &[PathBuf], addresses: &[u64]) -> Vec<Vec<Symbol>> {
    let files = Files::default();
    let modules = [module.clone()];
    let mut symbols = Symbolizer::with_debug_folders(&modules, &files, folders.to_vec());
    let ask = |address| symbols.at(0, module.bias + address).unwrap();
    addresses.iter().copied().map(ask).collect()
}

/// An address in a function, by its name in nm.
pub fn inside(library: &Path, function: &str) -> u64 {
    let all = nm(&[], library);
    let known = all.iter().find(|known| known.name == function);
    known.unwrap_or_else(|| panic!("no {function}")).range.start + 3
}
