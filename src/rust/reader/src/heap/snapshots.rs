//! Takes snapshots of R's heap, in this process and in others.
//!
//! The heap of this process is not copied. R runs no code meanwhile, since only its thread takes snapshots, so its
//! objects stay as and where they are. Another process is stopped while its heap is copied. Another thread of this process
//! makes an image of it, whose heap it copies while R goes on.

use crate::heap::copied::{Copied, CopiedMemory};
use crate::heap::copying::copy;
use crate::heap::known::{Known, Places};
use crate::heap::lists::Lists;
use crate::heap::roots::Library;
use crate::heap::snapshot::{About, Snapshot, take};
use crate::memory::symbols::Module;
use crate::process::apart;
use crate::process::{
    Held, Image, OwnView, Process, ProcessMemory, Stops, Thread, is_traced, release_memory,
};
use crate::record::follow::{self, Followed};
use crate::record::source::{add_numbers, of_process, process_source};
use crate::target::c_stack::Whereabouts;
use crate::target::{MOST_TO_OPEN, Target};
use profile_core::error::{Error, Result};
use profile_core::limits::cancel::{self, Stop};
use profile_core::limits::memory::{TryGrow, owned};
use profile_core::message;
use profile_core::model::Profile;
use profile_core::model::heap::{GARBAGE, NO_HOLDER, RootName, SNAPSHOT};
use profile_runtime::heap::Layout;
use profile_runtime::memory::{Limited, Mapping, Memory, View};
use std::process;
use std::thread::sleep;
use std::time::Duration;

/// Takes a snapshot of this process. `least` is [`About::least`]; `is_collected` is whether garbage has just been collected.
pub fn own_heap(least: Option<u64>, is_collected: bool) -> Result<Snapshot> {
    let unheld = if is_collected { NO_HOLDER } else { GARBAGE };
    let process = own_process()?;
    let found = Found::find(&process)?;
    let taken = OwnView::look(&found.target, |mut view| {
        let resident = process.resident();
        let known = Known::read(&mut view, &found.places)?;
        found.take(&mut view, &process, &known, resident, (least, unheld), &[])
    });
    // The memory for the snapshot would otherwise be part of the next one, as memory that is not R's heap.
    release_memory();
    taken
}

/// Takes a snapshot of another process, which is stopped while its heap is copied.
pub fn heap_of(pid: i32, stop: Stop) -> Result<Snapshot> {
    apart::run(stop, |stop| heap_here(pid, stop)).0
}

/// Fails if the heap of this process cannot be read, with the reason.
pub fn check_own_heap() -> Result<()> {
    Found::find(&own_process()?).map(drop)
}

fn own_process() -> Result<Process> {
    Process::find(i32::try_from(process::id()).unwrap_or(0))
}

/// The most images that are made for a snapshot, since R waits a moment for each of them.
const MOST_IMAGES: usize = 20;

/// Takes a snapshot of this process in a thread that is not R's, and in which signals are blocked. It includes garbage that
/// R has not collected yet.
pub fn heap_of_image(stop: Stop) -> Result<Snapshot> {
    let process = own_process()?;
    let found = Found::find(&process)?;
    let (mut pauses, mut last) = (0, None);
    for pause in PAUSES.into_iter().cycle().take(MOST_IMAGES) {
        cancel::check(stop)?;
        match found.take_of_image(&process, &mut pauses) {
            Ok(Some(snapshot)) if snapshot.heap.wrong == 0 => return Ok(snapshot),
            Ok(_) => last = None,
            // R may have been changing its lists.
            Err(error @ Error::Process(_)) => last = Some(error),
            Err(error) => return Err(error),
        }
        sleep(pause);
    }
    Err(last.unwrap_or_else(|| collects(MOST_IMAGES)))
}

fn collects(attempts: usize) -> Error {
    Error::Process(message!(
        "R was collecting garbage during each of {attempts} attempts to take a snapshot."
    ))
}

/// The maximum number of attempts, and the times between two of them. An attempt fails if R is just collecting garbage,
/// which is noticed soon, or changing its lists of objects.
const TRIES: usize = 500;
const PAUSES: [Duration; 5] = [
    Duration::from_millis(1),
    Duration::from_millis(7),
    Duration::from_millis(3),
    Duration::from_millis(23),
    Duration::from_millis(11),
];

fn heap_here(pid: i32, stop: Stop) -> Result<Snapshot> {
    let process = Process::find(pid)?;
    let mut found = Found::find(&process)?;
    let mut thread = found.open_when_untraced(&process, stop)?;
    let mut pauses = 0;
    for pause in PAUSES.into_iter().cycle().take(TRIES) {
        cancel::check(stop)?;
        let taken = found.stop_and_take(&process, &mut thread, &mut pauses, false);
        match taken.map_err(|error| of_process(pid, error)) {
            Ok(Some(snapshot)) if snapshot.heap.wrong == 0 => return Ok(snapshot),
            // Another attempt is of no use.
            Err(error) if process.state().is_none() || !matches!(error, Error::Process(_)) => {
                return Err(error);
            }
            _ => sleep(pause),
        }
    }
    let last = found.stop_and_take(&process, &mut thread, &mut pauses, true);
    last.and_then(|snapshot| snapshot.ok_or_else(|| collects(TRIES)))
        .map_err(|error| of_process(pid, error))
}

/// What is found in a process before its heap is read.
struct Found {
    mappings: Vec<Mapping>,
    target: Target,
    places: Places,
    lists: Lists,
    libraries: Vec<Library>,
}

