//! What of a stack could not be read, so that there is none.

use profile_core::error::{Error, Result};
use profile_core::message;

/// What could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// A variable of R, by its name.
    Variable(&'static str),
    /// The variables in which R keeps the position of the innermost function.
    Position,
    /// The context outside of this number of calls: it cannot be read, or what is there is no context.
    Context(usize),
    /// The call outside of this number of calls: an object that it refers to is damaged.
    Call(usize),
    /// What was read is of more than one moment, since R called functions or returned from them meanwhile.
    OneMoment,
    /// R runs in a thread that was not found.
    Thread,
    /// More memory had to be read than a stack can need.
    TooMuch,
}

impl Missing {
    /// What is missing, in words. `inner` is the name of the function inside of it, if that is known.
    pub fn in_words(self, inner: Option<&str>) -> String {
        let outside = |count| match (inner, count) {
            (_, 0) => "the innermost function".into(),
            (Some(inner), _) => message!("the caller of `{inner}`"),
            (None, _) => message!("the caller of the {count} innermost functions"),
        };
        match self {
            Missing::Variable(name) => message!("R's variable `{name}` cannot be read"),
            Missing::Position => "the position of the innermost function cannot be read".into(),
            Missing::Context(count) => {
                message!("the context of {} cannot be read", outside(count))
            }
            Missing::Call(count) => message!("the call of {} is damaged", outside(count)),
            Missing::OneMoment => "R's contexts changed while they were read".into(),
            Missing::Thread => "the thread that runs R was not found".into(),
            Missing::TooMuch => "R's contexts refer to more memory than a stack can need".into(),
        }
    }
}

/// Why something was not read: it is missing, or there was another error, which ends the recording.
#[derive(Debug)]
pub enum Unread {
    Missing(Missing),
    Failed(Error),
}

/// A part of a stack.
pub type Read<T> = std::result::Result<T, Unread>;

/// Separates what is missing from other errors.
pub fn split_missing<T>(read: Read<T>) -> Result<std::result::Result<T, Missing>> {
    match read {
        Ok(part) => Ok(Ok(part)),
        Err(Unread::Missing(missing)) => Ok(Err(missing)),
        Err(Unread::Failed(error)) => Err(error),
    }
}

impl From<Error> for Unread {
    fn from(error: Error) -> Unread {
        Unread::Failed(error)
    }
}

impl From<Missing> for Unread {
    fn from(missing: Missing) -> Unread {
        Unread::Missing(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        for (missing, inner, words) in [
            (
                Missing::Context(0),
                None,
                "the context of the innermost function cannot be read",
            ),
            (
                Missing::Context(3),
                Some("f"),
                "the context of the caller of `f` cannot be read",
            ),
            (
                Missing::Call(3),
                None,
                "the call of the caller of the 3 innermost functions is damaged",
            ),
            (
                Missing::Thread,
                Some("f"),
                "the thread that runs R was not found",
            ),
            (
                Missing::Variable("R_Srcref"),
                Some("f"),
                "R's variable `R_Srcref` cannot be read",
            ),
        ] {
            assert_eq!(missing.in_words(inner), words);
        }
    }
}
