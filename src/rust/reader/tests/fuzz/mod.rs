//! Random changes of the memory of a process, before and while it is read. The process may be damaged or malicious:
//! reading it must not panic, take long, or use much memory.

use crate::fake::process::{At, FakeR, On, frames};
use crate::fake::{FakeMemory, Space};
use profile_reader::running_r::Named;
use profile_reader::stack::reader::{Motion, StackReader};
use profile_runtime::contexts::{BUILTIN, CLOSURE, Layout};
use profile_runtime::objects::ENVIRONMENT;
use std::alloc::{GlobalAlloc, Layout as Size, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::fake::module::Hash;

#[path = "../../src/heap/tests/random.rs"]
mod random;
pub use random::Random;

/// The limits for one call. Reading a piece of another process takes about a microsecond.
const MOST_READS: u64 = 2_000_000;
const MOST_BYTES: u64 = 1 << 30;
const MOST_MEMORY: usize = 256 << 20;

/// The maximum number of frames of a stack, and the numbers of changes that are made at a time.
const MOST_FRAMES: usize = 1000;
const COUNTS: [usize; 6] = [1, 1, 1, 2, 5, 30];

/// The results of the calls.
#[derive(Debug, Default)]
pub struct Outcomes {
    pub opened: u64,
    pub refused: u64,
    /// The numbers of stacks that were read, and that could not be read.
    pub read: u64,
    pub failed: u64,
    /// The maximum over all calls.
    pub reads: u64,
    pub bytes: u64,
    pub memory: usize,
    pub time: Duration,
}

impl Outcomes {
    pub fn add(&mut self, other: Outcomes) {
        self.opened += other.opened;
        self.refused += other.refused;
        self.read += other.read;
        self.failed += other.failed;
        self.reads = self.reads.max(other.reads);
        self.bytes = self.bytes.max(other.bytes);
        self.memory = self.memory.max(other.memory);
        self.time = self.time.max(other.time);
    }
}

/// A process with calls of all kinds on both stacks.
pub fn process(layout: Layout, random: &mut Random) -> FakeR {
    let hash = random.pick(&[Hash::Gnu, Hash::SystemV]);
    let mut r = FakeR::with(layout, hash, 24);
    let files = [r.srcfile("a.R"), r.hashed_srcfile("b.R")];
    let srcrefs: Vec<_> = (1..6)
        .map(|line| r.srcref(line, files[line as usize % 2]))
        .collect();
    let builtin = r.call_of_builtin("sum");
    let codes = [
        r.byte_code_of(&srcrefs, &[builtin; 5]),
        r.byte_code(&srcrefs[1..3]),
    ];
    let namespace = r.namespace("mine");
    let environments = [namespace, r.global].map(|outer| r.environment(outer));
    for (code, environment) in codes.iter().zip(environments) {
        let field = code.closure + ENVIRONMENT as u64;
        r.space.set(field, environment);
    }
    let (x, y) = (r.symbol("x"), r.symbol("y"));
    let (text, number, real) = (r.string("a"), r.integers(&[3]), r.real(2.0));
    let mut calls = vec![
        r.call_of("f"),
        r.call_of("g"),
        builtin,
        r.call(&[codes[0].closure, x]),
    ];
    for (operator, member) in [
        ("::", y),
        ("$", y),
        ("[[", text),
        ("[[", number),
        ("[[", real),
    ] {
        calls.push(r.call_of_member(operator, x, member));
    }
    for _ in 0..1 + random.below(12) {
        let call = random.pick(&calls);
        let code = random.pick(&codes);
        let position = random.below(5) as u64;
        let at = match random.below(6) {
            0 => At::Nowhere,
            1 | 2 => At::Srcref(random.pick(&srcrefs)),
            3 => At::Absolute(code, position),
            _ => At::Relative(code, position),
        };
        let on = random.pick(&[On::C, On::C, On::Node]);
        let flags = random.pick(&[CLOSURE, CLOSURE, CLOSURE, BUILTIN, 1]);
        r.record(on, flags, call, code.closure, at);
    }
    r.is_at(match random.below(3) {
        0 => At::Srcref(srcrefs[0]),
        _ => At::Absolute(codes[0], 1),
    });
    r
}

/// A change of the memory.
enum Change {
    Word(u64, u64),
    Byte(u64, u8),
    Hide(u64, u64),
    /// Copies a piece over another one.
    Copy(u64, u64, usize),
}

impl Change {
    fn apply(&self, space: &mut Space) {
        match *self {
            Change::Word(address, word) => space.set(address, word),
            Change::Byte(address, byte) => space.write(address, &[byte]),
            Change::Hide(address, size) => space.hide(address..address + size),
            Change::Copy(from, to, size) => {
                let mut bytes = vec![0; size];
                if space.read(from, &mut bytes) && space.read(to, &mut vec![0; size]) {
                    space.write(to, &bytes);
                }
            }
        }
    }

    /// A random change of a word that has a meaning. `words` are the addresses of words that are not 0.
    fn random(random: &mut Random, space: &Space, words: &[u64]) -> Change {
        let address = random.pick(words);
        let other = random.pick(words);
        let word = space.regions.iter().find_map(|region| {
            let offset = usize::try_from(address.checked_sub(region.start)?).ok()?;
            let bytes = region.bytes.get(offset..offset + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().unwrap()))
        });
        let word = word.unwrap_or(0);
        match random.below(20) {
            0 => Change::Word(address, random.next()),
            1 => Change::Word(address, 0),
            2 => Change::Word(address, u64::MAX),
            3 => Change::Word(address, u64::MAX - random.below(64) as u64),
            4 => Change::Word(address, word ^ 1 << random.below(64)),
            5 => Change::Word(address, word.wrapping_add(8)),
            6 => Change::Word(address, word.wrapping_sub(8)),
            7 => Change::Word(address, random.below(1000) as u64),
            8 => {
                let lengths = [10 << 30, 1 << 31, (1 << 31) - 1, 1 << 61, 1 << 62, 1 << 63];
                Change::Word(address, random.pick(&lengths))
            }
            // Another valid address, of a whole object or inside of one.
            9..=12 => Change::Word(address, space_word(space, other)),
            13 | 14 => Change::Word(address, other),
            15 => Change::Byte(address + random.below(8) as u64, random.next() as u8),
            16 => Change::Hide(address & !63, 64),
            17 => Change::Hide(address & !4095, 4096),
            _ => Change::Copy(other & !7, address & !7, 8 << random.below(6)),
        }
    }
}