impl Found {
    fn find(process: &Process) -> Result<Found> {
        let named = |error| of_process(process.pid, error);
        let mappings = process.mappings()?;
        let about = process.named()?;
        let mut memory = ProcessMemory::new(process.pid);
        let mut limited = Limited::new(memory.clone(), MOST_TO_OPEN);
        let target = Target::open(&mut limited, &mappings, &about).map_err(named)?;
        let places = Places::find(&mut memory, &target.modules, &about).map_err(named)?;
        let lists = Lists::find(&mut memory, &target.variables, Layout::ALL)?;
        let lists = lists.ok_or_else(|| {
            let why = "no variable of R looks like its lists of objects (`R_GenHeap`)";
            named(about.unknown("objects", why))
        })?;
        let libraries = libraries(process, &mut memory)?;
        Ok(Found {
            mappings,
            target,
            places,
            lists,
            libraries,
        })
    }

    /// The thread that runs R, if it can be stopped. Another profiler may trace it for a moment, again and again.
    fn open_when_untraced(&mut self, process: &Process, stop: Stop) -> Result<Thread> {
        let mut memory = ProcessMemory::new(process.pid);
        let mut pauses = PAUSES.into_iter().cycle().take(TRIES);
        loop {
            cancel::check(stop)?;
            match follow::open(process, &mut self.target, &mut memory, Stops::Always) {
                Err(error) if is_traced(process.pid)? => match pauses.next() {
                    Some(pause) => sleep(pause),
                    None => return Err(error),
                },
                opened => return opened,
            }
        }
    }

    fn stop_and_take(
        &mut self,
        process: &Process,
        thread: &mut Thread,
        pauses: &mut u64,
        may_collect: bool,
    ) -> Result<Option<Snapshot>> {
        let mut memory = ProcessMemory::new(process.pid);
        let lost = || Error::Process(message!("The thread that runs R was not found."));
        if follow::follow(thread, &mut self.target, &mut memory)? == Followed::Lost {
            return Err(lost());
        }
        let activity = thread
            .activity()
            .ok_or_else(|| Error::Process(message!("It ended while it was read.")))?;
        let resident = process.resident();
        let Held::Stopped(pause) = thread.hold(activity.state) else {
            return Err(Error::Process(message!(
                "It could not be stopped: it waits for a device, or another process traces it."
            )));
        };
        // Another thread may have begun to run R before this one was stopped.
        let place = self.target.whereabouts(&mut memory);
        let is_here = place.is_none_or(|place| match place {
            Whereabouts::Record(address) => self.target.stack.contains(&address),
            Whereabouts::Position(_) => true,
        });
        if !is_here {
            add_pause(pauses, pause.end());
            return Err(lost());
        }
        let copied = self.copy(&mut memory, may_collect);
        add_pause(pauses, pause.end());
        self.take_copied(copied?, process, resident, *pauses)
    }

    fn take_of_image(&self, process: &Process, pauses: &mut u64) -> Result<Option<Snapshot>> {
        let resident = process.resident();
        let image = Image::take()?;
        add_pause(pauses, image.pause);
        let copied = self.copy(&mut image.memory(), false);
        drop(image);
        self.take_copied(copied?, process, resident, *pauses)
    }

    /// `None` if R is just collecting garbage, unless that `may_collect`.
    fn copy(
        &self,
        memory: &mut ProcessMemory,
        may_collect: bool,
    ) -> Result<Option<(Known, Copied)>> {
        let known = Known::read(memory, &self.places)?;
        let copied = copy(
            memory,
            &self.mappings,
            &self.target,
            &known,
            &self.lists,
            &self.libraries,
            may_collect,
        )?;
        Ok(copied.map(|copied| (known, copied)))
    }

    fn take_copied(
        &self,
        copied: Option<(Known, Copied)>,
        process: &Process,
        resident: Option<u64>,
        pauses: u64,
    ) -> Result<Option<Snapshot>> {
        let Some((known, copied)) = copied else {
            return Ok(None);
        };
        let mut memory = CopiedMemory(&copied);
        let pauses = [("profile.pauses.total", pauses)];
        let taken = self.take(
            &mut memory,
            process,
            &known,
            resident,
            (None, GARBAGE),
            &pauses,
        );
        taken.map(Some)
    }

    fn take<'m>(
        &self,
        memory: &mut impl View<'m>,
        process: &Process,
        known: &Known,
        resident: Option<u64>,
        (least, unheld): (Option<u64>, RootName),
        numbers: &[(&str, u64)],
    ) -> Result<Snapshot> {
        let mut profile = Profile::default();
        let mut source = process_source(process, SNAPSHOT, &mut profile)?;
        add_numbers(&mut source, numbers, &mut profile)?;
        let about = About {
            target: &self.target,
            known,
            lists: &self.lists,
            libraries: &self.libraries,
            resident,
            unheld,
            least,
        };
        take(memory, &about, profile, source)
    }
}

/// Adds a duration to the sum, in nanoseconds.
fn add_pause(pauses: &mut u64, pause: Duration) {
    let nanoseconds = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
    *pauses = pauses.saturating_add(nanoseconds);
}

/// The libraries of a process that have variables, without R's.
fn libraries(process: &Process, memory: &mut impl Memory) -> Result<Vec<Library>> {
    let mut libraries = Vec::new();
    for (path, start) in process.files()? {
        let name = path.rsplit('/').next().unwrap_or_default();
        if name == "libR.so" || path.ends_with("/bin/exec/R") {
            continue;
        }
        if let Some(module) = Module::at(memory, start)? {
            libraries.try_push(Library {
                name: owned(name)?,
                variables: module.variables,
            })?;
        }
    }
    Ok(libraries)
}
