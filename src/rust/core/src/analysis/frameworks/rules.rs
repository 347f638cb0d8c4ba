//! The table of rules, `inst/frameworks.txt`, which describes their meaning.

use crate::error::Result;
use crate::limits::memory::{TryGrow, TryText};
use crate::tables::Callers;
use std::sync::OnceLock;

/// What a rule does with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Hide,
    Begins,
    Ends,
    /// It is a unit of work, with this key.
    Label(&'static str),
}

/// A rule for functions of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// [`ANY`] for names of functions of any package.
    pub package: &'static str,
    /// Whether it holds only for functions whose package is known.
    pub is_certain: bool,
    /// The functions that have called it, from the innermost one, as far as they matter.
    pub callers: Callers,
    pub name: Pattern,
    /// The value of a label, if it is not the name.
    value: Option<Pattern>,
    pub action: Action,
}

/// The package of rules for names under which R calls functions of any package.
pub const ANY: &str = "-";

/// A text in which one part may be any text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    pub start: &'static str,
    /// The text after the `*`, `None` if there is none.
    pub end: Option<&'static str>,
}

impl Pattern {
    /// A name. `*` and `%*%` are operators of R.
    fn parse(text: &'static str) -> Pattern {
        if text == "*" || text.starts_with('%') {
            return Pattern {
                start: text,
                end: None,
            };
        }
        Pattern::parse_value(text)
    }

    fn parse_value(text: &'static str) -> Pattern {
        let (start, end) = match text.split_once('*') {
            Some((start, end)) => (start, Some(end)),
            None => (text, None),
        };
        Pattern { start, end }
    }

    /// The text in place of the `*`, which is empty if there is none; `None` if `name` does not match.
    pub fn variable_part<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(self.start)?;
        match self.end {
            Some(end) => rest.strip_suffix(end),
            None => Some(rest).filter(|rest| rest.is_empty()),
        }
    }
}

impl Rule {
    /// The value of the label of a function with this name, which matches. An empty one is no label.
    pub fn value(&self, name: &str) -> Result<String> {
        let mut text = String::new();
        match (self.value, self.name.variable_part(name)) {
            (Some(value), Some(part)) => {
                text.try_push_str(value.start)?;
                text.try_push_str(part)?;
                text.try_push_str(value.end.unwrap_or_default())?;
            }
            _ => text.try_push_str(name)?,
        }
        Ok(text)
    }
}

/// All rules, and the packages that they are about.
#[derive(Debug)]
pub struct Rules {
    pub rules: Vec<Rule>,
    pub packages: Vec<&'static str>,
}

impl Rules {
    pub fn get() -> Result<&'static Rules> {
        static RULES: OnceLock<Rules> = OnceLock::new();
        if let Some(rules) = RULES.get() {
            return Ok(rules);
        }
        let (rules, _) = parse(include_str!("../../../../../../inst/frameworks.txt"))?;
        Ok(RULES.get_or_init(|| rules))
    }
}

/// The rules, and the lines that are none.
fn parse(text: &'static str) -> Result<(Rules, Vec<&'static str>)> {
    let (mut rules, mut packages, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        let (Some(package), Some(what)) = (words.next(), words.next()) else {
            others.try_push(line)?;
            continue;
        };
        if package != ANY && !packages.contains(&package) {
            packages.try_push(package)?;
        }
        let action = match what {
            "hide" => Action::Hide,
            "begins" => Action::Begins,
            "ends" => Action::Ends,
            "inside" if words.clone().next().is_none() => continue,
            _ => match what.strip_prefix("label:") {
                Some(key) => Action::Label(key),
                None => {
                    others.try_push(line)?;
                    continue;
                }
            },
        };
        for word in words {
            rules.try_push(rule(package, word, action))?;
        }
    }
    Ok((Rules { rules, packages }, others))
}

fn rule(package: &'static str, word: &'static str, action: Action) -> Rule {
    let (is_certain, word) = match word.strip_prefix("::") {
        Some(word) => (true, word),
        None => (false, word),
    };
    let (mut callers, mut word) = (Callers::default(), word);
    while let (Some((caller, rest)), [.., None]) = (split_caller(word), callers) {
        callers.rotate_right(1);
        callers[0] = Some(caller);
        word = rest;
    }
    let (name, value) = match (action, word.split_once('=')) {
        (Action::Label(_), Some((name, value))) => (name, Some(Pattern::parse_value(value))),
        _ => (word, None),
    };
    Rule {
        package,
        is_certain,
        callers,
        name: Pattern::parse(name),
        value,
        action,
    }
}

/// The caller and the rest of `caller>rest`. Names such as `%>%` and `<reactive:*>` contain the same characters.
fn split_caller(word: &'static str) -> Option<(&'static str, &'static str)> {
    let end = match word.strip_prefix('<') {
        // `<Anonymous>>f`
        Some(_) => word.find(">>")? + 1,
        None => word.find('>')?,
    };
    let (caller, rest) = (&word[..end], &word[end + 1..]);
    Some((caller, rest))
        .filter(|_| !caller.is_empty() && !caller.starts_with('%') && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_are_rules() {
        let (rules, others) = parse(include_str!("../../../../../../inst/frameworks.txt")).unwrap();
        assert_eq!(others, [""; 0]);
        assert!(rules.packages.contains(&"shiny") && rules.packages.contains(&"compiler"));
    }

    #[test]
    fn words_of_rules() {
        let (rules, others) = parse(
            "# comment\n\na hide ::f g>h <y>>i>h %>% <x>\nb inside\nc label:k <o:u$*>=u$* v* r(*)=*\nd what f\ne inside f\nf\n",
        ).unwrap();
        assert_eq!(others, ["d what f", "e inside f", "f"]);
        assert_eq!(rules.packages, ["a", "b", "c", "d", "e"]);
        let found: Vec<_> = rules
            .rules
            .iter()
            .map(|rule| (rule.callers[0], rule.callers[1], rule.name.start))
            .collect();
        let expected = [
            (None, None, "f"),
            (Some("g"), None, "h"),
            (Some("i"), Some("<y>"), "h"),
            (None, None, "%>%"),
            (None, None, "<x>"),
            (None, None, "<o:u$"),
            (None, None, "v"),
            (None, None, "r("),
        ];
        assert_eq!(found, expected);
        assert!(rules.rules[0].is_certain && !rules.rules[1].is_certain);
        let value = |rule: usize, name: &str| rules.rules[rule].value(name).unwrap();
        assert_eq!(value(5, "<o:u$plot>"), "u$plot");
        assert_eq!(value(6, "vw"), "vw");
        assert_eq!(value(7, "r(x)"), "x");
        assert_eq!(rules.rules[5].name.variable_part("<o:u$plot"), None);
        assert_eq!(rules.rules[0].name.variable_part("fg"), None);
    }
}
