//! The native stack of a process, and what is needed to find its frames.
//!
//! While the process is stopped, its C stack and the used part of R's node stack are copied. When it runs again, the
//! copy is unwound, and the result is stored as words, in the format of the sampler inside the process
//! ([`profile_core::joint::recording`]). So the names of functions are looked up only once, at the end.

use super::memory::ProcessMemory;
use super::modules::RemoteModules;
use super::pause::{Pause, Stopper};
use super::proc::Process;
use crate::calls::OnStack;
use crate::memory::{Memory, at};
use crate::stack;
use crate::symbols;
use crate::target::{Mapping, Target};
use profile_core::error::{Error, Result};
use profile_core::joint::recording::{HEADER, NO_CONTEXT, PAIR, WHOLE_CONTEXTS, WHOLE_STACK};
use profile_core::joint::{Evaluator, Files, Recording};
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::message;
use profile_runtime::contexts::{CLOSURE, Layout, NEXT_PROMISE, RECORD};
use profile_unwind::{Modules, Registers, Unwinder};
use std::collections::HashMap;
use std::ops::Range;

/// The maximum number of frames. Further ones are left out.
const MOST_FRAMES: usize = 100_000;
/// The maximum sizes of the C stack and of the node stack.
const MOST_STACK: u64 = 64 << 20;
const MOST_NODES: u64 = 8 << 20;
/// More pending promises than there can be: a longer list is damaged.
const MOST_PROMISES: usize = 10_000;
/// The number of bytes below the stack pointer that a function may use, by the ABI.
const RED_ZONE: u64 = 128;
/// The minimum size of R's byte code interpreter. It has more than 20 KB.
const LARGE: u64 = 10_000;
/// The maximum number of functions between `Rf_eval()` and R's byte code interpreter. R has one, or none.
const MOST_BETWEEN: usize = 2;
/// A function calls closures if at least this share of its frames contains the record of a call.
const MOSTLY: f64 = 0.95;

/// Finds native stacks of a process.
pub struct NativeReader<'f> {
    process: Process,
    memory: ProcessMemory,
    stopper: Stopper,
    unwinder: Unwinder<RemoteModules<'f, ProcessMemory>>,
    /// The address of `Rf_eval()`.
    eval: u64,
    stack_top: u64,
    stack: Snapshot,
    nodes: Snapshot,
    room: Vec<u64>,
    words: Vec<u64>,
    /// The first word of the last tick.
    last: usize,
}

/// A copy of a part of memory.
#[derive(Debug, Default)]
struct Snapshot {
    addresses: Range<u64>,
    bytes: Vec<u8>,
}

impl Snapshot {
    /// Copies a range. Returns whether it could be read.
    fn take(&mut self, memory: &mut impl Memory, addresses: Range<u64>) -> Result<bool> {
        self.addresses = 0..0;
        let size = addresses.end.saturating_sub(addresses.start) as usize;
        if self.bytes.len() < size {
            self.bytes.clear();
            self.bytes.try_fill(size, 0)?;
        }
        let is_read = memory.read(addresses.start, &mut self.bytes[..size]);
        if is_read {
            self.addresses = addresses;
        }
        Ok(is_read)
    }

    fn word(&self, address: u64) -> Option<u64> {
        let end = address.checked_add(size_of::<u64>() as u64)?;
        let is_inside = address >= self.addresses.start && end <= self.addresses.end;
        is_inside.then(|| at(&self.bytes, (address - self.addresses.start) as usize))
    }
}

impl profile_unwind::Stack for &Snapshot {
    fn read(self, address: u64) -> Option<u64> {
        self.word(address)
    }
}

/// A period during which the process is stopped.
pub struct Still {
    /// The process runs again when this is dropped.
    pause: Pause,
    /// Whether the stack was copied.
    is_copied: bool,
}

