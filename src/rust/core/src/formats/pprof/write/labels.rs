//! Encodes the labels of samples.
//!
//! In addition to the labels of the sample, some are written for information that the model stores
//! elsewhere: the span, the source, or the number of the run if there are several, and whether R was
//! collecting garbage. Sets of labels repeat, so each distinct set is encoded once.

use crate::analysis::source_facts::process;
use crate::error::{Error, Result};
use crate::formats::pprof::proto::{label, sample};
use crate::formats::pprof::source_labels::{self, Fact, KEYS};
use crate::formats::pprof::span_labels::{SPAN_ID, TRACE_ID};
use crate::limits::memory::{TryGrow, ensure, owned, with_room, written};
use crate::message;
use crate::model::{COLLECTION, Label, Link, Profile, SourceId, StackId, StringId, Strings};
use crate::protobuf::encode;
use crate::protobuf::tables::{EncodedTable, StringTableBuilder};
use std::borrow::Cow;

const RUN: &str = "run";
/// As `summary(by = "process")` calls the processes of a recording.
const PROCESS: &str = "process";
const GC: &str = "gc";

/// A label to write.
#[derive(Debug, Clone)]
struct Wanted<'a> {
    key: Word<'a>,
    str: Option<Word<'a>>,
    num: Option<i64>,
    unit: Option<Word<'a>>,
}

/// A text of the model, or a new one.
#[derive(Debug, Clone)]
enum Word<'a> {
    Known(StringId),
    New(Cow<'a, str>),
}

impl<'a> Word<'a> {
    fn text<'s>(&'s self, strings: &'s Strings) -> &'s str {
        match self {
            Word::Known(id) => strings.get(*id),
            Word::New(text) => text,
        }
    }

    fn number(&self, strings: &'a Strings, texts: &mut StringTableBuilder<'a>) -> Result<u64> {
        match self {
            Word::Known(id) => texts.index_of_id(*id, strings.get(*id)),
            Word::New(Cow::Borrowed(text)) => texts.index(*text),
            Word::New(Cow::Owned(text)) => texts.index(owned(text)?),
        }
    }
}

/// Returns the number of the set of labels of each sample. It must be called for samples in order.
pub struct Labels<'a> {
    profile: &'a Profile,
    /// The labels of the remaining samples.
    left: &'a [Label],
    /// The spans of the remaining samples.
    links: &'a [(usize, Link)],
    /// Whether to sort labels: sets are then equal if they have for each key the same texts, and the
    /// same numbers, in the same order.
    sort: bool,
    tell_sources: bool,
    pub sets: EncodedTable,
    collects: Vec<bool>,
    /// Sets of samples without labels of their own: by source, without and with
    /// garbage collection.
    common: Vec<[Option<u32>; 2]>,
    /// The labels that describe each source, created when they are first needed.
    told: Vec<Vec<Wanted<'a>>>,
    scratch: Vec<Wanted<'a>>,
    encoded: Vec<u8>,
}

