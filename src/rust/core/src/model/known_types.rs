//! The sample types whose meaning is known, under the names that this package and other tools use.
//!
//! A sample type is a name and a unit, and readers keep any type. Only this table determines what the package knows
//! about some of them: whether values are summed, which type counts samples, which one is shown as allocated memory,
//! and which names Rprof's figures have in other formats. For example, `inuse_space` in `bytes` is memory that was not
//! freed yet, so it can be summed, but `vsize_small` cannot. R and the help page get the table with the schema.

use crate::error::Error;
use crate::limits::memory::owned;

/// The name and the unit of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ValueType {
    pub name: String,
    pub unit: String,
}

impl ValueType {
    /// Whether the values are known to be memory or objects that can be summed.
    pub fn is_memory(&self) -> bool {
        known_type(&self.name, &self.unit).is_some_and(KnownType::is_memory)
    }
}

/// The meaning of the values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The number of samples.
    Count,
    /// The time that a sample represents.
    Time,
    /// Memory or objects that were allocated.
    Allocated,
    /// Memory that was freed.
    Freed,
    /// Memory or objects that were allocated here and not freed yet.
    InUse,
    /// The memory in use in the whole process when the sample was taken. A sum of levels is meaningless.
    Level,
    /// Memory or objects that were allocated here and not freed yet when these were most in the whole process.
    Peak,
    /// Copies of vectors.
    Copies,
    /// A share of time that is attributed to the code that caused it. It is a part of other times, so it is not added to
    /// these, and is never the time of a sample.
    Share,
    /// The number of calls of a function. Its rows are no samples, and have this function only.
    Calls,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Count => "count",
            Role::Time => "time",
            Role::Allocated => "allocated",
            Role::Freed => "freed",
            Role::InUse => "in use",
            Role::Level => "level",
            Role::Peak => "peak",
            Role::Copies => "copies",
            Role::Share => "share",
            Role::Calls => "calls",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownType {
    pub name: &'static str,
    pub unit: &'static str,
    pub role: Role,
    /// A description, and the tools that use the name, for the help page.
    pub doc: &'static str,
    /// Its name in other tools, if they have another one.
    pub alias: Option<&'static str>,
}

impl KnownType {
    pub const fn key(&self) -> (&'static str, &'static str) {
        (self.name, self.unit)
    }

    pub fn value_type(&self) -> Result<ValueType, Error> {
        Ok(ValueType {
            name: owned(self.name)?,
            unit: owned(self.unit)?,
        })
    }

    pub fn is_summable(&self) -> bool {
        self.role != Role::Level
    }

    /// The type of the period that a profile of this type has for Go and Grafana Pyroscope, which names profiles after
    /// it.
    pub fn period_type(&self) -> Option<(&'static str, &'static str)> {
        match self.role {
            Role::Time if [CPU.key(), WALL.key()].contains(&self.key()) => Some(self.key()),
            _ if [ALLOC_SPACE, ALLOC_OBJECTS, INUSE_SPACE, INUSE_OBJECTS].contains(self) => {
                Some(("space", "bytes"))
            }
            _ => None,
        }
    }

    /// Whether the values describe memory, objects, or what these cost, and can be summed.
    pub fn is_memory(&self) -> bool {
        matches!(
            self.role,
            Role::Allocated | Role::Freed | Role::InUse | Role::Peak | Role::Copies | Role::Share
        )
    }

    /// Whether the values were recorded one by one, not at samples: allocations and calls. A row with such values may be no
    /// sample.
    pub fn is_recorded(&self) -> bool {
        let is_memory = self.is_memory() && !is_rprof_memory(self.name, self.unit);
        is_memory || self.role == Role::Calls
    }
}

impl PartialEq<ValueType> for KnownType {
    fn eq(&self, other: &ValueType) -> bool {
        self.key() == (other.name.as_str(), other.unit.as_str())
    }
}