impl<'f> NativeReader<'f> {
    /// Fails with the reason if the process cannot be stopped.
    pub fn open(
        process: &Process,
        target: &Target,
        mappings: &[Mapping],
        files: &'f Files,
    ) -> Result<NativeReader<'f>> {
        let mut memory = ProcessMemory::new(process.pid);
        let stopper = Stopper::new(process.pid)?;
        let mut eval = None;
        for mapping in mappings.iter().filter(|mapping| mapping.starts_file) {
            let module = symbols::Module::at(&mut memory, mapping.addresses.start)?;
            eval = module.and_then(|module| module.find(&mut memory, "Rf_eval"));
            if eval.is_some() {
                break;
            }
        }
        let eval =
            eval.ok_or_else(|| Error::Process(message!("It has no function `Rf_eval()`.")))?;
        let mut modules = RemoteModules::new(memory.clone(), process.pid, files);
        modules.update(&process.parts()?)?;
        let mut room = Vec::new();
        room.try_fill(MOST_FRAMES * PAIR, 0)?;
        Ok(NativeReader {
            process: process.clone(),
            memory,
            stopper,
            unwinder: Unwinder::new(modules)?,
            eval,
            stack_top: target.stack.end,
            stack: Snapshot::default(),
            nodes: Snapshot::default(),
            room,
            words: Vec::new(),
            last: usize::MAX,
        })
    }

    /// Stops the process and copies its stack; `None` if it cannot be stopped now.
    pub fn stop(&mut self) -> Result<Option<Still>> {
        let Some(pause) = self.stopper.stop() else {
            return Ok(None);
        };
        let pointer = pause.registers.stack_pointer();
        let is_inside = pointer < self.stack_top && self.stack_top - pointer <= MOST_STACK;
        let mut is_copied = false;
        if is_inside {
            // The memory below the stack pointer may not be mapped yet.
            for low in [pointer.saturating_sub(RED_ZONE), pointer] {
                is_copied = self.stack.take(&mut self.memory, low..self.stack_top)?;
                if is_copied {
                    break;
                }
            }
        }
        self.unwinder.modules.verify()?;
        Ok(Some(Still { pause, is_copied }))
    }

    /// Lets the process run again, and finds its native frames. `stack` is R's stack, which was read while the
    /// process was stopped. Returns the number of the first word of the tick; `None` if the frames cannot be found.
    pub fn resume(
        &mut self,
        still: Still,
        target: &Target,
        stack: &stack::Stack,
    ) -> Result<Option<usize>> {
        let records = || stack.records.iter();
        let is_node = |record: &&OnStack| target.node_stack.contains(&record.address);
        let height = records().filter(is_node).map(|record| record.address).max();
        self.nodes.addresses = 0..0;
        if let (Some(height), Layout::R_4_4) = (height, target.layout) {
            let nodes = target.node_stack.start..height.saturating_add(RECORD as u64);
            if nodes.end - nodes.start > MOST_NODES || !self.nodes.take(&mut self.memory, nodes)? {
                return Ok(None);
            }
        }
        let registers = still.pause.registers.clone();
        drop(still.pause);
        if !still.is_copied || stack.is_cut {
            return Ok(None);
        }
        let Some((frames, is_whole)) = self.walk(&registers)? else {
            return Ok(None);
        };
        let start = self.words.len();
        let contexts = stack.records.len();
        let flags = if is_whole { WHOLE_STACK } else { 0 } | WHOLE_CONTEXTS;
        let header: [u64; HEADER] = [frames as u64 | (contexts as u64) << 32, flags, 0, 0];
        self.words.try_extend(&header)?;
        let frames = self.room.get(..frames * PAIR).unwrap_or_default();
        self.words.try_extend(frames)?;
        let mut promises = Promises::default();
        for record in records() {
            let pair = match record.address {
                0 => NO_CONTEXT,
                address => {
                    let promise = match target.node_stack.contains(&address) {
                        true => self.promise(record.promises, &registers, &mut promises)?,
                        false => 0,
                    };
                    [address | u64::from(CLOSURE) << 48, promise]
                }
            };
            self.words.try_extend(&pair)?;
        }
        // A sleeping process always has the same stack, which is stored only once.
        if let Some(last) = self.words.get(self.last..start) {
            if last == &self.words[start..] {
                self.words.truncate(start);
                return Ok(Some(self.last));
            }
        }
        self.last = start;
        Ok(Some(start))
    }

    /// The number of native frames, and whether the last one is the outermost one.
    fn walk(&mut self, registers: &Registers) -> Result<Option<(usize, bool)>> {
        for is_last in [false, true] {
            let stack = &self.stack;
            let walked = self.unwinder.walk(registers.clone(), stack, &mut self.room);
            let Some(walked) = walked else {
                return Ok(None);
            };
            if walked.whole || is_last {
                return Ok(Some((walked.frames, walked.whole)));
            }
            // The walk may have ended in a module that was loaded since.
            self.unwinder.modules.update(&self.process.parts()?)?;
        }
        Ok(None)
    }

    /// The innermost promise of a list that is on the C stack, which means that its evaluation was started by C code;
    /// 0 if there is none.
    fn promise(&self, first: u64, registers: &Registers, known: &mut Promises) -> Result<u64> {
        let pointer = registers.stack_pointer();
        let is_on_stack = |address: u64| address >= pointer && address < self.stack_top;
        known.followed.clear();
        let mut address = first;
        let mut found = 0;
        for _ in 0..MOST_PROMISES {
            if let Some(&outer) = known.found.get(&address) {
                found = outer;
                break;
            }
            if !self.nodes.addresses.contains(&address) {
                found = if is_on_stack(address) { address } else { 0 };
                break;
            }
            known.followed.try_push(address)?;
            address = match self.nodes.word(address.wrapping_add(NEXT_PROMISE)) {
                Some(next) => next,
                None => break,
            };
        }
        for &address in &known.followed {
            known.found.try_put(address, found)?;
        }
        Ok(found)
    }

    /// The memory that ticks take, in bytes.
    pub fn size(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// All ticks. To be called at the end.
    pub fn recording(&mut self) -> Result<Recording<'_>> {
        let evaluator = self.evaluator()?;
        Ok(Recording {
            words: &self.words,
            modules: self.unwinder.modules.seen(self.eval)?,
            evaluator,
            stack_top: self.stack_top,
            lines_written_at_once: false,
            lost: 0,
            start: 0,
            duration: 0,
        })
    }

    /// Finds the code of R's evaluator from the ticks, since R exports `Rf_eval()` only.
    ///
    /// The byte code interpreter is by far the largest function of R. Functions that call closures nearly always have
    /// a record of the call in their frame.
    fn evaluator(&mut self) -> Result<Evaluator> {
        let mut evaluator = Evaluator {
            eval: self.eval..self.eval + 1,
            ..Evaluator::default()
        };
        let unwinder = &mut self.unwinder;
        let Some(module) = unwinder.modules.at(self.eval) else {
            return Ok(evaluator);
        };
        evaluator.eval = unwinder.function(self.eval).unwrap_or(evaluator.eval);
        let tables = unwinder.modules.tables(module);
        let largest = tables.and_then(|tables| tables.largest_function());
        let largest = largest.filter(|range| range.end - range.start > LARGE);
        let interpreter = largest.unwrap_or_default();
        let mut functions: HashMap<u64, Option<Range<u64>>, foldhash::fast::RandomState> =
            HashMap::default();
        // For each function, by its start address: its range, and the numbers of its frames with and without a
        // record.
        let mut counts: HashMap<u64, (Range<u64>, usize, usize), foldhash::fast::RandomState> =
            HashMap::default();
        let mut between = usize::MAX;
        let all = Recording {
            words: &self.words,
            modules: Vec::new(),
            evaluator: Evaluator::default(),
            stack_top: self.stack_top,
            lines_written_at_once: false,
            lost: 0,
            start: 0,
            duration: 0,
        };
        for tick in all.ticks() {
            let mut records = tick.contexts().map(|context| context.address).peekable();
            let mut since = None;
            let mut frames = tick.frames().peekable();
            while let Some(frame) = frames.next() {
                let end = frames
                    .peek()
                    .map_or(self.stack_top, |outer| outer.stack_pointer);
                // Records on the node stack are skipped.
                let mut has_record = false;
                let is_before = |&address: &u64| {
                    address < end || address < frame.stack_pointer || address >= self.stack_top
                };
                while let Some(address) = records.next_if(is_before) {
                    has_record |= (frame.stack_pointer..end).contains(&address);
                }
                if frame.module != Some(module) {
                    since = None;
                    continue;
                }
                if interpreter.contains(&frame.address) {
                    since = Some(0);
                } else if let Some(count) = since {
                    if evaluator.eval.contains(&frame.address) {
                        between = between.min(count);
                        since = None;
                    } else {
                        since = Some(count + 1);
                    }
                }
                let function = match functions.get(&frame.address) {
                    Some(function) => function.clone(),
                    None => {
                        let function = self.unwinder.function(frame.address);
                        functions.try_put(frame.address, function.clone())?;
                        function
                    }
                };
                if let Some(function) = function {
                    let start = function.start;
                    if !counts.contains_key(&start) {
                        counts.try_put(start, (function, 0, 0))?;
                    }
                    if let Some((_, with, without)) = counts.get_mut(&start) {
                        *if has_record { with } else { without } += 1;
                    }
                }
            }
        }
        if between <= MOST_BETWEEN {
            (evaluator.interpreter, evaluator.between) = (interpreter, between);
        }
        for (function, with, without) in counts.into_values() {
            if with as f64 >= MOSTLY * (with + without) as f64 {
                evaluator.closures.try_push(function)?;
            }
        }
        Ok(evaluator)
    }
}

