//! Sources as labels of their samples.
//!
//! A pprof file knows one origin. What several runs were is said by a label for each
//! column of the table `sources`: every sample says it for itself, so it outlives
//! merging by other tools. `source_id` is a number, all else is text; numbers
//! in the shortest form that gives the same number again.

use super::about;
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{Label, Period, Profile, RprofOptions, Source, SourceId, StringId, next_row};
use std::collections::HashMap;

/// A fact about a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Fact {
    Id,
    Kind,
    Uri,
    Timestamp,
    Period,
    PeriodType,
    PeriodUnit,
    Duration,
    DefaultType,
    Memory,
    Gc,
    Line,
}

/// The facts and the keys of their labels: the names of the columns, without the
/// leading dot.
const KEYS: [(Fact, &str); 12] = [
    (Fact::Id, "source_id"),
    (Fact::Kind, "source_type"),
    (Fact::Uri, "source_uri"),
    (Fact::Timestamp, "source_timestamp"),
    (Fact::Period, "source_period"),
    (Fact::PeriodType, "source_period_type"),
    (Fact::PeriodUnit, "source_period_unit"),
    (Fact::Duration, "source_duration_nanos"),
    (Fact::DefaultType, "source_default_type"),
    (Fact::Memory, "source_memory_profiling"),
    (Fact::Gc, "source_gc_profiling"),
    (Fact::Line, "source_line_profiling"),
];

const YES: &str = "yes";
const NO: &str = "no";

/// The value of a label.
pub enum Value {
    Number(i64),
    Text(String),
}

/// The labels that say what a source is.
pub fn labels(id: SourceId, source: &Source) -> Vec<(&'static str, Value)> {
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    let flag = |of: fn(RprofOptions) -> bool| {
        let on = of(source.options?);
        text(if on { YES } else { NO })
    };
    let period = source.period.as_ref();
    let value = |fact| match fact {
        Fact::Id => Some(Value::Number(id.row() as i64 + 1)),
        Fact::Kind => text(&source.kind),
        Fact::Uri => text(source.uri.as_deref()?),
        Fact::Timestamp => text(&source.timestamp?.to_string()),
        Fact::Period => text(&period?.value.to_string()),
        Fact::PeriodType => text(&period?.type_),
        Fact::PeriodUnit => text(&period?.unit),
        Fact::Duration => text(&source.duration?.to_string()),
        Fact::DefaultType => text(source.default_type.as_deref()?),
        Fact::Memory => flag(|o| o.memory),
        Fact::Gc => flag(|o| o.gc),
        Fact::Line => flag(|o| o.line),
    };
    let keys = KEYS.iter();
    keys.filter_map(|&(fact, key)| Some((key, value(fact)?)))
        .collect()
}

