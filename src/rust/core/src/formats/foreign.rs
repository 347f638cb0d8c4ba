//! What content looks like, and the error of a reader that expects something else.

use super::format::Format;
use super::signatures::Kind;
use crate::error::{Error, Foreign};
use crate::message;

/// What content looks like, by its start.
#[derive(Debug, Clone, Copy)]
pub enum Look {
    /// One of the formats that can be read.
    Format(&'static Format),
    /// A kind of file that cannot be read.
    Kind(&'static Kind),
    /// Only the syntax is known. A reader may know more.
    Syntax(&'static Kind),
    Unknown,
}

impl Look {
    pub fn format(self) -> Option<&'static Format> {
        match self {
            Look::Format(format) => Some(format),
            _ => None,
        }
    }

    /// Whether it looks like something else than this format.
    pub fn is_other_than(self, wanted: &Format) -> bool {
        match self {
            Look::Format(format) => format != wanted,
            Look::Kind(_) | Look::Syntax(_) => true,
            Look::Unknown => false,
        }
    }

    /// The error of a reader of the format `wanted`. `otherwise` says why the content is not of this
    /// format, if it looks like no other.
    pub fn error(self, input: &str, wanted: &Format, otherwise: &str) -> Error {
        let format = self.format().filter(|format| *format != wanted);
        let kind = match self {
            Look::Kind(kind) | Look::Syntax(kind) => Some(kind),
            Look::Format(_) | Look::Unknown => None,
        };
        let title = format
            .map(|format| format.title)
            .or(kind.map(|kind| kind.title));
        Error::Foreign(Foreign {
            input: message!("{input}"),
            wanted: wanted.title,
            found: match title {
                Some(title) => message!("it looks like {title}"),
                None => message!("{otherwise}"),
            },
            looks_like: format
                .map(|format| format.name)
                .or(kind.map(|kind| kind.name)),
            remedy: kind.map_or("", |kind| kind.remedy),
        })
    }
}