/// The results for lists of promises that were followed: records often share the same list.
#[derive(Default)]
struct Promises {
    found: HashMap<u64, u64, foldhash::fast::RandomState>,
    followed: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::super::modules::Part;
    use super::*;
    use profile_core::joint::Role;
    use std::process::{Child, Command};
    use std::time::Duration;

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    /// The modules of the frames of a process that waits, innermost first, and whether the last is the outermost one.
    fn walked(pid: i32, process: &Process) -> (Vec<String>, bool) {
        let files = Files::default();
        let mut memory = ProcessMemory::new(pid);
        let mut modules = RemoteModules::new(memory.clone(), pid, &files);
        modules.update(&process.parts().unwrap()).unwrap();
        let pause = Stopper::new(pid).unwrap().stop().unwrap();
        let pointer = pause.registers.stack_pointer();
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let end = line.split(['-', ' ']).nth(1).unwrap();
        let end = u64::from_str_radix(end, 16).unwrap();
        let mut stack = Snapshot::default();
        assert!(stack.take(&mut memory, pointer..end).unwrap());
        let registers = pause.registers.clone();
        drop(pause);
        assert_eq!(stack.word(end), None);
        assert_eq!(stack.word(pointer - 1), None);
        assert!(modules.verify().unwrap());
        let mut unwinder = Unwinder::new(modules).unwrap();
        let mut room = vec![0; 1000];
        let walked = unwinder.walk(registers, &stack, &mut room).unwrap();
        let seen = unwinder.modules.seen(0).unwrap();
        let names = room.chunks(PAIR).take(walked.frames).map(|pair| {
            let module = &seen[(pair[0] >> 48) as usize];
            match module.role {
                Role::Program => "program".to_owned(),
                _ => module.path.clone(),
            }
        });
        (names.collect(), walked.whole)
    }

