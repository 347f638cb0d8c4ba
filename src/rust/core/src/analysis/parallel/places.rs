//! Where a process is in parallel work, by the functions of its stack: rules of `inst/frameworks.txt` that name the loops of
//! workers, the calls of the user's task, transfers, and what starts R, packages and workers.

use super::Place;
use crate::analysis::frameworks::rules::{Action, Mark, Rule, Rules};
use crate::analysis::frameworks::split_name;
use crate::error::Result;
use crate::limits::memory::{TryGrow, TryPut};
use crate::model::titled::without_title;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The frames that called this function belong to the code that records. A fork has them as well.
const RECORDER: &str = "record_profile";

/// What a process is in parallel work, if no rule says where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Master,
    /// A fork, or a process that runs a script: its code is the task.
    Task,
    /// A process that was started for a loop, which it has not reached yet.
    Starting,
}

/// A frame of a stack.
#[derive(Debug, Clone, Copy)]
pub struct Named<'n> {
    /// What its call says, perhaps with a package.
    pub called: &'n str,
    /// Its package, if it is known.
    pub package: Option<&'n str>,
}

/// The rules by name.
#[derive(Debug)]
pub struct Places {
    exact: HashMap<&'static str, Vec<&'static Rule>, RandomState>,
    patterns: Vec<&'static Rule>,
}