/// Makes sources of such labels again. Labels of these keys that do not say what a
/// source is stay what they are.
///
/// The sources come in the order of their ids, the file's own last, where there
/// are samples that name no other.
pub fn restore(profile: &mut Profile) -> Result<()> {
    if profile.strings.find(KEYS[0].1).is_none() {
        return Ok(());
    }
    let labels = std::mem::take(&mut profile.labels);
    let mut facts_of = Facts::default();
    let mut known: HashMap<Vec<(Fact, Said)>, Option<usize>> = HashMap::new();
    let mut found: Vec<(i64, Source)> = Vec::new();
    let mut of_sample: Vec<(usize, usize)> = Vec::new();
    for own in labels.chunk_by(|a, b| a.sample == b.sample) {
        let mut facts = Vec::new();
        for label in own {
            if let Some(fact) = facts_of.of(label.key, profile) {
                facts.try_push((fact, Said::new(label)), "labels")?;
            }
        }
        facts.sort_unstable();
        let source = match known.get(&facts) {
            Some(source) => *source,
            None => {
                let source = source(&facts, profile).map(|source| {
                    found.push(source);
                    found.len() - 1
                });
                known.try_reserve(1).map_err(|_| Error::Memory("sources"))?;
                known.insert(facts, source);
                source
            }
        };
        for &label in own {
            if source.is_none() || facts_of.of(label.key, profile).is_none() {
                profile.labels.try_push(label, "labels")?;
            }
        }
        if let Some(source) = source {
            of_sample.try_push((own[0].sample, source), "samples")?;
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|&i| found[i].0);
    let own = profile.sources.pop().unwrap_or_default();
    let mut ids = Vec::new();
    ids.try_fill(found.len(), SourceId(0), "sources")?;
    for i in order {
        let source = std::mem::take(&mut found[i].1);
        ids[i] = profile.add_source(source)?;
    }
    let row = next_row(profile.sources.len(), "sources")?;
    profile.samples.source.fill(SourceId(row));
    for &(sample, source) in &of_sample {
        profile.samples.source[sample] = ids[source];
    }
    if of_sample.len() < profile.samples.len() {
        profile.add_source(own)?;
    } else {
        keep_comments(profile, own.comments);
    }
    Ok(())
}

/// The comments of the file go to the first source, but for those that writing
/// adds.
fn keep_comments(profile: &mut Profile, mut comments: Vec<String>) {
    let added: Vec<String> = profile.sources.iter().map(about::provenance).collect();
    comments.retain(|comment| !added.contains(comment));
    if let Some(first) = profile.sources.first_mut() {
        first.comments = comments;
    }
}

/// What a label says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Said {
    str: Option<StringId>,
    num: Option<i64>,
}

impl Said {
    fn new(label: &Label) -> Said {
        Said {
            str: label.str,
            num: label.num,
        }
    }
}

/// Which keys are those of facts; a file has few keys.
#[derive(Default)]
struct Facts(HashMap<StringId, Option<Fact>>);

impl Facts {
    fn of(&mut self, key: StringId, profile: &Profile) -> Option<Fact> {
        *self.0.entry(key).or_insert_with(|| {
            let text = profile.strings.get(key);
            let fact = KEYS.iter().find(|(_, key)| *key == text);
            fact.map(|(fact, _)| *fact)
        })
    }
}

/// The source that a set of labels describes, and its id there.
fn source(facts: &[(Fact, Said)], profile: &Profile) -> Option<(i64, Source)> {
    if facts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let mut id = None;
    let mut source = Source::default();
    let mut period = (None, None, None);
    let mut options = (None, None, None);
    for (fact, said) in facts {
        let text = || said.str.map(|id| profile.strings.get(id));
        let flag = || match text()? {
            YES => Some(true),
            NO => Some(false),
            _ => None,
        };
        match fact {
            Fact::Id => id = Some(said.num?),
            Fact::Kind => source.kind = text()?.to_owned(),
            Fact::Uri => source.uri = Some(text()?.to_owned()),
            Fact::Timestamp => source.timestamp = Some(text()?.parse().ok()?),
            Fact::Period => period.0 = Some(text()?.parse().ok()?),
            Fact::PeriodType => period.1 = Some(text()?.to_owned()),
            Fact::PeriodUnit => period.2 = Some(text()?.to_owned()),
            Fact::Duration => source.duration = Some(text()?.parse().ok()?),
            Fact::DefaultType => source.default_type = Some(text()?.to_owned()),
            Fact::Memory => options.0 = Some(flag()?),
            Fact::Gc => options.1 = Some(flag()?),
            Fact::Line => options.2 = Some(flag()?),
        }
    }
    source.period = match period {
        (Some(value), Some(type_), Some(unit)) => Some(Period { value, type_, unit }),
        (None, None, None) => None,
        _ => return None,
    };
    source.options = match options {
        (Some(memory), Some(gc), Some(line)) => Some(RprofOptions { memory, gc, line }),
        (None, None, None) => None,
        _ => return None,
    };
    (!source.kind.is_empty()).then_some((id?, source))
}