    #[test]
    fn the_copy_of_a_stack_is_unwound_to_its_end() {
        let child = Killed(Command::new("sleep").arg("100").spawn().unwrap());
        let pid = child.0.id() as i32;
        let process = Process::find(pid).unwrap();
        for _ in 0..1000 {
            if process.system_call() == Some(libc::SYS_clock_nanosleep) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let (modules, is_whole) = walked(pid, &process);
        assert!(is_whole, "{modules:?}");
        // From the system call to the start of the program, which calls `main()` through the C library.
        assert!(modules[0].contains("libc"), "{modules:?}");
        assert_eq!(modules.last().unwrap(), "program");
        let first = modules
            .iter()
            .position(|module| module == "program")
            .unwrap();
        assert!(
            modules[first..]
                .iter()
                .any(|module| module.contains("libc"))
        );
    }

    #[test]
    fn modules_that_are_no_more_are_noticed() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id() as i32;
        let process = Process::find(pid).unwrap();
        let files = Files::default();
        let mut modules = RemoteModules::new(ProcessMemory::new(pid), pid, &files);
        let mut code = 0;
        for _ in 0..1000 {
            let parts = process.parts().unwrap();
            modules.update(&parts).unwrap();
            let libc = |part: &&Part| part.is_code && part.path.contains("libc");
            if let Some(part) = parts.iter().find(libc) {
                code = part.addresses.start;
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(modules.verify().unwrap());
        assert!(modules.at(code).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!modules.verify().unwrap());
        assert_eq!(modules.at(code), None);
    }
}
