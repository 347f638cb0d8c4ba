//! Where chunks go, and how they are encoded.

use crate::folder::Folder;
use crate::forward::Settings;
use crate::spool::Spool;
use crate::state::Store;
use data_encoding::HEXLOWER;
use profile_core::error::Result;
use profile_core::formats::{Writer, otlp, pprof};
use profile_core::io::gzip;
use profile_core::limits::memory::Growing;
use profile_core::model::Profile;
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
            To::Folder(path, name) => Store::Folder(Folder {
                path: path.clone(),
                name: name.clone(),
            }),
            To::Spool(path, limit, _) => Store::Spool(Spool::open(path.clone(), *limit)?),
        })
    }

    /// Whether R's thread takes the chunks.
    pub fn is_r(&self) -> bool {
        matches!(self, To::Spool(_, _, None))
    }
}

/// Encodes chunks.
#[derive(Debug)]
pub enum Encoder {
    Otlp(otlp::Writer),
    Pprof(pprof::Writer),
}

impl Encoder {
    pub fn new(to: &To, resource: Vec<(String, String)>) -> Encoder {
        match to {
            To::Folder(..) => Encoder::Pprof(pprof::Writer::default()),
            To::Spool(..) => Encoder::Otlp(otlp::Writer {
                aggregate: true,
                resource,
                ..otlp::Writer::default()
            }),
        }
    }

    /// The encoded profile, compressed. It gets an id, by which a server recognises a chunk that arrives twice.
    #[expect(clippy::disallowed_methods, reason = "the id has 16 bytes")]
    pub fn encode(&self, profile: &mut Profile) -> Result<Vec<u8>> {
        if let (Encoder::Otlp(_), Some(source)) = (self, profile.sources.first_mut()) {
            let half = |part: u8| u128::from(RandomState::new().hash_one(part));
            let id = (half(0) << 64) | half(1);
            source.profile_id = Some(HEXLOWER.encode(&id.to_be_bytes()));
        }
        let mut bytes = Vec::new();
        gzip::compress(&mut Growing(&mut bytes), |out| {
            let never = &|| false;
            match self {
                Encoder::Otlp(writer) => writer.write(profile, out, never),
                Encoder::Pprof(writer) => writer.write(profile, out, never),
            }
            .map(drop)
        })?;
        Ok(bytes)
    }
}
