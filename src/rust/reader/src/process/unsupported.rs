//! Stubs for unsupported systems: finding a process is an error.

use super::computing::Evidence;
use super::states::{Activity, Found, State, Stops, WhyFree};
use crate::running_r::{Named, RunningR};
use crate::stack::frames::Stack;
use profile_core::error::{Error, Result};
use profile_core::joint::{Files, Recording};
use profile_core::message;
use profile_runtime::LIVE_PLATFORMS;
use profile_runtime::memory::{Mapping, Memory, View};
use std::marker::PhantomData;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct ProcessMemory;

impl ProcessMemory {
    pub fn new(_: i32) -> ProcessMemory {
        ProcessMemory
    }
}

impl Memory for ProcessMemory {
    fn read(&mut self, _: u64, _: &mut [u8]) -> bool {
        false
    }
}

/// A process. The type has no values, since no process can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    never: Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Never {}

/// The scheduling of a thread, which remains unchanged.
pub struct Placement;

impl Placement {
    pub fn current() -> Placement {
        Placement
    }

    pub fn begin_tick(&self) {}

    pub fn leave(&self, _: usize) -> bool {
        false
    }
}

fn unsupported() -> Error {
    Error::Unsupported(message!(
        "The memory of processes can be looked into only on {LIVE_PLATFORMS}."
    ))
}

pub fn clock_of_thread(_: u32) -> i32 {
    -1
}

pub fn count_forks() -> u64 {
    0
}

pub fn forked(_: u64) -> Result<Option<Vec<i32>>> {
    Ok(None)
}

pub fn needs_permission() -> bool {
    false
}

pub fn permit_process(_: i32) {}

pub fn cpu_time_of_process(_: i32) -> Option<u64> {
    None
}

pub fn r_processes() -> Result<Vec<Process>> {
    Err(unsupported())
}

pub fn release_memory() {}

pub fn is_traced(_: i32) -> Result<bool> {
    Ok(false)
}

pub fn why_refused(_: i32) -> String {
    String::new()
}

/// The memory of this process. The type has no values.
pub struct OwnView<'m> {
    pub pid: i32,
    never: Never,
    still: PhantomData<&'m ()>,
}

impl OwnView<'_> {
    pub fn look<T>(_: &RunningR, _: impl for<'m> FnOnce(OwnView<'m>) -> Result<T>) -> Result<T> {
        Err(unsupported())
    }
}

impl Memory for OwnView<'_> {
    fn read(&mut self, _: u64, _: &mut [u8]) -> bool {
        match self.never {}
    }
}

impl<'m> View<'m> for OwnView<'m> {
    fn view(&mut self, _: u64, _: usize) -> Option<&'m [u8]> {
        match self.never {}
    }
}

/// An image of this process. The type has no values.
pub struct Image {
    pub pause: Duration,
    never: Never,
}

impl Image {
    pub fn take() -> Result<Image> {
        Err(unsupported())
    }

    pub fn memory(&self) -> ProcessMemory {
        match self.never {}
    }
}

pub fn system_call_name(_: i64) -> Option<&'static str> {
    None
}

impl Process {
    pub fn find(_: i32) -> Result<Process> {
        Err(unsupported())
    }

    pub fn state(&self) -> Option<State> {
        match self.never {}
    }

    pub fn runs_a_program(&self) -> bool {
        match self.never {}
    }

    pub fn is_changing(&self) -> bool {
        match self.never {}
    }

    pub fn is_same_as(&self, _: &Process) -> bool {
        match self.never {}
    }

    pub fn variable_starting(&self, _: &[u8]) -> Option<Vec<u8>> {
        match self.never {}
    }

    pub fn command(&self) -> Result<String> {
        match self.never {}
    }

    pub fn program(&self) -> Result<Option<String>> {
        match self.never {}
    }

    pub fn script_name(&self) -> Result<Option<String>> {
        match self.never {}
    }

    pub fn script(&self) -> Result<Option<String>> {
        match self.never {}
    }

    pub fn may_be_read(&self) -> bool {
        match self.never {}
    }

