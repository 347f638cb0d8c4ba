//! Takes snapshots of R's heap, in this process and in others.
//!
//! The heap of this process is not copied. R runs no code meanwhile, since only its thread takes snapshots, so its
//! objects stay as and where they are. Another process is stopped while its heap is copied. Another thread of this process
//! makes an image of it, whose heap it copies while R goes on.

use crate::heap::attempts::{LIMITS, Limits, PAUSES, Subject, best};
use crate::heap::copied::{Copied, CopiedMemory};
use crate::heap::copying::copy;
use crate::heap::known::{Known, Places};
use crate::heap::lists::Lists;
use crate::heap::resident::system::{own_resident, resident_of};
use crate::heap::resident::{Malloc, Pool, Resident};
use crate::heap::roots::Library;
use crate::heap::size::size;
use crate::heap::snapshot::{About, Snapshot, take};
use crate::memory::symbols::Module;
use crate::process::apart;
use crate::process::{
    Held, Image, OwnView, Pause, Process, ProcessMemory, Thread, Watched, is_traced, release_memory,
};
use crate::record::follow::{self, Followed};
use crate::record::source::{of_process, process_source};
use crate::recorded::source::add_numbers_to_all;
use crate::recorded::states::Stops;
use crate::running_r::c_stack::Whereabouts;
use crate::running_r::{MOST_TO_OPEN, RunningR};
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
use std::time::{Duration, Instant};

/// Takes a snapshot of this process. `least` is [`About::least`]; `before` is [`own_size()`] before garbage was collected,
/// if it has just been collected. `pools` are the allocators of packages.
pub fn own_heap(least: Option<u64>, before: Option<u64>, pools: Vec<Pool>) -> Result<Snapshot> {
    let unheld = match before {
        Some(_) => NO_HOLDER,
        None => GARBAGE,
    };
    let process = own_process()?;
    // First, without the memory for the snapshot.
    let resident = own_resident(&process, pools)?;
    let found = Found::find(&process)?;
    let taken = OwnView::look(&found.r, |mut view| {
        let known = Known::read(&mut view, &found.places)?;
        let mut taken = found.take(&mut view, &process, &known, &resident, (least, unheld))?;
        if let Some(before) = before {
            let released = before.saturating_sub(size(&mut view, &found.lists)?);
            let released = [("profile.heap.released", released)];
            add_numbers_to_all(&mut taken.profile, &released)?;
        }
        Ok(taken)
    });
    // The memory for the snapshot would otherwise be part of the next one, as memory that is not R's heap.
    release_memory();
    taken
}

/// The bytes of R's heap in this process, see [`size()`].
pub fn own_size() -> Result<u64> {
    let found = Found::find(&own_process()?)?;
    OwnView::look(&found.r, |mut view| size(&mut view, &found.lists))
}

/// Takes a snapshot of another process, which is stopped while its heap is copied. `malloc`: what it says about its memory,
/// if it does.
pub fn heap_of(pid: i32, malloc: &Malloc, stop: Stop) -> Result<Snapshot> {
    let taken = apart::run(stop, |stop| heap_here(pid, malloc, stop)).0;
    taken.map(|(snapshot, _)| snapshot)
}

/// Fails if the heap of this process cannot be read, with the reason.
pub fn check_own_heap() -> Result<()> {
    Found::find(&own_process()?).map(drop)
}

fn own_process() -> Result<Process> {
    Process::find(i32::try_from(process::id()).unwrap_or(0))
}

/// For a snapshot of an image. R waits a moment for each of them.
const LIMITS_OF_IMAGES: Limits = Limits {
    attempts: 20,
    ..LIMITS
};

/// Takes a snapshot of this process in a thread that is not R's, and in which signals are blocked. It includes garbage that
/// R has not collected yet.
pub fn heap_of_image(stop: Stop) -> Result<Snapshot> {
    let process = own_process()?;
    let mut imaged = Imaged {
        found: Found::find(&process)?,
        process,
        begin: Instant::now(),
    };
    best(&mut imaged, &LIMITS_OF_IMAGES, stop).map(|(snapshot, _)| snapshot)
}

/// This process, of which an image is made for each attempt.
struct Imaged {
    process: Process,
    found: Found,
    begin: Instant,
}

impl Subject for Imaged {
    fn attempt(&mut self, may_collect: bool) -> (Option<Duration>, Result<Option<Snapshot>>) {
        // The image shares all pages with this process.
        let resident = match own_resident(&self.process, Vec::new()) {
            Ok(resident) => resident,
            Err(error) => return (None, Err(error)),
        };
        let image = match Image::take() {
            Ok(image) => image,
            Err(error) => return (None, Err(error)),
        };
        let copied = self.found.copy(&mut image.memory(), may_collect);
        let pause = image.pause;
        drop(image);
        let taken =
            copied.and_then(|copied| self.found.take_copied(copied, &self.process, &resident));
        (Some(pause), taken)
    }