impl Places {
    pub fn get() -> Result<&'static Places> {
        static PLACES: OnceLock<Places> = OnceLock::new();
        if let Some(places) = PLACES.get() {
            return Ok(places);
        }
        let places = Places::of(Rules::get()?)?;
        Ok(PLACES.get_or_init(|| places))
    }

    fn of(all: &'static Rules) -> Result<Places> {
        let mut places = Places {
            exact: HashMap::default(),
            patterns: Vec::new(),
        };
        for rule in &all.rules {
            if !matches!(rule.action, Action::Place(_)) {
                continue;
            }
            if rule.name.end.is_some() {
                places.patterns.try_push(rule)?;
                continue;
            }
            match places.exact.get_mut(rule.name.start) {
                Some(rules) => rules.try_push(rule)?,
                None => {
                    let mut rules = Vec::new();
                    rules.try_push(rule)?;
                    places.exact.try_put(rule.name.start, rules)?;
                }
            }
        }
        Ok(places)
    }

    /// The marks of a function with these callers, the innermost one first.
    fn marks<'a>(
        &'a self,
        name: &'a str,
        package: Option<&'a str>,
        callers: &'a [&'a str],
    ) -> impl Iterator<Item = Mark> + 'a {
        let exact = self.exact.get(name).map_or(&[][..], Vec::as_slice);
        let rules = exact.iter().chain(&self.patterns);
        rules.filter_map(move |rule| {
            let mut pairs = rule.callers.iter().zip(0..);
            let is_called =
                pairs.all(|(caller, row)| caller.is_none() || *caller == callers.get(row).copied());
            let is_of_package = !rule.is_certain || package == Some(rule.package);
            let matches = rule.name.variable_part(name).is_some();
            match rule.action {
                Action::Place(mark) if matches && is_called && is_of_package => Some(mark),
                _ => None,
            }
        })
    }

    /// Where a process is whose stack has these frames, from the outermost one on.
    pub fn place<'n>(&self, frames: impl Iterator<Item = Named<'n>>, part: Part) -> Place {
        let mut callers = [""; 8];
        let (mut is_empty, mut is_in_loop, mut found) = (true, false, None);
        for frame in frames {
            let (prefix, name) = split_name(without_title(frame.called));
            is_empty = false;
            for mark in self.marks(name, prefix.or(frame.package), &callers) {
                match (mark, found) {
                    (Mark::Task, _) if is_in_loop && part != Part::Master => return Place::Task,
                    // The task may follow a transfer, to which it belongs: its result is an argument.
                    (Mark::Loop, _) => is_in_loop = true,
                    (Mark::Transfer, None) => found = Some(Place::Transfer),
                    (Mark::Starts, None) => found = Some(Place::Starting),
                    _ => {}
                }
            }
            if name == RECORDER {
                (is_in_loop, found) = (false, None);
            }
            callers.rotate_right(1);
            callers[0] = name;
        }
        let other = match part {
            Part::Task if !is_in_loop && !is_empty => Place::Task,
            // R starts before it calls functions.
            Part::Task if is_empty => Place::Starting,
            Part::Starting if !is_in_loop => Place::Starting,
            _ => Place::Other,
        };
        found.unwrap_or(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a process is whose stack is `outermost>...>innermost`, separated by spaces.
    fn place(stack: &str, part: Part) -> Place {
        let frames = stack.split_ascii_whitespace().map(|called| Named {
            called,
            package: None,
        });
        Places::get().unwrap().place(frames, part)
    }

    const COMMAND: &str =
        "workRSOCK workLoop workCommand tryCatch tryCatchList tryCatchOne doTryCatch";
    const EVALUATES: &str = "tryCatch tryCatchList tryCatchOne doTryCatch do.call <Anonymous>";

    #[test]
    fn a_worker_of_a_cluster() {
        let at = |inner: &str| place(&format!("{COMMAND} {inner}"), Part::Starting);
        assert_eq!(at(EVALUATES), Place::Task);
        // Whatever the task calls.
        for inner in [
            "serialize",
            "loadNamespace(x)",
            "mclapply lapply FUN sendMaster",
        ] {
            assert_eq!(at(&format!("{EVALUATES} {inner}")), Place::Task, "{inner}");
        }
        assert_eq!(
            at("recvData recvData.SOCKnode unserialize"),
            Place::Transfer
        );
        assert_eq!(at("sendData sendData.SOCKnode serialize"), Place::Transfer);
        assert_eq!(at(""), Place::Other);
        // Data of a class that need a package.
        let inner = "recvData recvData.SOCKnode unserialize loadNamespace(x)";
        assert_eq!(at(inner), Place::Transfer);
        let starting = |stack| place(stack, Part::Starting);
        assert_eq!(starting(""), Place::Starting);
        assert_eq!(starting(".First.sys library(stats)"), Place::Starting);
        assert_eq!(
            starting("parallel:::workRSOCK makeSOCKmaster"),
            Place::Other
        );
    }

    #[test]
    fn a_fork_has_the_frames_of_its_master() {
        let forked = |inner: &str| {
            let outer = "tryCatch doTryCatch do.call callr record_profile g mclapply lapply FUN";
            place(&format!("{outer} {inner}"), Part::Task)
        };
        assert_eq!(forked("sendMaster try lapply FUN f"), Place::Task);
        // With R's profiler, the outermost call of an argument is that of a builtin.
        assert_eq!(forked("sendMaster is.raw try lapply"), Place::Task);
        // Or the result is evaluated to serialize it.
        assert_eq!(forked("sendMaster serialize try lapply"), Place::Task);
        assert_eq!(forked("sendMaster serialize"), Place::Transfer);
        assert_eq!(forked("sendMaster .Call"), Place::Transfer);
        assert_eq!(forked("mcfork"), Place::Starting);
        assert_eq!(forked("mcexit"), Place::Other);
        // Tasks within tasks.
        let inner = "sendMaster try lapply FUN f mclapply selectChildren";
        assert_eq!(forked(inner), Place::Task);
        assert_eq!(place("f g h", Part::Task), Place::Task);
        assert_eq!(
            place("mcparallel sendMaster try eval", Part::Task),
            Place::Task
        );
        assert_eq!(place("mcparallel mc.set.stream", Part::Task), Place::Other);
    }

    #[test]
    fn other_workers() {
        let daemon = |inner: &str| place(&format!("mirai::daemon {inner}"), Part::Task);
        assert_eq!(daemon("eval_mirai f"), Place::Task);
        assert_eq!(daemon("recv_aio"), Place::Other);
        let outer = "tryCatch tryCatchList tryCatchOne doTryCatch tryCatchList tryCatchOne \
                     doTryCatch withCallingHandlers saveRDS";
        let callr = |inner: &str| place(&format!("{outer} {inner}"), Part::Starting);
        assert_eq!(callr("do.call f"), Place::Task);
        assert_eq!(callr(""), Place::Transfer);
        assert_eq!(place("library(x)", Part::Starting), Place::Starting);
        // A script.
        assert_eq!(place("", Part::Task), Place::Starting);
        assert_eq!(
            place("library(x) loadNamespace(y)", Part::Task),
            Place::Starting
        );
        assert_eq!(place("main", Part::Task), Place::Task);
    }

    #[test]
    fn each_rule_has_an_effect() {
        let rules = &Rules::get().unwrap().rules;
        let all = rules.iter().filter_map(|rule| match rule.action {
            Action::Place(mark) => Some((rule, mark)),
            _ => None,
        });
        let mut seen = 0;
        for (rule, mark) in all {
            let callers = rule.callers.iter().rev().flatten().copied();
            let named = |called| Named {
                called,
                package: Some(rule.package),
            };
            // A task within a loop, which does not end at a call of these functions.
            let outer = (mark == Mark::Task).then_some("workLoop");
            let stack = outer
                .into_iter()
                .chain(callers)
                .chain([rule.name.start, "f"]);
            let part = match mark {
                Mark::Loop | Mark::Starts => Part::Task,
                Mark::Task | Mark::Transfer => Part::Starting,
            };
            let place = Places::get().unwrap().place(stack.map(named), part);
            let expected = match mark {
                // Of callr, the call is a transfer as well.
                Mark::Loop if place == Place::Transfer => Place::Transfer,
                Mark::Loop => Place::Other,
                Mark::Task => Place::Task,
                Mark::Transfer => Place::Transfer,
                Mark::Starts => Place::Starting,
            };
            assert_eq!(place, expected, "{rule:?}");
            seen += 1;
        }
        assert!(seen > 30);
    }

    #[test]
    fn a_master() {
        let master = |stack| place(stack, Part::Master);
        assert_eq!(master(""), Place::Other);
        assert_eq!(master("f mclapply selectChildren"), Place::Other);
        assert_eq!(master("f mclapply unserialize"), Place::Transfer);
        assert_eq!(master("f serialize"), Place::Other);
        assert_eq!(
            master("clusterApplyLB recvOneData recvOneData.SOCKcluster unserialize"),
            Place::Transfer
        );
        assert_eq!(
            master("f parallel::makeCluster newPSOCKnode"),
            Place::Starting
        );
        assert_eq!(
            master("loadNamespace(x) runHook mclapply mcfork"),
            Place::Starting
        );
        assert_eq!(master("loadNamespace(x) record_profile f"), Place::Other);
    }
}
