//! The sample whose lines are read.

use crate::model::StringId;

/// The fields of a sample's first line.
pub struct Block {
    pub comm: Option<StringId>,
    pub pid: Option<u64>,
    pub tid: Option<u64>,
    pub cpu: Option<u64>,
    pub time: Option<u64>,
    pub period: Option<u64>,
    /// The row of its event.
    pub event: Option<usize>,
    /// Whether a line with a tab has followed.
    pub has_tabs: bool,
}
