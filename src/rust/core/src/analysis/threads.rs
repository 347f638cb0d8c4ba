//! The CPU time of the threads of a process: of the thread that runs R, of others by the library that started them, and of
//! those that have ended before they were seen.
//!
//! Samples show R's thread only. Libraries that compute in parallel, such as OpenBLAS and those that use OpenMP, have
//! threads of their own. Recorders store what these have used as attributes of the source, and formats without attributes
//! as comments: the same keys and values.

use super::source_facts::attribute;
use crate::error::Result;
use crate::limits::memory::{TryGrow, owned, sort_by_key};
use crate::message;
use crate::model::{PROCESS_ID, Profile, Source, ValueKind};

/// Times are in nanoseconds. The name of the library follows the keys that end in a dot.
const R: &str = "profile.threads.r";
const ENDED: &str = "profile.threads.ended";
const PROCESSORS: &str = "profile.threads.processors";
const CPU: &str = "profile.threads.cpu.";
const COUNT: &str = "profile.threads.count.";
const ALL: &str = "profile.threads.";

/// Threads are shown if they have used this part of the CPU time of all, and stored if all others than R's together have:
/// many packages have a thread that only keeps the time.
const LEAST: f64 = 0.01;

/// The threads that a library has started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OfLibrary {
    pub name: String,
    /// How many of them have used CPU time, at most at the same time.
    pub count: f64,
    pub cpu: f64,
}

/// The CPU time of all threads. The sum is the CPU time of the process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Threads {
    pub r: f64,
    pub others: Vec<OfLibrary>,
    pub ended: f64,
    /// How many processors the process may use, if that is known: a fraction if a control group has a share of them.
    pub processors: Option<f64>,
}

impl Threads {
    /// Whether only the thread that runs R has used CPU time.
    pub fn is_r_only(&self) -> bool {
        self.others.is_empty() && self.ended == 0.0
    }

    /// The CPU time of others than the thread that runs R, and the least that counts.
    fn of_others(&self) -> (f64, f64) {
        let of_others = self.ended + self.others.iter().map(|one| one.cpu).sum::<f64>();
        (of_others, LEAST * (self.r + of_others))
    }

    /// What is stored about a source: keys, the kinds of values, and values.
    pub fn facts(&self) -> Result<Vec<(String, ValueKind, String)>> {
        let mut facts = Vec::new();
        let (of_others, least) = self.of_others();
        if self.is_r_only() || of_others < least {
            return Ok(facts);
        }
        facts.try_push(whole(R, "", self.r))?;
        for one in &self.others {
            facts.try_push(whole(CPU, &one.name, one.cpu))?;
            facts.try_push(whole(COUNT, &one.name, one.count))?;
        }
        if self.ended > 0.0 {
            facts.try_push(whole(ENDED, "", self.ended))?;
        }
        if let Some(processors) = self.processors {
            let text = message!("{processors}");
            facts.try_push((message!("{PROCESSORS}"), ValueKind::Double, text))?;
        }
        Ok(facts)
    }

    /// What is known about the threads of all sources together; `None` if other threads than R's have used less than can be
    /// shown. What has used less is left out.
    pub fn shown(profile: &Profile) -> Result<Option<Threads>> {
        let mut all = Threads::of(profile)?;
        let (_, least) = all.of_others();
        all.others.retain(|one| one.cpu >= least && one.cpu > 0.0);
        if all.ended < least {
            all.ended = 0.0;
        }
        sort_by_key(&mut all.others, |one| std::cmp::Reverse(one.cpu as u64))?;
        Ok((!all.is_r_only()).then_some(all))
    }