    pub fn has_r(&self) -> bool {
        match self.never {}
    }

    pub fn is_fork(&self) -> bool {
        match self.never {}
    }

    pub fn start(&self) -> Option<f64> {
        match self.never {}
    }

    pub fn age(&self) -> Option<f64> {
        match self.never {}
    }

    pub fn children(&self) -> Result<Vec<i32>> {
        match self.never {}
    }

    pub fn resident(&self) -> Option<u64> {
        match self.never {}
    }

    pub fn files(&self) -> Result<Vec<(String, u64)>> {
        match self.never {}
    }

    pub fn named(&self) -> Result<Named> {
        match self.never {}
    }

    pub fn mappings(&self) -> Result<Vec<Mapping>> {
        match self.never {}
    }
}

/// How long a process may take to become R, in seconds.
pub const STARTING: f64 = 5.0;

/// What shows that a process belongs to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Address(i32),
    Variable,
}

/// The search for workers.
#[derive(Debug, Default)]
pub struct Workers;

impl Workers {
    pub fn find(&mut self, _: &[Process], _: Option<&str>) -> Result<Vec<(Process, Sign)>> {
        Ok(Vec::new())
    }

    pub fn are_due(&self) -> bool {
        false
    }

    pub fn forget(&mut self, _: i32) {}
}

pub fn last_created() -> Option<i32> {
    None
}

pub fn prepare_thread() {}

/// A reader of native stacks. The type has no values.
pub struct NativeReader<'f> {
    never: Never,
    files: PhantomData<&'f Files>,
}

/// A stopped thread. The type has no values.
#[derive(Debug)]
pub struct Pause {
    never: Never,
}

impl Pause {
    pub fn end(self) -> Duration {
        match self.never {}
    }
}

/// A hold of the thread of this process. The type has no values.
#[derive(Debug)]
pub struct Hold {
    never: Never,
}

impl Hold {
    pub fn end(self) -> bool {
        match self.never {}
    }
}

#[derive(Debug)]
pub enum Held {
    Stopped(Pause),
    InHandler(Hold),
    Asleep(u64),
    Free(WhyFree),
}

impl<'f> NativeReader<'f> {
    pub fn open(process: &Process, _: &RunningR, _: &'f Files) -> Result<NativeReader<'f>> {
        match process.never {}
    }

    pub fn copy(&mut self, _: &Pause, _: &RunningR) -> Result<()> {
        match self.never {}
    }

    pub fn discard(&mut self) {
        match self.never {}
    }

    pub fn copy_nodes(&mut self, _: &RunningR, _: &Stack) -> Result<()> {
        match self.never {}
    }

    pub fn unwind(&mut self, _: &RunningR, _: &Stack) -> Result<Option<usize>> {
        match self.never {}
    }

    pub fn size(&self) -> usize {
        match self.never {}
    }

    pub fn recording(&mut self) -> Result<Recording<'_>> {
        match self.never {}
    }
}

/// A thread of a process. The type has no values.
#[derive(Debug)]
pub struct Thread {
    never: Never,
}

impl Thread {
    pub fn open(process: &Process, _: Stops) -> Result<Thread> {
        match process.never {}
    }

    pub fn is_only(&self) -> bool {
        match self.never {}
    }

    pub fn check(&mut self) -> Result<()> {
        match self.never {}
    }

    pub fn follow(&mut self, _: u64) -> Result<Option<Found>> {
        match self.never {}
    }

    pub fn system_call(&self) -> Option<i64> {
        match self.never {}
    }

    pub fn has_left(&self) -> bool {
        match self.never {}
    }

    pub fn hold(&mut self, _: State) -> Held {
        match self.never {}
    }

    pub fn is_still(&self, _: &Held) -> bool {
        match self.never {}
    }

    pub fn is_pending(&mut self) -> bool {
        match self.never {}
    }

    pub fn activity(&mut self) -> Option<Activity> {
        match self.never {}
    }

    pub fn evidence(&self, _: &Held) -> Evidence {
        match self.never {}
    }

    pub fn cpu_time(&self) -> Option<u64> {
        match self.never {}
    }
}
