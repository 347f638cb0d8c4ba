//! Sends chunks to their destination.

use crate::folder::Folder;
use crate::http::{Http, Target};
use crate::now::Now;
use crate::queue::Queue;
use crate::system::Waiting;
use profile_core::error::Result;
use profile_core::formats::{Writer, otlp, pprof};
use profile_core::io::gzip;
use profile_core::limits::memory::Growing;
use profile_core::model::Profile;
use std::path::PathBuf;
use std::time::Instant;

/// The destination of chunks, as specified by R.
#[derive(Debug, Clone)]
pub enum To {
    Http(Target),
    /// A folder, and the prefix of the file names.
    Folder(PathBuf, String),
    /// R takes them from the queue.
    R,
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
            To::Http(_) | To::R => Encoder::Otlp(otlp::Writer {
                aggregate: true,
                resource,
                ..otlp::Writer::default()
            }),
        }
    }

    /// The encoded profile, compressed.
    pub fn encode(&self, profile: &Profile) -> Result<Vec<u8>> {
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

/// Sends chunks, one after the other.
pub enum Sink {
    Http(Box<Http>),
    Folder(Folder),
    R,
}

impl Sink {
    pub fn open(to: To, now: Now) -> Result<Sink> {
        Ok(match to {
            To::Http(target) => Sink::Http(Box::new(Http::open(target, now)?)),
            To::Folder(path, name) => Sink::Folder(Folder::new(path, name, now)),
            To::R => Sink::R,
        })
    }

    /// Does everything that is possible without blocking.
    pub fn step(&mut self, queue: &Queue, now: Now) {
        match self {
            Sink::Http(http) => http.step(queue, now),
            Sink::Folder(folder) => folder.step(queue, now),
            Sink::R => {}
        }
    }

    /// What the next step waits for.
    pub fn waiting(&self) -> Option<Waiting> {
        match self {
            Sink::Http(http) => http.waiting(),
            Sink::Folder(_) | Sink::R => None,
        }
    }

    /// The agent is stopping: makes a last attempt, without a delay, until the deadline.
    pub fn hurry(&mut self, deadline: Instant, now: Now) {
        match self {
            Sink::Http(http) => http.hurry(deadline, now),
            Sink::Folder(folder) => folder.hurry(now),
            Sink::R => {}
        }
    }

    /// Whether nothing more can be sent after `hurry()`.
    pub fn is_done(&self, queue: &Queue) -> bool {
        match self {
            Sink::Http(http) => http.has_given_up() || queue.is_empty(),
            Sink::Folder(folder) => folder.has_given_up() || queue.is_empty(),
            Sink::R => true,
        }
    }
}
