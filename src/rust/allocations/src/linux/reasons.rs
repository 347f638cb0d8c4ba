//! Why an object is copied, as a sentence: the variables that refer to it. It begins with the one in the code whose line is
//! shown with the copy.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};

/// The number of holders that are named.
pub const MOST_NAMED: usize = 3;

/// The object of an assignment that a function was called for, such as `[<-.data.frame()`, if no variable has it.
pub const MODIFIED: &str = "the modified object";
/// What the names of such functions contain.
const REPLACES: &str = "<-";

/// A variable or the like that refers to the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub name: String,
    pub scope: Scope,
    /// Whether the line of this code is shown.
    pub is_shown: bool,
    /// Whether R counts several references to what the variable refers to.
    pub is_shared: bool,
    /// The name of the environment that has the variable, if this name is part of the variable's, and if R counts several
    /// references to it.
    pub environment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// A variable of a call, with its number and the name of its function.
    Call {
        number: usize,
        name: String,
    },
    /// A variable of an environment in which the function of a call was defined.
    Enclosing,
    Global,
}

/// The sentence about these holders, the innermost one first. `None` if there are none.
pub fn sentence(mut found: Vec<Holder>) -> Result<Option<String>> {
    // A variable of the code that is shown, then others of the same code.
    found.sort_by_key(|holder| (!holder.is_shown, holder.scope == Scope::Enclosing));
    let Some((first, others)) = found.split_first() else {
        return Ok(None);
    };
    let mut sorted = Vec::new();
    for holder in others {
        if sorted.len() + 1 < MOST_NAMED {
            let place = if first.is_shown && holder.scope == first.scope {
                String::new()
            } else {
                place(holder)?
            };
            let text = written(format_args!("{}{place}", holder.name))?;
            if !sorted.contains(&text) {
                sorted.try_push(text)?;
            }
        }
    }
    let name = if first.is_shown {
        owned(&first.name)?
    } else {
        written(format_args!("{}{}", first.name, place(first)?))?
    };
    let text = match (sorted.as_slice(), &first.environment) {
        // R keeps the object while it calls such a function.
        ([], _) if first.is_shared && first.is_of_replacement() => written(format_args!(
            "{MODIFIED} is also {}{}",
            first.name,
            place(first)?
        ))?,
        ([], _) if first.is_shared => written(format_args!(
            "variable {name} is the only one that was found, but R counts other references to it"
        ))?,
        ([], Some(environment)) => written(format_args!(
            "{name} has no other reference, but the environment `{environment}` has"
        ))?,
        ([], None) => written(format_args!(
            "{name} has no other reference, and is copied anyway"
        ))?,
        ([other], _) => written(format_args!("{name} is also {other}"))?,
        ([other, another, ..], _) => written(format_args!("{name} is also {other} and {another}"))?,
    };
    Ok(Some(text))
}

impl Holder {
    fn is_of_replacement(&self) -> bool {
        matches!(&self.scope, Scope::Call { name, .. } if name.contains(REPLACES))
    }
}

fn place(holder: &Holder) -> Result<String> {
    match &holder.scope {
        Scope::Call { name, .. } => written(format_args!(" in `{name}()`")),
        Scope::Enclosing => owned(" of the function around it"),
        Scope::Global => owned(" of the global environment"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str, scope: Scope, is_shown: bool) -> Holder {
        Holder {
            name: format!("`{name}`"),
            scope,
            is_shown,
            is_shared: true,
            environment: None,
        }
    }

    fn call(number: usize, name: &str) -> Scope {
        let name = name.to_string();
        Scope::Call { number, name }
    }

    fn text(found: &[Holder]) -> String {
        sentence(found.to_vec()).unwrap().unwrap_or_default()
    }

    #[test]
    fn it_begins_with_the_code_that_is_shown() {
        let inner = holder("x", call(0, "copy"), false);
        let middle = holder("x", call(1, "recycle"), false);
        let user = holder("l$a", call(2, "run"), true);
        let other = holder("b", call(2, "run"), true);
        let outer = holder("v", call(3, "run"), false);
        let global = holder("g", Scope::Global, false);
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[user.clone(), other.clone()]), "`l$a` is also `b`");
        assert_eq!(
            text(&[inner.clone(), middle.clone(), user.clone(), outer.clone()]),
            "`l$a` is also `x` in `copy()` and `x` in `recycle()`"
        );
        assert_eq!(
            text(&[inner.clone(), user.clone(), other.clone()]),
            "`l$a` is also `b` and `x` in `copy()`"
        );
        // Another call of the same function.
        assert_eq!(text(&[user, outer]), "`l$a` is also `v` in `run()`");
        assert_eq!(
            text(&[inner, middle, global]),
            "`x` in `copy()` is also `x` in `recycle()` and `g` of the global environment"
        );
    }

    #[test]
    fn variables_of_calls_come_before_those_around_them() {
        let around = holder("state", Scope::Enclosing, true);
        let own = holder("tmp", call(0, "f"), true);
        assert_eq!(
            text(&[around, own]),
            "`tmp` is also `state` of the function around it"
        );
    }

    #[test]
    fn a_single_variable_may_have_references_that_were_not_found() {
        let counted = holder("x", call(0, "run"), true);
        let mut single = Holder {
            is_shared: false,
            ..counted.clone()
        };
        assert_eq!(
            text(std::slice::from_ref(&counted)),
            "variable `x` is the only one that was found, but R counts other references to it"
        );
        let replaces = Holder {
            scope: call(0, "[[<-.data.frame"),
            ..counted
        };
        assert_eq!(
            text(&[replaces]),
            "the modified object is also `x` in `[[<-.data.frame()`"
        );
        assert_eq!(
            text(std::slice::from_ref(&single)),
            "`x` has no other reference, and is copied anyway"
        );
        single.environment = Some("e".to_string());
        single.name = "`e$x`".to_string();
        assert_eq!(
            text(&[single]),
            "`e$x` has no other reference, but the environment `e` has"
        );
    }
}
