//! The data of a page: reads the fields that a profile has a place for, and makes a profile of them.

use super::numbers::{deltas, row};
use super::samples::{Order, Samples, Sums, add_to_sets};
use super::tree::Tree;
use crate::analysis::cpu_clock::{CLOCK, TICKS};
use crate::analysis::threads::{OfLibrary, Threads};
use crate::error::{Error, Result};
use crate::formats::json_file::{Reader, fields};
use crate::limits::memory::{TryGrow, owned};
use crate::message;
use crate::model::heap::SNAPSHOT;
use crate::model::{
    Attribute, AttributeValue, PROCESS_ID, PROCESS_ROLE, Period, Profile, SampleType, Source,
    ValueKind, ValueType, Values, nearest, whole,
};

/// The version of the layout.
const VERSION: i64 = 1;

#[derive(Default)]
pub struct Data {
    profile: Profile,
    tree: Tree,
    samples: Samples,
    types: Vec<ValueType>,
    default: f64,
    sources: Vec<PageSource>,
    threads: Threads,
}

/// A source of the page.
#[derive(Default)]
struct PageSource {
    name: String,
    kind: String,
    period: Option<f64>,
    start: Option<f64>,
    /// How long it was recorded, if it is a process that worked with others.
    seconds: Option<f64>,
    /// The number of samples, and the CPU time of R's thread in nanoseconds, if it is known.
    samples: Option<f64>,
    clock: Option<f64>,
    is_base: bool,
}

impl PageSource {
    fn read(json: &mut Reader) -> Result<PageSource> {
        let mut source = PageSource::default();
        fields! { json,
            "name" => source.name = owned(json.text()?)?,
            "type" => source.kind = owned(json.text()?)?,
            "period" => source.period = number(json)?,
            "start" => source.start = number(json)?,
            "seconds" => source.seconds = number(json)?,
            "samples" => source.samples = number(json)?,
            "clock" => source.clock = number(json)?,
            "base" => source.is_base = json.is_true()?,
        }
        Ok(source)
    }
}

fn number(json: &mut Reader) -> Result<Option<f64>> {
    Ok(json.number_if_any()?.map(|number| number.real()))
}

/// Calls `element` for each element of the next value, an array.
fn each(json: &mut Reader, mut element: impl FnMut(&mut Reader) -> Result<()>) -> Result<()> {
    json.begin_array()?;
    while json.element()? {
        json.take(128)?;
        element(json)?;
    }
    Ok(())
}

impl Data {
    pub fn read(json: &mut Reader) -> Result<Data> {
        let mut data = Data {
            default: -1.0,
            ..Data::default()
        };
        let mut version = None;
        fields! { json,
            "format" => {
                version = json.number()?.whole();
                if version != Some(VERSION) {
                    return Err(Error::Unsupported(message!(
                        "{}: a page whose data have another layout, of another version of this package.",
                        json.input
                    )));
                }
            },
            "strings" => each(json, |json| {
                let text = data.profile.strings.intern(json.text()?)?;
                data.tree.strings.try_push(text)
            })?,
            "functions" => data.tree.read_functions(json)?,
            "frames" => data.tree.read_frames(json)?,
            "nodes" => data.tree.read_nodes(json)?,
            "types" => each(json, |json| {
                let type_ = read_type(json)?;
                data.types.try_push(type_)
            })?,
            "type" => data.default = json.number()?.real(),
            "sources" => each(json, |json| {
                let source = PageSource::read(json)?;
                data.sources.try_push(source)
            })?,
            "threads" => data.threads = read_threads(json)?,
            "labels" => each(json, |json| data.read_label(json))?,
            "values" => each(json, |json| {
                let sums = Sums::read(json)?;
                data.samples.sums.try_push(sums)
            })?,
            "order" => each(json, |json| {
                let order = Order::read(json)?;
                data.samples.orders.try_push(order)
            })?,
        }
        json.finish()?;
        if version.is_none() {
            return Err(json.error(message!("The data of the page have no `format`.")));
        }
        Ok(data)
    }

    fn read_label(&mut self, json: &mut Reader) -> Result<()> {
        let strings = &mut self.profile.strings;
        let [mut label_key, mut value] = [strings.intern("")?; 2];
        let mut sets = Vec::new();
        fields! { json,
            "key" => label_key = strings.intern(json.text()?)?,
            "value" => value = strings.intern(json.text()?)?,
            "set" => sets = deltas(json)?,
        }
        add_to_sets(&mut self.samples.sets, (label_key, value), &sets, json)
    }

