//! What frameworks add to the stack: which frames are plumbing, and which ones are units of work.
//!
//! The knowledge is a table of data ([`rules`]). It is applied to a stack from its outermost frame on, so that whether a
//! frame is shown depends on the frames before it only. Therefore it is a property of a node of the call tree as well.

pub mod rules;

use super::frame_names::address;
use super::heap_frames::is_of_heap;
use super::packages::package_of;
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, TryPut, with_room};
use crate::model::{LocationId, NATIVE, Profile, is_deparsed};
use crate::tables::{Callers, Plumbing, Position};
use foldhash::fast::RandomState;
use rules::{ANY, Action, Rule, Rules};
use std::collections::HashMap;
use std::ops::Range;

/// The package of R itself.
const BASE: &str = "base";

/// What is known of the frames of a profile.
#[derive(Debug)]
pub struct Frameworks {
    /// By location.
    frames: Vec<Frame>,
    /// The rules of frames.
    rules: Vec<&'static Rule>,
    units: Vec<Unit>,
}

/// What the frame of a unit of work adds to the labels of samples.
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    pub key: &'static str,
    pub value: String,
    /// Whether it counts only if no other frame is a unit with this key.
    pub is_weak: bool,
}

#[derive(Debug, Clone)]
struct Frame {
    /// The name as a caller in a rule, if any rule has it.
    caller: Option<&'static str>,
    /// Its rules.
    rules: Range<usize>,
    /// The row of its unit of work.
    unit: Option<usize>,
    kind: Kind,
}

/// Whose code a frame is, if no rule says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Code of a source file, or of a package that is no framework.
    User,
    /// A function of a framework, or one of which only the name is known.
    Unknown,
    /// Native code belongs to the function that calls it.
    Native,
}

impl Frameworks {
    pub fn new(profile: &Profile) -> Result<Frameworks> {
        let all = Rules::get()?;
        let names = Names::new(all)?;
        let mut found = Frameworks {
            frames: with_room(profile.locations.len())?,
            rules: Vec::new(),
            units: Vec::new(),
        };
        for id in profile.locations.ids() {
            let frame = found.frame(profile, id, all, &names)?;
            found.frames.try_push(frame)?;
        }
        Ok(found)
    }

    fn frame(
        &mut self,
        profile: &Profile,
        id: LocationId,
        all: &'static Rules,
        names: &Names,
    ) -> Result<Frame> {
        let first = self.rules.len();
        let mut frame = Frame {
            caller: None,
            rules: first..first,
            unit: None,
            kind: Kind::Native,
        };
        let is_native = profile.frame_type_of(&profile.locations.get(id)) == Some(NATIVE)
            || address(profile, id) != 0;
        let Some(function) = profile.function_of(id).filter(|_| !is_native) else {
            return Ok(frame);
        };
        if is_of_heap(profile, id) {
            frame.kind = Kind::User;
            return Ok(frame);
        }
        let whole = profile.strings.get(function.name);
        let (prefix, name) = match split_name(whole) {
            // Methods for classes of S7 have names such as `print.package::class`.
            (Some(prefix), _) if prefix.contains('.') && !all.packages.contains(&prefix) => {
                (None, whole)
            }
            parts => parts,
        };
        let package = prefix.or_else(|| package_of(profile, id));
        let file = profile.strings.get(function.filename);
        // The text that R makes of a function says nothing about who has written it.
        let has_file = !file.is_empty() && !is_deparsed(file);
        // A process knows for certain that a function belongs to no package.
        let has_none = package.is_none() && function.package_from.is_some();
        let is_own = has_none || package.is_none() && has_file;
        let is_framework = package.is_some_and(|package| all.packages.contains(&package));
        frame.kind = match package {
            Some(_) if is_framework => Kind::Unknown,
            None if !is_own => Kind::Unknown,
            _ => Kind::User,
        };
        // Rules contain what calls say, such as `self$run`, not the class of the object.
        let called = split_name(profile.strings.get(function.system_name)).1;
        let caller = names
            .callers
            .get(called)
            .or_else(|| names.callers.get(name));
        frame.caller = caller.copied();
        let is_unit = |rule: &Rule| matches!(rule.action, Action::Label(_));
        let other = Some(called).filter(|called| *called != name);
        for (name, rule) in [Some(name), other]
            .into_iter()
            .flatten()
            .flat_map(|name| names.rules(name).map(move |&rule| (name, rule)))
        {
            let holds = match rule.package {
                ANY => !has_file && !is_own,
                // The package may have been guessed from the name; a caller is better evidence.
                own if rule.callers[0].is_some() => {
                    !has_file && !is_own && (!rule.is_certain || package == Some(own))
                }
                own => match package {
                    Some(known) => known == own,
                    // Functions of base have the file of the user's code that they evaluate, and so have units of work.
                    None => {
                        !rule.is_certain && (!is_own || own == BASE && !has_none || is_unit(rule))
                    }
                },
            };
            if !holds || rule.name.variable_part(name).is_none() {
                continue;
            }
            if let (Action::Label(key), None) = (rule.action, frame.unit) {
                frame.unit = Some(self.units.len());
                self.units.try_push(Unit {
                    key,
                    value: rule.value(name)?,
                    is_weak: rule.is_weak,
                })?;
            }
            self.rules.try_push(rule)?;
        }
        // A store keeps only the name with the class, `Server$run`.
        for &rule in names.rules_of_member(name) {
            if package == Some(rule.package) && rule.name.start != name {
                self.rules.try_push(rule)?;
            }
        }
        frame.rules.end = self.rules.len();
        Ok(frame)
    }

