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
    /// It shows where a process is in parallel work. Views do not use these rules.
    Place(Mark),
}

/// Where a process is in parallel work, by a frame of its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// What this function calls belongs to a worker's loop, or to the code that begins a task in a fork.
    Loop,
    /// Within a loop: this is the user's task.
    Task,
    /// It sends or receives data.
    Transfer,
    /// It starts R, a package, or workers.
    Starts,
}

impl Mark {
    pub fn named(name: &str) -> Option<Mark> {
        match name {
            "loop" => Some(Mark::Loop),
            "task" => Some(Mark::Task),
            "transfer" => Some(Mark::Transfer),
            "starts" => Some(Mark::Starts),
            _ => None,
        }
    }
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
    /// Whether the label counts only if no other frame has one.
    pub is_weak: bool,
    pub action: Action,
}

/// The package of rules for names under which R calls functions of any package.
pub const ANY: &str = "-";

/// A text in which one part or two parts may be any text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    pub start: &'static str,
    /// The text between two stars.
    middle: Option<&'static str>,
    /// The text after the last star, `None` if there is none.
    pub end: Option<&'static str>,
}

impl Pattern {
    /// A name. `*` and `%*%` are operators of R.
    fn parse(text: &'static str) -> Pattern {
        if text != "*" && !text.starts_with('%') {
            return Pattern::parse_value(text);
        }
        Pattern {
            start: text,
            middle: None,
            end: None,
        }
    }

    fn parse_value(text: &'static str) -> Pattern {
        let (start, end) = match text.split_once('*') {
            Some((start, end)) => (start, Some(end)),
            None => (text, None),
        };
        let (middle, end) = match end.and_then(|end| end.split_once('*')) {
            Some((middle, end)) => (Some(middle), Some(end)),
            None => (None, end),
        };
        Pattern { start, middle, end }
    }

    /// The text in place of the last star, which is empty if there is none; `None` if `name` does not match.
    pub fn variable_part<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix(self.start)?;
        let rest = match self.end {
            Some(end) => rest.strip_suffix(end)?,
            None => Some(rest).filter(|rest| rest.is_empty())?,
        };
        match self.middle {
            Some(middle) => Some(rest.rsplit_once(middle)?.1),
            None => Some(rest),
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
                text.try_push_str(part.trim_start())?;
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
    let mut inside = Vec::new();
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
            "inside" => {
                inside.try_push((line, words))?;
                continue;
            }
            _ => match (what.strip_prefix("label:"), Mark::named(what)) {
                (Some(key), _) => Action::Label(key),
                (None, Some(mark)) => Action::Place(mark),
                (None, None) => {
                    others.try_push(line)?;
                    continue;
                }
            },
        };
        for word in words {
            rules.try_push(rule(package, word, action))?;
        }
    }
    // A package never belongs to a framework that never begins.
    for (line, mut frameworks) in inside {
        let begins = |package: &str| {
            let mut own = rules.iter().filter(|rule: &&Rule| rule.package == package);
            own.any(|rule| rule.action == Action::Begins)
        };
        if frameworks.clone().next().is_none() || !frameworks.all(begins) {
            others.try_push(line)?;
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
        (Action::Label(_), Some((name, value))) => (name, Some(value)),
        _ => (word, None),
    };
    let (value, is_weak) = match value.and_then(|value| value.strip_prefix('?')) {
        Some(weak) => (Some(weak), true),
        None => (value, false),
    };
    Rule {
        package,
        is_certain,
        callers,
        name: Pattern::parse(name),
        value: value.map(Pattern::parse_value),
        is_weak,
        action,
    }
}

/// The caller and the rest of `caller>rest`. Names such as `%>%`, `<<-` and `<reactive:*>` contain the same characters.
fn split_caller(word: &'static str) -> Option<(&'static str, &'static str)> {
    let end = match word.as_bytes().first()? {
        // `%do%>f`
        b'%' => word.find("%>").filter(|&at| at > 0)? + 1,
        // `<Anonymous>>f`, `<<->f`
        b'<' if !word.starts_with("<<-") => word.find(">>")? + 1,
        _ => word.find('>')?,
    };
    let (caller, rest) = (&word[..end], &word[end + 1..]);
    Some((caller, rest)).filter(|_| !caller.is_empty() && !rest.is_empty())
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
            "# comment\n\na hide ::f g>h <y>>i>h %>% <x> %d%>h g><<->h\nc label:k <o:u$*>=u$* v* r(*)=* <w>=?w b({*}),*)=<b(*)> **\n\
                d what f\nf\n",
        )
        .unwrap();
        assert_eq!(others, ["d what f", "f"]);
        assert_eq!(rules.packages, ["a", "c", "d"]);
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
            (Some("%d%"), None, "h"),
            (Some("<<-"), Some("g"), "h"),
            (None, None, "<o:u$"),
            (None, None, "v"),
            (None, None, "r("),
            (None, None, "<w>"),
            (None, None, "b({"),
            (None, None, ""),
        ];
        assert_eq!(found, expected);
        assert!(rules.rules[0].is_certain && !rules.rules[1].is_certain);
        let value = |rule: usize, name: &str| rules.rules[rule].value(name).unwrap();
        assert_eq!(value(7, "<o:u$plot>"), "u$plot");
        assert_eq!(value(8, "vw"), "vw");
        assert_eq!(rules.rules[7].name.variable_part("<o:u$plot"), None);
        assert_eq!(value(9, "r(x)"), "x");
        assert_eq!(rules.rules[0].name.variable_part("fg"), None);
        assert!(rules.rules[10].is_weak && !rules.rules[9].is_weak);
        assert_eq!(value(10, "<w>"), "w");
        // What is between the stars is looked for from the end.
        assert_eq!(value(11, "b({ f({ x }), y }), input$n)"), "<b(input$n)>");
        assert_eq!(rules.rules[11].name.variable_part("b({ x }"), None);
        assert_eq!(rules.rules[11].name.variable_part("b({)"), None);
        assert!(rules.rules[12].name.variable_part("any").is_some());
    }

    #[test]
    fn a_package_is_inside_of_frameworks_that_begin() {
        let (rules, others) =
            parse("a inside b\nb begins f\nc inside b d\nd hide f\ne inside\nf inside none\n")
                .unwrap();
        assert_eq!(others, ["c inside b d", "e inside", "f inside none"]);
        assert_eq!(rules.packages, ["a", "b", "c", "d", "e", "f"]);
    }
}