    pub fn into_profile(mut self, uri: Option<&str>, json: &mut Reader) -> Result<Profile> {
        self.check_base(json)?;
        let profile = &mut self.profile;
        let mut nodes = self.tree.nodes(profile, json)?;
        let mut types = Vec::new();
        for ValueType { name, unit } in self.types {
            let type_ = SampleType::new(name, unit, &types)?;
            let ValueType { name, unit } = &type_.type_;
            profile.values.try_push(Values::absent(name, unit, 0)?)?;
            types.try_push(type_)?;
        }
        let default = if self.default < 0.0 {
            None
        } else {
            let row = row(self.default, types.len(), json)?;
            Some(owned(&types[row].recorded)?)
        };
        self.samples.sort()?;
        for (number, given) in self.sources.iter().enumerate() {
            let mut attributes = Vec::new();
            add_process(given, profile, &mut attributes)?;
            let is_plain = attributes.is_empty();
            add_cpu_time(given, profile, &mut attributes)?;
            if number == 0 {
                for (key, kind, text) in self.threads.facts()? {
                    add_attribute(&key, &text, kind, profile, &mut attributes)?;
                }
            }
            let is_snapshot = given.kind == SNAPSHOT.as_str();
            let name = Some(given.name.as_str()).filter(|name| is_plain && !name.is_empty());
            let mut own_types = Vec::new();
            for type_ in &types {
                own_types.try_push(SampleType {
                    type_: ValueType {
                        name: owned(&type_.type_.name)?,
                        unit: owned(&type_.type_.unit)?,
                    },
                    recorded: owned(&type_.recorded)?,
                })?;
            }
            let mut comments = Vec::new();
            if let Some(name) = name {
                comments.try_push(profile.strings.intern(name)?)?;
            }
            let source = profile.add_source(Source {
                kind: if is_snapshot {
                    SNAPSHOT
                } else {
                    json.source_kind()
                },
                uri: uri.map(owned).transpose()?,
                timestamp: given.start,
                period: given.period.map(period).transpose()?,
                duration: given.seconds.and_then(|seconds| nearest(seconds * 1e9)),
                default_type: default.as_deref().map(owned).transpose()?,
                types: own_types,
                comments,
                attributes,
                ..Source::default()
            })?;
            self.samples
                .add(number, source, &mut nodes, profile, json)?;
        }
        let rows = profile.samples.len();
        for values in &mut profile.values {
            values.column.try_fill(rows, f64::NAN)?;
        }
        Ok(self.profile)
    }

    /// A page that compares two profiles has both, and a profile cannot say which is which.
    fn check_base(&self, json: &Reader) -> Result<()> {
        let names = |is_base| {
            self.sources
                .iter()
                .find(move |source| source.is_base == is_base)
        };
        let Some(base) = names(true) else {
            return Ok(());
        };
        let new = names(false).map_or("", |source| &source.name);
        Err(Error::Unsupported(message!(
            "{}: a page that compares two profiles, `{new}` with `{}`. Read the files of these instead.",
            json.input,
            base.name
        )))
    }
}

fn read_type(json: &mut Reader) -> Result<ValueType> {
    let mut type_ = ValueType::default();
    fields! { json,
        "name" => type_.name = owned(json.text()?)?,
        "unit" => type_.unit = owned(json.text()?)?,
    }
    Ok(type_)
}

fn read_threads(json: &mut Reader) -> Result<Threads> {
    let mut threads = Threads::default();
    fields! { json,
        "r" => threads.r = json.number()?.real(),
        "others" => each(json, |json| {
            let mut one = OfLibrary::default();
            fields! { json,
                "name" => one.name = owned(json.text()?)?,
                "count" => one.count = json.number()?.real(),
                "cpu" => one.cpu = json.number()?.real(),
            }
            threads.others.try_push(one)
        })?,
        "ended" => threads.ended = json.number()?.real(),
        "processors" => threads.processors = number(json)?,
    }
    Ok(threads)
}

fn period(nanoseconds: f64) -> Result<Period> {
    Ok(Period {
        value: nanoseconds,
        exact: None,
        type_: Some(ValueType {
            name: owned("cpu")?,
            unit: owned("nanoseconds")?,
        }),
    })
}

/// The role and the id of a process, from a name such as `worker 1 of 2, pid 1234`.
fn add_process(
    given: &PageSource,
    profile: &mut Profile,
    attributes: &mut Vec<Attribute>,
) -> Result<()> {
    if given.seconds.is_none() {
        return Ok(());
    }
    let (role, pid) = match given.name.rsplit_once(", pid ") {
        Some((role, pid)) => (role, Some(pid)),
        None => (given.name.as_str(), None),
    };
    add_attribute(PROCESS_ROLE, role, ValueKind::String, profile, attributes)?;
    match pid.filter(|pid| pid.parse::<u32>().is_ok()) {
        Some(pid) => add_attribute(PROCESS_ID, pid, ValueKind::Int, profile, attributes),
        None => Ok(()),
    }
}

/// The number of ticks, and the CPU time by the clock.
fn add_cpu_time(
    given: &PageSource,
    profile: &mut Profile,
    attributes: &mut Vec<Attribute>,
) -> Result<()> {
    let (Some(ticks), Some(clock)) = (given.samples.and_then(whole), given.clock.and_then(whole))
    else {
        return Ok(());
    };
    for (key, number) in [(TICKS, ticks), (CLOCK, clock)] {
        let text = message!("{number}");
        add_attribute(key, &text, ValueKind::Int, profile, attributes)?;
    }
    Ok(())
}

fn add_attribute(
    key: &str,
    text: &str,
    kind: ValueKind,
    profile: &mut Profile,
    attributes: &mut Vec<Attribute>,
) -> Result<()> {
    let key = profile.strings.intern(key)?;
    let text = profile.strings.intern(text)?;
    attributes.try_push(Attribute::new(key, AttributeValue { kind, text }))
}
