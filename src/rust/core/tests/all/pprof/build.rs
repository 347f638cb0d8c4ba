//! Builds messages byte by byte, and formats profiles for comparison.

use profile_core::error::Position;
use profile_core::formats::pprof::{self, Writer};
use profile_core::formats::problems::Problems;
use profile_core::formats::rprof;
use profile_core::formats::{self, Input, Losses, Writer as _};
use profile_core::io::input::Origin;
use profile_core::model::{Profile, Source};
use profile_core::{Error, Result};

#[derive(Default, Clone)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    pub fn varint(mut self, mut value: u64) -> Bytes {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub fn uint(self, number: u64, value: u64) -> Bytes {
        self.varint(number << 3).varint(value)
    }

    pub fn int(self, number: u64, value: i64) -> Bytes {
        self.uint(number, value as u64)
    }

    pub fn bytes(self, number: u64, bytes: &[u8]) -> Bytes {
        let mut out = self.varint(number << 3 | 2).varint(bytes.len() as u64);
        out.0.extend_from_slice(bytes);
        out
    }

    pub fn message(self, number: u64, message: Bytes) -> Bytes {
        self.bytes(number, &message.0)
    }

    pub fn packed(self, number: u64, values: &[u64]) -> Bytes {
        let packed = values.iter().fold(Bytes::default(), |b, v| b.varint(*v));
        self.message(number, packed)
    }

    pub fn strings(self, strings: &[&str]) -> Bytes {
        strings.iter().fold(self, |b, s| b.bytes(6, s.as_bytes()))
    }

    pub fn then(mut self, other: &Bytes) -> Bytes {
        self.0.extend_from_slice(&other.0);
        self
    }
}

pub fn new() -> Bytes {
    Bytes::default()
}

pub fn value_type(type_: u64, unit: u64) -> Bytes {
    new().uint(1, type_).uint(2, unit)
}

pub fn function(id: u64, name: u64) -> Bytes {
    new().uint(1, id).uint(2, name)
}

/// A location with lines of these functions and line numbers.
pub fn location(id: u64, lines: &[(u64, i64)]) -> Bytes {
    lines.iter().fold(new().uint(1, id), |b, (function, line)| {
        b.message(4, new().uint(1, *function).int(2, *line))
    })
}

pub fn sample(locations: &[u64], values: &[i64]) -> Bytes {
    let values: Vec<u64> = values.iter().map(|v| *v as u64).collect();
    new().packed(1, locations).packed(2, &values)
}

/// The type `samples/count` and the functions `f` and `g`, each with a location of the same id.
/// Most messages in these tests need them in addition to the fields under test.
pub fn base() -> Bytes {
    new()
        .strings(&["", "samples", "count", "f", "g", "cpu", "nanoseconds"])
        .message(1, value_type(1, 2))
        .message(5, function(1, 3))
        .message(5, function(2, 4))
        .message(4, location(1, &[(1, 10)]))
        .message(4, location(2, &[(2, 20)]))
}

pub fn origin() -> Origin {
    Origin {
        name: "p.pb.gz".to_owned(),
        ..Origin::default()
    }
}

pub fn try_read(bytes: &[u8]) -> Result<(Profile, Problems)> {
    formats::read(Input::Bytes(bytes), Some(&pprof::FORMAT), origin(), &|| {
        false
    })
}

pub fn read(message: &Bytes) -> Profile {
    let (profile, problems) = try_read(&message.0).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    profile
}

/// The position and the message of the error that reading returns.
pub fn refused(message: &Bytes) -> (u64, String) {
    match try_read(&message.0) {
        Err(Error::Parse {
            position: Position::Byte(at),
            message,
            ..
        }) => (at, message),
        other => panic!("{other:?}"),
    }
}

pub fn read_rprof(text: &str) -> Profile {
    let origin = Origin {
        uri: Some("Rprof.out".to_owned()),
        ..origin()
    };
    formats::read(
        Input::Bytes(text.as_bytes()),
        Some(&rprof::FORMAT),
        origin,
        &|| false,
    )
    .unwrap()
    .0
}

pub fn write(profile: &Profile, aggregate: bool) -> Vec<u8> {
    let options = Writer {
        aggregate,
        ..Writer::default()
    };
    write_with(profile, &options).0
}

pub fn write_with(profile: &Profile, options: &Writer) -> (Vec<u8>, Losses) {
    let mut out = Vec::new();
    let report = options.write(profile, &mut out, &|| false).unwrap();
    (out, report)
}

/// Types, and for each sample its frames, values and labels, as text.
pub fn show(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    let types = profile.values.iter().map(|v| &v.type_);
    lines.push(types.map(|t| format!("{}/{} ", t.name, t.unit)).collect());
    lines.extend((0..profile.samples.len()).map(|row| {
        let values = profile.values.iter().map(|v| v.column[row]);
        let values: String = values.map(|v| format!("{v} ")).collect();
        format!("{values}: {}{}", frames(profile, row), labels(profile, row))
    }));
    lines
}

/// The frames of a sample, innermost first, each as `name:line `.
pub fn frames(profile: &Profile, row: usize) -> String {
    let text = |id| profile.strings.get(id);
    let mut out = String::new();
    let stack = profile.stacks.get(profile.samples.stack[row]);
    for frame in stack.to_vec().unwrap() {
        let location = profile.locations.get(frame);
        out += &match profile.function_of(frame) {
            None => "? ".to_owned(),
            Some(f) => {
                let mut name = text(f.name).to_owned();
                if f.system_name != f.name {
                    name += &format!("={}", text(f.system_name));
                }
                let file = text(f.filename);
                if !file.is_empty() || f.start_line != 0 {
                    name += &format!("@{file}:{}", f.start_line);
                }
                format!("{name}:{} ", location.line.unwrap_or(-1))
            }
        };
    }
    out
}

/// The comments of each source.
pub fn comments(profile: &Profile) -> Vec<Vec<&str>> {
    let text = |source: &Source| {
        let ids = source.comments.iter();
        ids.map(|&id| profile.strings.get(id)).collect()
    };
    profile.sources.iter().map(text).collect()
}

/// The sources without the parts that writing adds, and without their types, comments and files,
/// which contain ids of their profile.
pub fn sources(profile: &Profile) -> Vec<Source> {
    let mut sources = profile.sources.clone();
    for source in &mut sources {
        source.comments.clear();
        source.types.clear();
        source.files.clear();
    }
    sources
}

fn labels(profile: &Profile, row: usize) -> String {
    let text = |id| profile.strings.get(id);
    let labels = profile.labels.iter().filter(|l| l.sample == row);
    labels
        .map(|l| {
            let value = (l.str.map(text), l.num, l.unit.map(text));
            format!("[{} {value:?}]", text(l.key))
        })
        .collect()
}