    fn of(profile: &Profile) -> Result<Threads> {
        let mut all = Threads::default();
        // Names, processes and numbers. Parts of a recording have the same threads again.
        let mut counts: Vec<(&str, Option<&str>, f64)> = Vec::new();
        for source in &profile.sources {
            let process = attribute(profile, source, PROCESS_ID);
            for (key, text) in stored(profile, source) {
                let value = text.parse::<f64>().ok();
                let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) else {
                    continue;
                };
                if key == R {
                    all.r += value;
                } else if key == ENDED {
                    all.ended += value;
                } else if key == PROCESSORS {
                    all.processors = Some(all.processors.map_or(value, |known| known.max(value)));
                } else if let Some(name) = key.strip_prefix(CPU) {
                    all.row(name)?.cpu += value;
                } else if let Some(name) = key.strip_prefix(COUNT) {
                    let is_known = |one: &&mut (&str, Option<&str>, f64)| {
                        process.is_some() && (one.0, one.1) == (name, process)
                    };
                    match counts.iter_mut().find(is_known) {
                        Some(known) => known.2 = known.2.max(value),
                        None => counts.try_push((name, process, value))?,
                    }
                }
            }
        }
        for (name, _, count) in counts {
            all.row(name)?.count += count;
        }
        Ok(all)
    }

    fn row(&mut self, name: &str) -> Result<&mut OfLibrary> {
        let known = self.others.iter().position(|one| one.name == name);
        let at = match known {
            Some(known) => known,
            None => {
                self.others.try_push(OfLibrary {
                    name: owned(name)?,
                    count: 0.0,
                    cpu: 0.0,
                })?;
                self.others.len() - 1
            }
        };
        Ok(&mut self.others[at])
    }
}

fn whole(key: &str, name: &str, value: f64) -> (String, ValueKind, String) {
    (
        message!("{key}{name}"),
        ValueKind::Int,
        message!("{value:.0}"),
    )
}

/// What is stored about a source: as attributes, or as comments such as `profile.threads.r: 1700000000`.
fn stored<'p>(
    profile: &'p Profile,
    source: &'p Source,
) -> impl Iterator<Item = (&'p str, &'p str)> {
    let has_attributes = in_attributes(profile, source).next().is_some();
    let comments = in_comments(profile, source).filter(move |_| !has_attributes);
    in_attributes(profile, source).chain(comments)
}

fn in_attributes<'p>(
    profile: &'p Profile,
    source: &'p Source,
) -> impl Iterator<Item = (&'p str, &'p str)> {
    let text = |id| profile.strings.get(id);
    let attributes = source.attributes.iter();
    let attributes = attributes.map(move |one| (text(one.key), text(one.value.text)));
    attributes.filter(|(key, _)| key.starts_with(ALL))
}

fn in_comments<'p>(
    profile: &'p Profile,
    source: &'p Source,
) -> impl Iterator<Item = (&'p str, &'p str)> {
    let comments = source.comments.iter().map(|&id| profile.strings.get(id));
    let comments = comments.filter_map(|comment| comment.rsplit_once(": "));
    comments.filter(|(key, _)| key.starts_with(ALL))
}

