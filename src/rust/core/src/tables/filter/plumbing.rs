//! What the filters ask of the knowledge about frameworks, which is `analysis::frameworks`.

use crate::model::LocationId;
use std::fmt::Debug;

/// A position in a stack.
#[derive(Debug, Clone, Copy, Default)]
pub struct Position {
    /// Whether a framework has begun and has not called the user's code.
    pub inside: bool,
    /// Whether the last frame of R code is left out.
    pub is_hidden: bool,
    /// The names of the last frames, from the innermost one, where they matter for the next ones.
    pub callers: Callers,
}

/// As many callers as a rule may name.
pub type Callers = [Option<&'static str>; 8];

pub trait Plumbing: Debug {
    /// Whether the frame at the position is shown. `position` goes on to the frames that it calls.
    fn shows(&self, id: LocationId, position: &mut Position) -> bool;
}
