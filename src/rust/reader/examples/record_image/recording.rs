//! Runs the program, and notes which memory the reader needs at each stop.

use profile_reader::process::{Process, ProcessMemory, Thread, system_call_name};
use profile_reader::recorded::states::{State, Stops};
use profile_reader::running_r::Named;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::memory::Mapping;
use profile_runtime::memory::{Memory, at, word};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

#[path = "../../tests/image/mod.rs"]
mod image;
use image::{Image, Stop, WORD, Words};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PROGRAMS: [(&str, &str); 2] = [
    ("other.R", include_str!("../../tests/images/other.R")),
    ("stops.R", include_str!("../../tests/images/stops.R")),
];

/// Runs the programs, whose names and lines come from the input.
const START: &str = "
    gate <- file('stdin', 'r')
    for (name in c('other.R', 'stops.R')) {
      code <- readLines(gate, as.integer(readLines(gate, 1)))
      file <- srcfilecopy(name, code)
      for (part in parse(text = code, keep.source = TRUE, srcfile = file)) eval(part, globalenv())
    }";

/// Larger than an object that a reader needs: this is a search of all variables of R, for addresses.
const SEARCH: usize = 1 << 16;

/// What was read.
#[derive(Default)]
struct Notes {
    /// The addresses of words.
    words: BTreeSet<u64>,
    /// The ranges that were searched.
    searched: BTreeSet<(u64, u64)>,
}

/// The memory of a process, which notes what is read.
#[derive(Clone)]
struct Noted {
    memory: ProcessMemory,
    notes: Rc<RefCell<Notes>>,
    /// The parts of the address space without a file: the stack, the heap, variables.
    anonymous: Rc<Vec<Range<u64>>>,
}

impl Noted {
    fn is_anonymous(&self, address: u64) -> bool {
        self.anonymous.iter().any(|range| range.contains(&address))
    }
}

impl Memory for Noted {
    fn read(&mut self, address: u64, into: &mut [u8]) -> bool {
        if !self.memory.read(address, into) {
            return false;
        }
        let end = address.saturating_add(into.len() as u64);
        let addresses = (address / WORD * WORD..end).step_by(WORD as usize);
        let mut notes = self.notes.borrow_mut();
        if into.len() < SEARCH {
            notes.words.extend(addresses);
            return true;
        }
        notes.searched.insert((address, end));
        let words = addresses.zip(into.chunks_exact(WORD as usize));
        let words = words.filter(|(_, word)| self.is_anonymous(at(word, 0)));
        notes.words.extend(words.map(|(address, _)| address));
        true
    }
}

struct Program {
    child: Child,
    lines: Box<dyn Iterator<Item = std::io::Result<String>>>,
}

impl Program {
    fn start(command: &[String]) -> Result<Program> {
        let (program, arguments) = command.split_first().ok_or("COMMAND is missing")?;
        let mut child = Command::new(program)
            .args(arguments)
            .args(["-e", START])
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.as_mut().ok_or("no input")?;
        for (_, code) in PROGRAMS {
            write!(input, "{}\n{code}", code.lines().count())?;
        }
        let output = child.stdout.take().ok_or("no output")?;
        let lines = Box::new(BufReader::new(output).lines());
        Ok(Program { child, lines })
    }

    /// The name of the next stop, and the stack; `None` at the end.
    fn next_stop(&mut self) -> Result<Option<(String, Vec<String>)>> {
        let (mut name, mut frames) = (None, Vec::new());
        for line in self.lines.by_ref() {
            let line = line?;
            match line.split_once(' ') {
                Some(("stop", found)) => name = Some(found.to_owned()),
                Some(("frame", frame)) => frames.push(frame.to_owned()),
                _ if line == "ready" => return Ok(name.map(|name| (name, frames))),
                _ => return Err(format!("unexpected output: {line}").into()),
            }
        }
        let status = self.child.wait()?;
        if status.success() {
            Ok(None)
        } else {
            Err(format!("R has failed: {status}").into())
        }
    }
}

pub fn record(path: &Path, command: &[String]) -> Result<()> {
    let mut program = Program::start(command)?;
    let pid = i32::try_from(program.child.id())?;
    let mut image = Image::default();
    let notes = Rc::new(RefCell::new(Notes::default()));
    while let Some((name, frames)) = program.next_stop()? {
        let process = Process::find(pid)?;
        wait_until_it_reads(&process);
        let mappings = process.mappings()?;
        let mut noted = Noted {
            memory: ProcessMemory::new(pid),
            notes: notes.clone(),
            anonymous: Rc::new(anonymous(pid)?),
        };
        read(&noted, &mappings).map_err(|error| format!("{name}: {error}"))?;
        let memory = copy(&mut noted.memory, &notes.borrow().words);
        image.stops.push(Stop {
            name,
            frames,
            memory,
        });
        if image.stops.len() == 1 {
            image.mappings = mappings;
        }
        let input = program.child.stdin.as_mut().ok_or("no input")?;
        writeln!(input, "go")?;
    }
    let notes = notes.borrow();
    image.mappings.retain(|mapping| {
        let (start, end) = (mapping.addresses.start, mapping.addresses.end);
        let needed = if mapping.starts_file {
            start..start + 1
        } else {
            start..end
        };
        notes.words.range(needed).next().is_some()
    });
    image.ranges = notes
        .searched
        .iter()
        .map(|&(start, end)| start..end)
        .collect();
    image.save(path)?;
    Ok(())
}

fn wait_until_it_reads(process: &Process) {
    let call = || {
        let thread = Thread::open(process, Stops::Never).ok()?;
        thread.system_call().and_then(system_call_name)
    };
    while process.state() != Some(State::Sleeping) || call() != Some("read") {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The parts of the address space that belong to no file.
fn anonymous(pid: i32) -> Result<Vec<Range<u64>>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let parts = maps.lines().filter(|line| !line.contains('/')).map(|line| {
        let (addresses, _) = line.split_once(' ')?;
        let (start, end) = addresses.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(number(start)?..number(end)?)
    });
    parts
        .collect::<Option<_>>()
        .ok_or("unknown mappings".into())
}

/// Reads the stack several times, as a recorder does.
fn read(memory: &Noted, mappings: &[Mapping]) -> Result<()> {
    let mut reader = StackReader::open(memory.clone(), mappings, &Named::default())?;
    reader.prepare_with(|| {})?;
    for motion in [Motion::Free, Motion::Still, Motion::Free] {
        reader.read(motion)?.ok_or("the stack cannot be read")?;
    }
    Ok(())
}

fn copy(memory: &mut ProcessMemory, words: &BTreeSet<u64>) -> Words {
    let words = words.iter().copied();
    words
        .filter_map(|address| Some((address, word(memory, address)?)))
        .collect()
}