/// The word at an address; 0 if it cannot be read.
fn space_word(space: &Space, address: u64) -> u64 {
    let mut bytes = [0; 8];
    space.read(address, &mut bytes);
    u64::from_le_bytes(bytes)
}

fn words(space: &Space) -> Vec<u64> {
    let regions = space.regions.iter().flat_map(|region| {
        let words = region
            .bytes
            .chunks_exact(8)
            .zip((region.start..).step_by(8));
        words
            .filter(|(word, _)| *word != [0; 8])
            .map(|(_, address)| address)
    });
    regions.collect()
}

/// Changes and reads a process. The same number always gives the same round. An error describes what is wrong.
pub fn round(number: u64) -> Result<Outcomes, String> {
    let random = &mut Random::new(number);
    let mut r = process(random.pick(&Layout::ALL), random);
    let words = words(&r.space);
    let mut outcomes = Outcomes::default();
    // Whether something changes before it is opened, or while it is.
    let mut is_early = random.below(3) == 0;
    if is_early {
        for _ in 0..random.pick(&COUNTS) {
            Change::random(random, &r.space, &words).apply(&mut r.space);
        }
    }
    let memory = r.memory();
    let original = r.space.clone();
    if random.below(4) == 0 {
        change_while_reading(random, &memory, &words, 400);
        is_early = true;
    }
    let mappings = r.mappings();
    let open = || StackReader::open(memory.clone(), &mappings, &Named::default());
    let reader = limited(&memory, &mut outcomes, open)?;
    let Ok(mut reader) = reader else {
        outcomes.refused += 1;
        return Ok(outcomes);
    };
    outcomes.opened += 1;
    let has_prepared = random.below(3) == 0;
    for step in 0..3 + random.below(4) {
        memory.leave_alone();
        if random.below(3) == 0 {
            memory.change(|space| *space = original.clone());
        }
        match random.below(3) {
            0 => memory.change(|space| {
                for _ in 0..random.pick(&COUNTS) {
                    Change::random(random, &original, &words).apply(space);
                }
            }),
            1 => change_while_reading(random, &memory, &words, 300),
            _ => {}
        }
        if step == 1 && has_prepared {
            limited(&memory, &mut outcomes, || reader.prepare_with(|| {}))?
                .map_err(|error| error.to_string())?;
        }
        let depth = limited(&memory, &mut outcomes, || {
            let motion = random.pick(&[Motion::Still, Motion::Free]);
            let stack = reader.read(motion).map_err(|error| error.to_string());
            stack.map(|stack| stack.map(|stack| stack.frames.len()))
        })??;
        // The stacks have no room for that many records.
        if depth.is_some_and(|depth| depth > MOST_FRAMES) {
            return Err(format!("a stack has {depth:?} frames"));
        }
        match depth {
            Some(_) => outcomes.read += 1,
            None => outcomes.failed += 1,
        }
    }
    // A process that was damaged for a while can be read again.
    if !is_early {
        memory.leave_alone();
        memory.change(|space| *space = original);
        if frames(&mut reader).is_none() {
            return Err("it cannot be read again".to_owned());
        }
    }
    Ok(outcomes)
}

