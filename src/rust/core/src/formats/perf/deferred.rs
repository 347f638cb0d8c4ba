//! Call chains of user code that the kernel records later than their samples.
//!
//! Newer kernels take the user part of a stack when the thread returns from the kernel. perf joins the parts, or with
//! `--no-merge-callchains` prints them as they are:
//!
//! ```text
//! pwd 2312 121.163435: 249113 cycles:
//!     ffffffff845e6692 do_syscall_64+0x62 ([kernel.kallsyms])
//!            b00000006 (cookie) ([unknown])
//!
//! pwd 2312 121.163447: DEFERRED CALLCHAIN [cookie: b00000006]
//!         7f18fe337fa7 mprotect+0x7 (/usr/lib/ld.so)
//! ```

use super::frame::frame;
use crate::error::{Position, Result};
use crate::formats::problems::ProblemKind;
use crate::formats::text_file::File;
use crate::limits::memory::{TryGrow, TryPut, sort_by_key};
use crate::message;
use crate::model::StackId;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// A thread and the number by which the kernel connects the parts.
type Key = (Option<u64>, u64);

/// A sample whose outer frames have not been read.
struct Waiting {
    row: usize,
    line: u64,
}

#[derive(Default)]
pub struct Deferred {
    waiting: HashMap<Key, Vec<Waiting>, RandomState>,
}

/// The cookie of a line such as `DEFERRED CALLCHAIN [cookie: b00000006]`, or 0 if it has none. `None` if the text
/// after the time is something else.
pub fn deferred(text: &[u8]) -> Option<u64> {
    let rest = text.strip_prefix(b"DEFERRED CALLCHAIN")?.trim_ascii();
    let cookie = rest
        .strip_prefix(b"[cookie:")
        .and_then(|rest| rest.strip_suffix(b"]"));
    let digits = std::str::from_utf8(cookie.unwrap_or_default().trim_ascii()).unwrap_or_default();
    Some(u64::from_str_radix(digits, 16).unwrap_or(0))
}

/// Removes the last line of a stack if it is a cookie, which it returns.
pub fn remove_cookie(text: &mut Vec<u8>) -> Option<u64> {
    let lines = text.strip_suffix(b"\n")?;
    let start = memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1);
    let last = frame(&lines[start..]);
    let cookie = last
        .address
        .filter(|_| last.symbol == Some(b"(cookie)") && last.module.is_none())?;
    text.truncate(start);
    Some(cookie)
}

impl Deferred {
    /// Notes that the outer frames of the last sample follow later.
    pub fn wait(&mut self, tid: Option<u64>, cookie: u64, file: &File) -> Result<()> {
        let waiting = Waiting {
            row: file.profile.samples.len().saturating_sub(1),
            line: file.line_number(),
        };
        match self.waiting.get_mut(&(tid, cookie)) {
            Some(all) => all.try_push(waiting),
            None => {
                let mut all = Vec::new();
                all.try_push(waiting)?;
                self.waiting.try_put((tid, cookie), all).map(drop)
            }
        }
    }

    /// Adds outer frames to the samples that wait for them.
    pub fn join(
        &mut self,
        tid: Option<u64>,
        cookie: u64,
        outer: StackId,
        file: &mut File,
    ) -> Result<()> {
        let Some(waiting) = self.waiting.remove(&(tid, cookie)) else {
            file.note(
                ProblemKind::StrayText,
                message!("DEFERRED CALLCHAIN [cookie: {cookie:x}]").as_bytes(),
            );
            return Ok(());
        };
        let outer = file.profile.stacks.get(outer).to_vec()?;
        for Waiting { row, .. } in waiting {
            let inner = file.profile.samples.stack[row];
            let mut frames = file.profile.stacks.get(inner).to_vec()?;
            frames.try_extend(&outer)?;
            file.take_frames(outer.len())?;
            file.profile.samples.stack[row] = file.profile.stacks.intern(&frames)?;
        }
        Ok(())
    }

    /// Records the samples whose outer frames are missing.
    pub fn finish(self, file: &mut File) -> Result<()> {
        let mut missing: Vec<(u64, u64)> = Vec::new();
        for ((_, cookie), waiting) in &self.waiting {
            for waiting in waiting {
                missing.try_push((waiting.line, *cookie))?;
            }
        }
        sort_by_key(&mut missing, |found| *found)?;
        for (line, cookie) in missing {
            let text = message!("cookie {cookie:x}");
            file.problems.note(
                ProblemKind::NoCallChain,
                Position::Line(line),
                text.as_bytes(),
            );
        }
        Ok(())
    }
}
