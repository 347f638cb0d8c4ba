//! The labels of a sample as they are written.
//!
//! To the labels that a sample has come some that the model knows otherwise:
//! its source, or the run it is from, when there are several, and whether R was
//! collecting garbage. Sets of labels repeat, so each distinct one is encoded
//! once.

use super::numbers::{Pieces, Texts};
use super::proto::{label, sample};
use super::sources::{self, Fact, KEYS};
use super::wire;
use super::write::WriteOptions;
use crate::error::{Error, Result};
use crate::memory::TryGrow;
use crate::model::{Label, Profile, SourceId, StackId};

const RUN: &str = "run";
const GC: &str = "gc";
/// How R's profiler calls the frame of the garbage collector.
const GC_FRAME: &str = "<GC>";

/// A label in numbers of the string table.
#[derive(Debug, Clone, Copy)]
struct Numbered {
    key: u64,
    str: Option<u64>,
    num: Option<i64>,
    unit: u64,
}

/// Gives each sample the number of its set of labels; to be asked for samples
/// in their order.
pub struct Labels<'a> {
    profile: &'a Profile,
    /// The labels that are left for the samples to come.
    left: &'a [Label],
    /// Sets are the same when for each key they have the same texts, and the same
    /// numbers, in the same order.
    sort: bool,
    tell_sources: bool,
    pub sets: Pieces,
    collects: Vec<bool>,
    /// Sets of samples without labels of their own: by source, without and with
    /// garbage collection.
    common: Vec<[Option<u32>; 2]>,
    /// The labels that tell each source, once they were asked for.
    told: Vec<Vec<Numbered>>,
    scratch: Vec<Numbered>,
    encoded: Vec<u8>,
}

impl<'a> Labels<'a> {
    pub fn new(profile: &'a Profile, options: &WriteOptions) -> Result<Labels<'a>> {
        let mut collects = Vec::new();
        collects.try_fill(profile.stacks.len(), false, "stacks")?;
        for (id, collects) in profile.stacks.ids().zip(&mut collects) {
            let frame = profile.stacks.get(id).first();
            let function = frame.and_then(|&frame| profile.function_of(frame));
            *collects = function.is_some_and(|f| profile.strings.get(f.name) == GC_FRAME);
        }
        let mut common = Vec::new();
        common.try_fill(profile.sources.len(), [None, None], "sources")?;
        let mut told = Vec::new();
        told.try_fill(profile.sources.len(), Vec::new(), "sources")?;
        Ok(Labels {
            profile,
            left: &profile.labels,
            sort: options.aggregate,
            tell_sources: options.sources,
            sets: Pieces::default(),
            collects,
            common,
            told,
            scratch: Vec::new(),
            encoded: Vec::new(),
        })
    }

    #[inline]
    pub fn of(
        &mut self,
        row: usize,
        source: SourceId,
        stack: StackId,
        texts: &mut Texts<'a>,
    ) -> Result<u32> {
        let before = self.left.iter().take_while(|l| l.sample < row).count();
        let (_, left) = self.left.split_at(before);
        let count = left.iter().take_while(|l| l.sample == row).count();
        let (own, left) = left.split_at(count);
        self.left = left;
        let collects = self.collects[stack.row()];
        if !own.is_empty() {
            return self.intern(own, source, collects, texts);
        }
        let (source_row, collects_row) = (source.row(), usize::from(collects));
        if let Some(set) = self.common[source_row][collects_row] {
            return Ok(set);
        }
        let set = self.intern(own, source, collects, texts)?;
        self.common[source_row][collects_row] = Some(set);
        Ok(set)
    }

    fn intern(
        &mut self,
        own: &[Label],
        source: SourceId,
        collects: bool,
        texts: &mut Texts<'a>,
    ) -> Result<u32> {
        let strings = &self.profile.strings;
        self.scratch.clear();
        // First, since what R notes comes last and is an own label when read back.
        if self.tell_sources {
            self.tell(own, source, texts)?;
        }
        for label in own {
            let mut number = |id| texts.of_string(id, strings.get(id));
            let numbered = Numbered {
                key: number(label.key)?,
                str: label.str.map(&mut number).transpose()?,
                num: label.num,
                unit: label.unit.map(&mut number).transpose()?.unwrap_or(0),
            };
            self.scratch.try_push(numbered, "labels")?;
        }
        if !self.tell_sources && self.profile.sources.len() > 1 {
            // A bare number would be read as a range.
            let run = format!("run-{}", source.0 + 1);
            self.add(own, RUN, run, texts)?;
        }
        if collects {
            self.add(own, GC, "yes".to_owned(), texts)?;
        }
        if self.sort {
            self.scratch
                .sort_by_key(|label| (label.key, label.str.is_none()));
        }
        self.encode()
    }

    /// Adds a label unless the sample has one of this key: it may have been
    /// written here before.
    fn add(
        &mut self,
        own: &[Label],
        key: &'static str,
        value: String,
        texts: &mut Texts<'a>,
    ) -> Result<()> {
        let strings = &self.profile.strings;
        if own.iter().any(|label| strings.get(label.key) == key) {
            return Ok(());
        }
        let numbered = Numbered {
            key: texts.of(key)?,
            str: Some(texts.of(value)?),
            num: None,
            unit: 0,
        };
        self.scratch.try_push(numbered, "labels")
    }

    /// Adds what tells the source.
    fn tell(&mut self, own: &[Label], source: SourceId, texts: &mut Texts<'a>) -> Result<()> {
        let strings = &self.profile.strings;
        let taken = own.iter().find(|l| KEYS.contains(&strings.get(l.key)));
        if let Some(label) = taken {
            return Err(Error::Lossy(format!(
                "Sample {} has a label `{}` of its own, so labels cannot tell its source.",
                label.sample + 1,
                strings.get(label.key)
            )));
        }
        let told = &mut self.told[source.row()];
        if told.is_empty() {
            let facts = sources::facts(source, &self.profile.sources[source.row()])?;
            for (key, fact) in KEYS.into_iter().zip(facts) {
                let Some(fact) = fact else { continue };
                let key = texts.of(key)?;
                let (str, num, unit) = match fact {
                    Fact::Text(text) => (Some(texts.of(text)?), None, 0),
                    Fact::Number(num, unit) => (None, Some(num), texts.of(unit)?),
                };
                let numbered = Numbered {
                    key,
                    str,
                    num,
                    unit,
                };
                told.try_push(numbered, "labels")?;
            }
        }
        self.scratch.try_extend(told, "labels")
    }

    fn encode(&mut self) -> Result<u32> {
        self.encoded.clear();
        let mut one = Vec::with_capacity(4 * wire::LONGEST_FIELD);
        for numbered in &self.scratch {
            one.clear();
            wire::put_uint(&mut one, label::KEY, numbered.key);
            // Written even when 0 or empty: that the field is there tells a
            // text from a number.
            if let Some(str) = numbered.str {
                wire::put_uint(&mut one, label::STR, str);
            }
            if let Some(num) = numbered.num {
                wire::put_int(&mut one, label::NUM, num);
            }
            if numbered.unit != 0 {
                wire::put_uint(&mut one, label::NUM_UNIT, numbered.unit);
            }
            wire::put_head(&mut self.encoded, sample::LABEL, one.len());
            self.encoded.try_extend(&one, "labels")?;
        }
        self.sets.intern(&self.encoded)
    }
}