/// Changes the memory once or several times, starting before a random read.
fn change_while_reading(random: &mut Random, memory: &FakeMemory, words: &[u64], reads: usize) {
    let first = random.below(reads) as u64;
    let step = random.pick(&[0, 1, 2, 7, 50]);
    let changes: Vec<Change> = memory.change(|space| {
        (0..8)
            .map(|_| Change::random(random, space, words))
            .collect()
    });
    let mut left = changes.into_iter();
    memory.before_read(move |space, reads| {
        let is_time = match step {
            0 => reads == first,
            step => reads >= first && (reads - first) % step == 0,
        };
        if !is_time {
            return;
        }
        if let Some(change) = left.next() {
            change.apply(space);
        }
    });
}

/// Makes a call, and checks how much it reads and how much memory it takes.
fn limited<T>(
    memory: &FakeMemory,
    outcomes: &mut Outcomes,
    call: impl FnOnce() -> T,
) -> Result<T, String> {
    let (reads, bytes, start) = (memory.reads(), memory.bytes(), Instant::now());
    let before = USED.get();
    MOST_USED.set(before);
    let result = call();
    let took = start.elapsed();
    let used = MOST_USED.get().saturating_sub(before) as usize;
    let (reads, bytes) = (memory.reads() - reads, memory.bytes() - bytes);
    outcomes.reads = outcomes.reads.max(reads);
    outcomes.bytes = outcomes.bytes.max(bytes);
    outcomes.memory = outcomes.memory.max(used);
    outcomes.time = outcomes.time.max(took);
    match () {
        () if reads > MOST_READS => Err(format!("a call read {reads} pieces")),
        () if bytes > MOST_BYTES => Err(format!("a call read {bytes} bytes")),
        () if used > MOST_MEMORY => Err(format!("a call took {used} bytes of memory")),
        () => Ok(result),
    }
}

/// Counts the memory that a thread uses.
struct Counting;

thread_local! {
    static USED: Cell<isize> = const { Cell::new(0) };
    static MOST_USED: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

impl Counting {
    /// Memory counts for the thread that frees it, even if another one has allocated it, so the number may be
    /// negative.
    fn add(size: usize) {
        let used = USED.get().wrapping_add_unsigned(size);
        USED.set(used);
        MOST_USED.set(MOST_USED.get().max(used));
    }
}

// SAFETY: the system's allocator does everything.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, size: Size) -> *mut u8 {
        Counting::add(size.size());
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, size: Size) {
        USED.set(USED.get().wrapping_sub_unsigned(size.size()));
        // SAFETY: see above.
        unsafe { System.dealloc(pointer, size) }
    }
}