    /// The unit of work that a frame is.
    pub fn unit(&self, id: LocationId) -> Option<&Unit> {
        let frame = self.frames.get(id.row())?;
        let unit = self.units.get(frame.unit?)?;
        Some(unit).filter(|unit| !unit.value.is_empty())
    }

    /// The rules of a frame with these callers.
    fn rules_at(&self, frame: &Frame, callers: Callers) -> impl Iterator<Item = &'static Rule> {
        let rules = self.rules.get(frame.rules.clone()).unwrap_or_default();
        let holds = move |rule: &&&Rule| {
            let mut pairs = rule.callers.iter().zip(&callers);
            pairs.all(|(expected, caller)| expected.is_none() || expected == caller)
        };
        rules.iter().filter(holds).copied()
    }
}

impl Plumbing for Frameworks {
    fn shows(&self, id: LocationId, position: &mut Position) -> bool {
        let Some(frame) = self.frames.get(id.row()) else {
            return true;
        };
        if frame.kind == Kind::Native {
            return !position.is_hidden;
        }
        let was_inside = position.inside;
        let is_unit = self.unit(id).is_some();
        let (mut hides, mut goes) = (false, None);
        for rule in self.rules_at(frame, position.callers) {
            match rule.action {
                Action::Hide => hides = true,
                Action::Label(_) | Action::Place(_) => {}
                Action::Begins => goes = goes.or(Some(true)),
                Action::Ends => goes = goes.or(Some(false)),
            }
        }
        position.callers.rotate_right(1);
        position.callers[0] = frame.caller;
        let is_user = frame.kind == Kind::User && !hides;
        position.inside = goes.unwrap_or(was_inside && !is_user);
        position.is_hidden = hides || !(is_unit || is_user || !was_inside);
        !position.is_hidden
    }
}

/// The package and the name in `package::name`.
pub fn split_name(name: &str) -> (Option<&str>, &str) {
    let Some((package, rest)) = name.split_once("::") else {
        return (None, name);
    };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '.';
    match rest.strip_prefix(':').unwrap_or(rest) {
        rest if !rest.is_empty() && !package.is_empty() && package.chars().all(is_letter) => {
            (Some(package), rest)
        }
        _ => (None, name),
    }
}

/// The rules by name.
struct Names {
    exact: HashMap<&'static str, Vec<&'static Rule>, RandomState>,
    patterns: Vec<&'static Rule>,
    /// Rules for methods, by the name of the method.
    members: HashMap<&'static str, Vec<&'static Rule>, RandomState>,
    callers: HashMap<&'static str, &'static str, RandomState>,
}

impl Names {
    fn new(all: &'static Rules) -> Result<Names> {
        let mut names = Names {
            exact: HashMap::default(),
            patterns: Vec::new(),
            members: HashMap::default(),
            callers: HashMap::default(),
        };
        let rules = all.rules.iter();
        for rule in rules.filter(|rule| !matches!(rule.action, Action::Place(_))) {
            for caller in rule.callers.into_iter().flatten() {
                names.callers.try_put(caller, caller)?;
            }
            if rule.name.end.is_some() {
                names.patterns.try_push(rule)?;
            } else {
                add(&mut names.exact, rule.name.start, rule)?;
                let is_plain =
                    !matches!(rule.action, Action::Label(_)) && rule.callers[0].is_none();
                if let Some(member) = member(rule.name.start).filter(|_| is_plain) {
                    add(&mut names.members, member, rule)?;
                }
            }
        }
        Ok(names)
    }

    /// Rules for methods with the name of this one.
    fn rules_of_member(&self, name: &str) -> &[&'static Rule] {
        let found = member(name).and_then(|member| self.members.get(member));
        found.map_or(&[][..], Vec::as_slice)
    }

    /// Rules that a function with this name may have. Those with a pattern need not match.
    fn rules(&self, name: &str) -> impl Iterator<Item = &&'static Rule> {
        let exact = self.exact.get(name).map_or(&[][..], Vec::as_slice);
        exact.iter().chain(&self.patterns)
    }
}

fn add(
    rules: &mut HashMap<&'static str, Vec<&'static Rule>, RandomState>,
    name: &'static str,
    rule: &'static Rule,
) -> Result<()> {
    match rules.get_mut(name) {
        Some(rules) => rules.try_push(rule),
        None => {
            let first = std::iter::once(rule).try_vec()?;
            rules.try_put(name, first).map(|_| ())
        }
    }
}

/// The method in `object$method`.
fn member(name: &str) -> Option<&str> {
    let (object, member) = name.split_once('$')?;
    let is_name = |part: &str| !part.is_empty() && !part.starts_with(['<', '%']);
    Some(member).filter(|member| is_name(object) && is_name(member))
}

#[cfg(test)]
mod tests;