    fn exists(&self) -> bool {
        true
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn wait(&mut self, pause: Duration) {
        sleep(pause);
    }
}

/// The same in a thread that ends with its work. Also returns how long the process was stopped.
pub fn heap_here(pid: i32, malloc: &Malloc, stop: Stop) -> Result<(Snapshot, Duration)> {
    let process = Process::find(pid)?;
    let mut found = Found::find(&process)?;
    let begin = Instant::now();
    let mut stopped = Stopped {
        thread: found.open_when_untraced(&process, begin, stop)?,
        process,
        found,
        malloc: malloc.clone(),
        begin,
    };
    best(&mut stopped, &LIMITS, stop)
}

/// Another process, which is stopped for each attempt.
struct Stopped {
    process: Process,
    thread: Thread,
    found: Found,
    malloc: Malloc,
    begin: Instant,
}

impl Subject for Stopped {
    fn attempt(&mut self, may_collect: bool) -> (Option<Duration>, Result<Option<Snapshot>>) {
        let pid = self.process.pid;
        let named = |error| of_process(pid, error);
        let mut memory = ProcessMemory::new(pid);
        // Before the stop, which would otherwise take longer.
        let resident = resident_of(&self.process, self.malloc.clone(), Vec::new());
        let pause = match self.stop(&mut memory) {
            Ok(pause) => pause,
            Err(error) => return (None, Err(named(error))),
        };
        // Another thread may have begun to run R before this one was stopped.
        let copied = match self.found.is_in_thread(&mut memory) {
            true => self.found.copy(&mut memory, may_collect),
            false => Err(lost()),
        };
        let stopped = pause.end();
        let taken = copied.and_then(|copied| {
            let resident = resident?;
            self.found.take_copied(copied, &self.process, &resident)
        });
        (Some(stopped), taken.map_err(named))
    }

    fn exists(&self) -> bool {
        self.process.state().is_some()
    }

    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn wait(&mut self, pause: Duration) {
        sleep(pause);
    }
}

impl Stopped {
    /// Stops the thread that runs R.
    fn stop(&mut self, memory: &mut ProcessMemory) -> Result<Pause> {
        if follow::follow(&mut self.thread, &mut self.found.r, memory)? == Followed::Lost {
            return Err(lost());
        }
        let activity = self.thread.activity();
        let activity =
            activity.ok_or_else(|| Error::Process(message!("It ended while it was read.")))?;
        match self.thread.hold(activity.state) {
            Held::Stopped(pause) => Ok(pause),
            _ => Err(Error::Process(message!(
                "It could not be stopped: it waits for a device, or another process traces it."
            ))),
        }
    }
}

fn lost() -> Error {
    Error::Process(message!("The thread that runs R was not found."))
}

/// What is found in a process before its heap is read.
struct Found {
    mappings: Vec<Mapping>,
    r: RunningR,
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
        let r = RunningR::open(&mut limited, &mappings, &about).map_err(named)?;
        let places = Places::find(&mut memory, &r.modules, &about).map_err(named)?;
        let lists = Lists::find(&mut memory, &r.variables, Layout::ALL)?;
        let lists = lists.ok_or_else(|| {
            let why = "no variable of R looks like its lists of objects (`R_GenHeap`)";
            named(about.unknown("objects", why))
        })?;
        let libraries = libraries(process, &mut memory)?;
        Ok(Found {
            mappings,
            r,
            places,
            lists,
            libraries,
        })
    }

    /// The thread that runs R, if it can be stopped. Another profiler may trace it for a moment, again and again.
    fn open_when_untraced(
        &mut self,
        process: &Process,
        begin: Instant,
        stop: Stop,
    ) -> Result<Thread> {
        let mut memory = ProcessMemory::new(process.pid);
        let mut pauses = PAUSES.into_iter().cycle().take(LIMITS.attempts);
        loop {
            cancel::check(stop)?;
            let opened = follow::open(process, &mut self.r, &mut memory, Stops::Always);
            let may_wait =
                opened.is_err() && is_traced(process.pid)? && begin.elapsed() < LIMITS.time;
            match pauses.next().filter(|_| may_wait) {
                Some(pause) => sleep(pause),
                None => return opened,
            }
        }
    }

    /// Whether the thread that was found is the one that runs R, while it is stopped.
    fn is_in_thread(&self, memory: &mut ProcessMemory) -> bool {
        let place = self.r.whereabouts(memory);
        place.is_none_or(|place| match place {
            Whereabouts::Record(address) => self.r.stack.contains(&address),
            Whereabouts::Position(_) => true,
        })
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
            &self.r,
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
        resident: &Resident,
    ) -> Result<Option<Snapshot>> {
        let Some((known, copied)) = copied else {
            return Ok(None);
        };
        let mut memory = CopiedMemory(&copied);
        let least_and_unheld = (None, GARBAGE);
        let taken = self.take(&mut memory, process, &known, resident, least_and_unheld);
        taken.map(Some)
    }

    fn take<'m>(
        &self,
        memory: &mut impl View<'m>,
        process: &Process,
        known: &Known,
        resident: &Resident,
        (least, unheld): (Option<u64>, RootName),
    ) -> Result<Snapshot> {
        let mut profile = Profile::default();
        let source = process_source(process, SNAPSHOT, &mut profile)?;
        let about = About {
            r: &self.r,
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
