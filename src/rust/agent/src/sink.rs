//! Where chunks go, and how they are encoded.

use crate::figures::Figures;
use crate::folder::Folder;
use crate::forward::Settings;
use crate::spool::Spool;
use crate::state::Store;
use data_encoding::HEXLOWER;
use profile_core::error::Result;
use profile_core::formats::{Writer, otlp, pprof};
use profile_core::io::gzip;
use profile_core::limits::memory::{Growing, TryGrow};
use profile_core::message;
use profile_core::model::{Profile, Source};
use profile_reader::recorded::source::add_numbers;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// The destination of chunks, as specified by R.
#[derive(Debug, Clone)]
pub enum To {
    /// A folder, and the prefix of the file names.
    Folder(PathBuf, String),
    /// The spool in this folder, of at most so many bytes. A forwarder sends the chunks, or R's thread takes them.
    Spool(PathBuf, usize, Option<Settings>),
}

impl To {
    pub fn open(&self) -> Result<Store> {
        Ok(match self {
            To::Folder(path, name) => Store::Folder(Folder::new(path.clone(), name.clone())),
            To::Spool(path, limit, _) => Store::Spool(Spool::open(path.clone(), *limit)?),
        })
    }

    /// Whether R's thread takes the chunks.
    pub fn is_r(&self) -> bool {
        matches!(self, To::Spool(_, _, None))
    }
}

enum Format {
    Otlp(otlp::Writer),
    /// With the attributes of the resource.
    Pprof(Vec<(String, String)>),
}

/// Encodes chunks and snapshots.
pub struct Encoder {
    format: Format,
    pub figures: Figures,
}

impl Encoder {
    pub fn new(to: &To, resource: Vec<(String, String)>, figures: Figures) -> Encoder {
        let format = match to {
            To::Folder(..) => Format::Pprof(resource),
            To::Spool(..) => Format::Otlp(otlp::Writer {
                aggregate: true,
                resource,
                ..otlp::Writer::default()
            }),
        };
        Encoder { format, figures }
    }

    /// Encodes a chunk, with figures about memory.
    pub fn encode_chunk(&self, profile: &mut Profile) -> Result<Vec<u8>> {
        let mut sources = std::mem::take(&mut profile.sources);
        if let Some(source) = sources.first_mut() {
            for (key, value) in self.figures.in_chunk() {
                add_numbers(source, &[(key, value)], profile)?;
            }
            if let Format::Pprof(_) = self.format {
                add_comments(source, profile)?;
            }
        }
        profile.sources = sources;
        self.encode(profile)
    }

    /// Returns the encoded profile, compressed. It gets an id, by which a server recognises a chunk that arrives twice.
    #[expect(clippy::disallowed_methods, reason = "the id has 16 bytes")]
    pub fn encode(&self, profile: &mut Profile) -> Result<Vec<u8>> {
        if let Some(source) = profile.sources.first_mut() {
            match &self.format {
                Format::Otlp(_) => {
                    let half = |part: u8| u128::from(RandomState::new().hash_one(part));
                    let id = (half(0) << 64) | half(1);
                    source.profile_id = Some(HEXLOWER.encode(&id.to_be_bytes()));
                }
                Format::Pprof(resource) => {
                    for (key, value) in resource {
                        let comment = profile
                            .strings
                            .intern(&message!("resource.{key}: {value}"))?;
                        source.comments.try_push(comment)?;
                    }
                }
            }
        }
        let mut bytes = Vec::new();
        gzip::compress(&mut Growing(&mut bytes), |out| {
            let never = &|| false;
            match &self.format {
                Format::Otlp(writer) => writer.write(profile, out, never),
                Format::Pprof(_) => pprof::Writer::default().write(profile, out, never),
            }
            .map(drop)
        })?;
        Ok(bytes)
    }
}

/// Adds our own attributes of a source as comments, for files of pprof, which have no attributes. The attributes of the
/// resource are comments, too, after `resource.`: `analysis/flat/origins.rs` and `R/forward.R` read them.
fn add_comments(source: &mut Source, profile: &mut Profile) -> Result<()> {
    for attribute in &source.attributes {
        let [key, value] =
            [attribute.key, attribute.value.text].map(|text| profile.strings.get(text));
        if key.starts_with("profile.") {
            let comment = message!("{key}: {value}");
            source
                .comments
                .try_push(profile.strings.intern(&comment)?)?;
        }
    }
    Ok(())
}