impl<'a> Labels<'a> {
    pub fn new(profile: &'a Profile, sort: bool, tell_sources: bool) -> Result<Labels<'a>> {
        let mut collects = Vec::new();
        collects.try_fill(profile.stacks.len(), false)?;
        for (id, collects) in profile.stacks.ids().zip(&mut collects) {
            let frame = profile.stacks.get(id).first();
            let function = frame.and_then(|frame| profile.function_of(frame));
            *collects = function.is_some_and(|f| profile.strings.get(f.name) == COLLECTION);
        }
        let mut common = Vec::new();
        common.try_fill(profile.sources.len(), [None, None])?;
        let mut told = Vec::new();
        told.try_fill(profile.sources.len(), Vec::new())?;
        Ok(Labels {
            profile,
            left: &profile.labels,
            links: &profile.samples.links,
            sort,
            tell_sources,
            sets: EncodedTable::default(),
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
        texts: &mut StringTableBuilder<'a>,
    ) -> Result<u32> {
        let before = self.left.iter().take_while(|l| l.sample < row).count();
        let (_, left) = self.left.split_at(before);
        let count = left.iter().take_while(|l| l.sample == row).count();
        let (own, left) = left.split_at(count);
        self.left = left;
        let before = self.links.iter().take_while(|(at, _)| *at < row).count();
        let (_, links) = self.links.split_at(before);
        self.links = links;
        let link = links.first().filter(|(at, _)| *at == row);
        let link = link.map(|(_, link)| *link);
        let collects = self.collects[stack.row()];
        if !own.is_empty() || link.is_some() {
            return self.intern(own, link, source, collects, texts);
        }
        let (source_row, collects_row) = (source.row(), usize::from(collects));
        if let Some(set) = self.common[source_row][collects_row] {
            return Ok(set);
        }
        let set = self.intern(own, None, source, collects, texts)?;
        self.common[source_row][collects_row] = Some(set);
        Ok(set)
    }

    fn intern(
        &mut self,
        own: &[Label],
        link: Option<Link>,
        source: SourceId,
        collects: bool,
        texts: &mut StringTableBuilder<'a>,
    ) -> Result<u32> {
        let strings = &self.profile.strings;
        self.scratch.clear();
        // These are the first labels; those for runs and garbage collection are the last.
        if self.tell_sources {
            self.tell(own, source)?;
        }
        // Values that are neither text nor integer cannot be stored in pprof.
        for label in own.iter().filter(|label| label.other.is_none()) {
            let wanted = Wanted {
                key: Word::Known(label.key),
                str: label.str.map(Word::Known),
                num: label.num,
                unit: label.unit.map(Word::Known),
            };
            self.scratch.try_push(wanted)?;
        }
        if let Some(link) = link {
            self.add(own, TRACE_ID, Word::Known(link.trace_id))?;
            self.add(own, SPAN_ID, Word::Known(link.span_id))?;
        }
        if !self.tell_sources && self.profile.sources.len() > 1 {
            // pprof would interpret a number without a prefix as a range.
            let run = written(format_args!("run-{}", source.0 + 1))?;
            self.add(own, RUN, Word::New(run.into()))?;
            let row = &self.profile.sources[source.row()];
            if let Some(process) = process(self.profile, row) {
                self.add(own, PROCESS, Word::New(process.into()))?;
            }
        }
        if collects {
            self.add(own, GC, Word::New("yes".into()))?;
        }
        if self.sort {
            let key = |wanted: &'_ Wanted| wanted.str.is_none();
            ensure(size_of_val(self.scratch.as_slice()))?;
            #[expect(clippy::disallowed_methods, reason = "memory was ensured")]
            self.scratch.sort_by(|a, b| {
                let texts = a.key.text(strings).cmp(b.key.text(strings));
                texts.then(key(a).cmp(&key(b)))
            });
        }
        self.encode(texts)
    }

    /// Adds a label unless the sample has one with this key, which may be from a file that was written
    /// here.
    fn add(&mut self, own: &[Label], key: &'static str, value: Word<'a>) -> Result<()> {
        let strings = &self.profile.strings;
        // Only one of two ids may be known.
        if value.text(strings).is_empty() || own.iter().any(|label| strings.get(label.key) == key) {
            return Ok(());
        }
        let wanted = Wanted {
            key: Word::New(key.into()),
            str: Some(value),
            num: None,
            unit: None,
        };
        self.scratch.try_push(wanted)
    }

    /// Adds the labels that describe the source.
    fn tell(&mut self, own: &[Label], source: SourceId) -> Result<()> {
        let profile = self.profile;
        let key = |label: &Label| profile.strings.get(label.key);
        if let Some(label) = own.iter().find(|label| KEYS.contains(&key(label))) {
            return Err(Error::Lossy(message!(
                "Sample {} has a label `{}` of its own, so labels cannot describe its source.",
                label.sample + 1,
                key(label)
            )));
        }
        let told = &mut self.told[source.row()];
        if told.is_empty() {
            let facts = source_labels::facts(source, &profile.sources[source.row()])?;
            for (key, fact) in KEYS.into_iter().zip(facts) {
                let Some(fact) = fact else { continue };
                let (str, num, unit) = match fact {
                    Fact::Text(text) => (Some(Word::New(text)), None, None),
                    Fact::Number(num, unit) => (None, Some(num), Some(Word::New(unit.into()))),
                };
                let key = Word::New(key.into());
                told.try_push(Wanted {
                    key,
                    str,
                    num,
                    unit,
                })?;
            }
        }
        self.scratch.try_extend_from(told.iter().cloned())
    }

    fn encode(&mut self, texts: &mut StringTableBuilder<'a>) -> Result<u32> {
        self.encoded.clear();
        let strings = &self.profile.strings;
        let mut one = with_room(4 * encode::MAX_VARINT_FIELD)?;
        for wanted in &self.scratch {
            one.clear();
            encode::put_uint(&mut one, label::KEY, wanted.key.number(strings, texts)?);
            // The field is written even if it is 0 or empty: its presence distinguishes texts and
            // numbers.
            if let Some(str) = &wanted.str {
                encode::put_uint(&mut one, label::STR, str.number(strings, texts)?);
            }
            if let Some(num) = wanted.num {
                encode::put_int(&mut one, label::NUM, num);
            }
            if let Some(unit) = &wanted.unit {
                match unit.number(strings, texts)? {
                    0 => {}
                    number => encode::put_uint(&mut one, label::NUM_UNIT, number),
                }
            }
            encode::put_bytes(&mut self.encoded, sample::LABEL, &one)?;
        }
        self.sets.intern(&self.encoded)
    }
}