/// Comments that store this for formats without attributes, in which the sources become one. Comments that exist are kept
/// as they are.
pub fn thread_comments(profile: &Profile) -> Result<Vec<String>> {
    let mut comments = Vec::new();
    let mut sources = profile.sources.iter();
    if !sources.any(|source| in_comments(profile, source).next().is_some()) {
        for (key, _, text) in Threads::of(profile)?.facts()? {
            comments.try_push(message!("{key}: {text}"))?;
        }
    }
    Ok(comments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing;
    use crate::model::{Attribute, AttributeValue};

    fn of(name: &str, count: f64, cpu: f64) -> OfLibrary {
        OfLibrary {
            name: name.to_owned(),
            count,
            cpu,
        }
    }

    fn threads(r: f64, others: &[OfLibrary], ended: f64, processors: f64) -> Threads {
        Threads {
            r,
            others: others.to_vec(),
            ended,
            processors: Some(processors),
        }
    }

    /// Adds what is known about the threads of a source.
    fn store(profile: &mut Profile, source: usize, pid: &str, threads: &Threads) {
        let mut facts = threads.facts().unwrap();
        facts.push((PROCESS_ID.to_owned(), ValueKind::Int, pid.to_owned()));
        for (key, kind, text) in facts {
            let [key, text] = [key, text].map(|text| profile.strings.intern(&text).unwrap());
            let attribute = Attribute::new(key, AttributeValue { kind, text });
            profile.sources[source].attributes.push(attribute);
        }
    }

    /// Two sources.
    fn two() -> Profile {
        testing::profile(&[("f", 1.0), ("g", 1.0)])
    }

    #[test]
    fn what_is_stored_is_found() {
        let mut profile = two();
        assert_eq!(Threads::shown(&profile).unwrap(), None);
        let one = threads(
            5e9,
            &[
                of("libopenblas", 7.0, 9e9),
                of("libgomp (data.table)", 3.0, 2e10),
            ],
            1e9,
            1.5,
        );
        store(&mut profile, 0, "7", &one);
        let mut expected = one.clone();
        expected.others.reverse();
        assert_eq!(Threads::shown(&profile).unwrap(), Some(expected));
    }

    #[test]
    fn threads_of_processes_add_up_and_those_of_parts_are_the_same() {
        for (pid, count) in [("8", 5.0), ("7", 3.0)] {
            let mut profile = two();
            let of = |count| threads(1e9, &[of("libgomp", count, 2e9)], 0.0, 2.0);
            store(&mut profile, 0, "7", &of(3.0));
            store(&mut profile, 1, pid, &of(2.0));
            let found = Threads::shown(&profile).unwrap().unwrap();
            assert_eq!(
                found,
                threads(
                    2e9,
                    &[super::OfLibrary {
                        name: "libgomp".to_owned(),
                        count,
                        cpu: 4e9
                    }],
                    0.0,
                    2.0
                )
            );
        }
    }

    #[test]
    fn less_than_one_percent_is_not_shown() {
        let mut profile = two();
        let some = [of("a", 1.0, 0.99e8), of("b", 1.0, 1.01e8)];
        store(&mut profile, 0, "7", &threads(9.7e9, &some, 0.99e8, 2.0));
        let found = Threads::shown(&profile).unwrap().unwrap();
        assert_eq!(found, threads(9.7e9, &some[1..], 0.0, 2.0));
        // Of one process, it may be enough, but not of all.
        let mut profile = two();
        store(&mut profile, 0, "7", &threads(9e9, &some[..1], 0.0, 2.0));
        store(&mut profile, 1, "8", &threads(9e9, &some[1..], 0.0, 2.0));
        assert_eq!(Threads::shown(&profile).unwrap(), None);
    }

    #[test]
    fn only_r_is_nothing_to_store() {
        assert_eq!(threads(1e9, &[], 0.0, 2.0).facts().unwrap(), []);
        let some = [of("a", 1.0, 0.5e8)];
        assert_eq!(threads(9.9e9, &some, 0.49e8, 2.0).facts().unwrap(), []);
        assert_eq!(threads(9.9e9, &some, 0.51e8, 2.0).facts().unwrap().len(), 5);
    }

    #[test]
    fn comments_say_the_same() {
        let mut profile = two();
        assert!(thread_comments(&profile).unwrap().is_empty());
        let one = threads(5e9, &[of("a: b", 7.0, 9e9)], 1e9, 1.5);
        store(&mut profile, 1, "7", &one);
        let comments = thread_comments(&profile).unwrap();
        assert_eq!(
            comments,
            [
                "profile.threads.r: 5000000000",
                "profile.threads.cpu.a: b: 9000000000",
                "profile.threads.count.a: b: 7",
                "profile.threads.ended: 1000000000",
                "profile.threads.processors: 1.5"
            ]
        );
        let mut read = two();
        for comment in &comments {
            let id = read.strings.intern(comment).unwrap();
            read.sources[0].comments.push(id);
        }
        assert_eq!(Threads::shown(&read).unwrap(), Some(one.clone()));
        // The agent stores both.
        let mut both = read.clone();
        store(&mut both, 0, "7", &one);
        assert_eq!(Threads::shown(&both).unwrap(), Some(one));
        assert!(thread_comments(&both).unwrap().is_empty());
        // What was read is not written again.
        assert!(thread_comments(&read).unwrap().is_empty());
        // What is no time is ignored.
        for wrong in [
            "profile.threads.r: inf",
            "profile.threads.cpu.x: -5",
            "profile.threads.ended",
        ] {
            let id = read.strings.intern(wrong).unwrap();
            read.sources[0].comments.push(id);
        }
        assert_eq!(Threads::shown(&read).unwrap().unwrap().others.len(), 1);
    }
}