/// Declares types, each as a constant, and the list of all of them.
macro_rules! known_types {
    ($(
        $(#[$about:meta])*
        $constant:ident $name:literal $unit:literal $role:ident $doc:literal $($alias:expr)?;
    )*) => {
        $($(#[$about])* pub const $constant: KnownType = KnownType {
            name: $name,
            unit: $unit,
            role: Role::$role,
            doc: $doc,
            alias: [$(Some($alias),)? None][0],
        };)*

        /// All known types. If a profile has several types of a role, the first one in this order is shown.
        pub const KNOWN_TYPES: &[KnownType] = &[$($constant),*];
    };
}

known_types! {
    SAMPLES "samples" "count" Count "number of samples";
    CPU "cpu" "nanoseconds" Time "CPU time; `process_cpu` in Pyroscope" "process_cpu";
    WALL "wall" "nanoseconds" Time "elapsed time";
    RPROF_SMALL "vsize_small" "bytes" Level "memory of small vectors in use, `Rprof()`";
    RPROF_LARGE "vsize_large" "bytes" Level "memory of large vectors in use, `Rprof()`";
    RPROF_NODES "nodes" "bytes" Level "memory of all other objects in use, `Rprof()`";
    RPROF_COPIES "duplications" "count" Copies "vectors copied since the previous sample, `Rprof()`";
    /// Computed from the levels of `Rprof()`.
    ALLOC_SIZE "alloc_size" "bytes" Allocated
        "increase of memory in use since the previous sample, `Rprof()`; written as `alloc_space`" ALLOC_SPACE.name;
    DEALLOC_SIZE "dealloc_size" "bytes" Freed "decrease of memory in use since the previous sample, `Rprof()`";
    /// The name that tools for pprof know, under which `ALLOC_SIZE` is written.
    ALLOC_SPACE "alloc_space" "bytes" Allocated "allocated memory, `Rprofmem()`, Go, Pyroscope, Firefox";
    ALLOC_OBJECTS "alloc_objects" "count" Allocated "allocated objects, `Rprofmem()`, Go, Pyroscope";
    DEALLOC_SPACE "dealloc_space" "bytes" Freed "freed memory, Firefox";
    COPY_SPACE "copy_space" "bytes" Copies "memory of copies, a part of `alloc_space`, `record_profile(memory = \"exact\")`";
    COPY_OBJECTS "copy_objects" "count" Copies "copies, a part of `alloc_objects`, `record_profile(memory = \"exact\")`";
    /// The types of heap snapshots.
    INUSE_SPACE "inuse_space" "bytes" InUse "memory in use, `snapshot_memory()`, Go, Pyroscope";
    INUSE_OBJECTS "inuse_objects" "count" InUse "objects in use, `snapshot_memory()`, Go, Pyroscope";
    /// Beside the types of `Rprof()`.
    GC_SHARE "gc_share" "nanoseconds" Share
        "time of garbage collections, shared by the memory allocated since the previous one, `record_profile(memory = \"exact\")`";
    PEAK_SPACE "peak_space" "bytes" Peak
        "memory that was allocated and not freed yet when most was, garbage included, `record_profile(memory = \"exact\")`";
    PEAK_OBJECTS "peak_objects" "count" Peak "vectors of `peak_space`, `record_profile(memory = \"exact\")`";
    CALLS "calls" "count" Calls "calls of a function, `record_profile(count = )`";
    DATADOG_CPU "cpu-time" "nanoseconds" Time "CPU time, Datadog";
    DATADOG_WALL "wall-time" "nanoseconds" Time "elapsed time, Datadog";
    DATADOG_SPACE "alloc-space" "bytes" Allocated "allocated memory, Datadog";
    DATADOG_OBJECTS "alloc-samples" "count" Allocated "allocated objects, Datadog";
    DATADOG_HEAP "heap-space" "bytes" InUse "memory in use, Datadog";
}

/// The memory figures that `Rprof()` records, in the order of its lines. Names and units are as in `summaryRprof(memory
/// = "tseries")`.
pub const RPROF_MEMORY: [KnownType; 4] = [RPROF_SMALL, RPROF_LARGE, RPROF_NODES, RPROF_COPIES];

/// The type of values of formats that have bytes as a unit, and no names. It may be any kind of memory.
pub const MEMORY: (&str, &str) = ("memory", "bytes");

/// The row of the table for a type, if it is known.
pub fn known_type(name: &str, unit: &str) -> Option<&'static KnownType> {
    KNOWN_TYPES.iter().find(|known| known.key() == (name, unit))
}

/// The known types with a role and a unit.
pub fn with_role(role: Role, unit: &str) -> impl Iterator<Item = &'static KnownType> {
    let is_wanted = move |known: &&KnownType| known.role == role && known.unit == unit;
    KNOWN_TYPES.iter().filter(is_wanted)
}

/// Whether values of a type are a share of other times, so that they are not the time of samples.
pub fn is_share(type_: &ValueType) -> bool {
    known_type(&type_.name, &type_.unit).is_some_and(|known| known.role == Role::Share)
}

/// Which time a type measures, by its name: "CPU time", "elapsed time" or "time off the CPU"; `None` if it is unknown.
pub fn clock_of(name: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["offcpu", "off-cpu", "off_cpu"]) {
        Some("time off the CPU")
    } else if has(&["cpu", "task-clock", "sched_stat_runtime"]) {
        Some("CPU time")
    } else if has(&["wall", "elapsed", "real"]) {
        Some("elapsed time")
    } else {
        None
    }
}

/// The name of a type that other tools call `name`; `name` itself if there is none.
pub fn without_alias(name: &str) -> &str {
    let known = KNOWN_TYPES.iter().find(|known| known.alias == Some(name));
    known.map_or(name, |known| known.name)
}

/// Whether a sum over samples is meaningful.
pub fn is_summable(name: &str, unit: &str) -> bool {
    known_type(name, unit).is_none_or(KnownType::is_summable)
}

/// Whether a type is a memory figure that `Rprof()` records, or is computed from these.
pub fn is_rprof_memory(name: &str, unit: &str) -> bool {
    let mut all = RPROF_MEMORY.iter().chain([&ALLOC_SIZE, &DEALLOC_SIZE]);
    all.any(|known| known.key() == (name, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_time_a_type_measures() {
        for (name, time) in [
            ("cpu", Some("CPU time")),
            ("cpu-clock:u", Some("CPU time")),
            ("task-clock", Some("CPU time")),
            ("sched:sched_stat_runtime", Some("CPU time")),
            ("offcpu-time", Some("time off the CPU")),
            ("off-cpu", Some("time off the CPU")),
            ("wall", Some("elapsed time")),
            ("real-time", Some("elapsed time")),
            ("time", None),
            ("sched:sched_stat_sleep", None),
        ] {
            assert_eq!(clock_of(name), time, "{name}");
        }
    }
}
