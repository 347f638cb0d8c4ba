//! Names of native functions: demangles names of C++ and Rust, and makes names from files printable.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use std::fmt::{self, Write};

/// The maximum length of a name, mangled or demangled. A mangled name of a few bytes can expand to
/// one that fills the memory.
const LONGEST: usize = 1 << 17;
/// The maximum recursion depth of the parser, whose time can double with every few steps. Of
/// 177,598 names in large libraries, 5 need more.
const DEEPEST: u32 = 64;

/// The printable text of a name in a file.
#[expect(clippy::disallowed_methods, reason = "it is no longer than `LONGEST`")]
pub fn text(bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() || bytes.len() > LONGEST {
        return None;
    }
    let name = String::from_utf8_lossy(bytes);
    Some(name.replace(char::is_control, "\u{fffd}"))
}

/// The demangled name, if this is a mangled name of C++ or Rust.
#[expect(clippy::disallowed_methods, reason = "`Short` limits its length")]
pub fn demangle(name: &str) -> Option<String> {
    let mut short = Short(String::new());
    if name.starts_with("_R") || name.contains("17h") {
        // The alternate form omits the hash.
        let rust = rustc_demangle::try_demangle(name).ok();
        if let Some(rust) = rust {
            write!(short, "{rust:#}").ok()?;
            return Some(short.0);
        }
    }
    if !name.starts_with("_Z") {
        return None;
    }
    // Compilers may split a function and add a suffix with a dot to the names of its parts:
    // `_ZN2ns3hotEv.part.0`. Mangled names contain no dots.
    let plain = name.split('.').next()?;
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .hide_expression_literal_types();
    let limit = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = Symbol::new_with_options(plain, &limit).ok()?;
    symbol.structured_demangle(&mut short, &options).ok()?;
    // Without parameters, the qualifier of the object remains.
    for left_over in [" &&", " &"] {
        if short.0.ends_with(left_over) {
            short.0.truncate(short.0.len() - left_over.len());
        }
    }
    Some(short.0)
}

/// A text of limited length.
struct Short(String);

#[expect(clippy::disallowed_methods, reason = "it is no longer than `LONGEST`")]
impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(name: &str) -> String {
        demangle(name).unwrap_or_else(|| name.to_owned())
    }

    #[test]
    fn names_are_demangled() {
        // The output of c++filt -p, without its annotations of clones and of the types of numbers.
        for (name, expected) in [
            ("_ZN2ns8hot_loopERKSt6vectorIdSaIdEE", "ns::hot_loop"),
            ("_ZN2ns3SumIdE3addEd", "ns::Sum<double>::add"),
            (
                "_ZN2ns12_GLOBAL__N_15countEv",
                "ns::(anonymous namespace)::count",
            ),
            ("_ZN3FooC4Ei", "Foo::Foo"),
            ("_ZN3FooD0Ev", "Foo::~Foo"),
            (
                "_Z5applyISt8functionIFvidEEEvT_",
                "apply<std::function<void (int, double)> >",
            ),
            ("_ZNO2ns3hotEv", "ns::hot"),
            ("_ZN2nsaaERK1aS2_", "ns::operator&&"),
            ("_ZNK2ns1aadEv", "ns::a::operator&"),
            ("_ZNK2ns1acvR1bEv", "ns::a::operator b&"),
            ("_Z3fixILm32EEvv", "fix<32>"),
            ("_ZN2ns3hotEv.part.0", "ns::hot"),
            ("_ZN2ns3hotEv.constprop.0.isra.1", "ns::hot"),
            ("_ZN2ns3hotEv.cold", "ns::hot"),
            // The output of rustfilt.
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_RINvCs1234_7mycrate3fooiE", "mycrate::foo::<isize>"),
            // Names that are not mangled.
            ("R_execMethod", "R_execMethod"),
            ("Rf_eval", "Rf_eval"),
            ("dgemm_", "dgemm_"),
            ("foo.constprop.0", "foo.constprop.0"),
            ("_Z", "_Z"),
            ("_ZN", "_ZN"),
            ("_R", "_R"),
            ("", ""),
        ] {
            assert_eq!(shown(name), expected, "{name}");
        }
    }

    #[test]
    fn short_names_that_stand_for_endless_ones_are_rejected() {
        // Without the limits, this would not end. Each template argument is a pair of the previous one.
        let pairs = |count| {
            let digits = "3456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars().take(count);
            let pairs: String = digits
                .map(|digit| format!("S0_IS{digit}_S{digit}_E"))
                .collect();
            format!("_Z1fI1pI1a1aE{pairs}Evv")
        };
        assert!(demangle(&pairs(5)).is_some_and(|name| name.len() > 300));
        assert_eq!(demangle(&pairs(30)), None);
        let deep = format!("_Z1f{}i", "P".repeat(100_000));
        let nested = format!("_Z1f{}i{}", "1aI".repeat(50_000), "E".repeat(50_000));
        // Each level doubles the time, up to a depth that ends it.
        let ambiguous = (15..40).map(|depth| format!("_ZNcv{}", "T_I".repeat(depth)));
        let rust = format!("_RNvC1a{}", "RR".repeat(50_000));
        for name in [pairs(30), deep, nested, rust].into_iter().chain(ambiguous) {
            assert!(shown(&name).len() <= LONGEST.max(name.len()));
        }
    }

    #[test]
    fn text_is_printable() {
        assert_eq!(text(b"plain"), Some("plain".to_owned()));
        assert_eq!(text(b""), None);
        assert_eq!(text(&[b'a'; LONGEST + 1]), None);
        assert_eq!(
            text(b"a\tb\xff\x7f"),
            Some("a\u{fffd}b\u{fffd}\u{fffd}".to_owned())
        );
    }
}
