//! Files that are the text which R makes of a function of a package, such as `<stats::lm>`, because the package was
//! installed without source references.

/// Whether a file is such a text.
///
/// Lines of these come second: where a sample is in the user's own source files is more important. And they say nothing
/// about the package of a frame, since a promise of one function runs in frames of others.
pub fn is_deparsed(file: &str) -> bool {
    let name = file
        .strip_prefix('<')
        .and_then(|file| file.strip_suffix('>'));
    let parts = name.and_then(|name| name.split_once("::"));
    parts.is_some_and(|(package, function)| {
        let is_package = |c: char| c.is_ascii_alphanumeric() || c == '.';
        package.starts_with(|c: char| c.is_ascii_alphabetic())
            && package.chars().all(is_package)
            && !function.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_packages_have_the_name_of_their_package() {
        for file in [
            "<stats::lm>",
            "<base::[.data.frame>",
            "<data.table::%>%>",
            "<a::b::c>",
        ] {
            assert!(is_deparsed(file), "{file}");
        }
        for file in [
            "",
            "<>",
            "<f>",
            "<text>",
            "stats::lm",
            "<stats::>",
            "<::lm>",
            "<1::a>",
            "<a b::c>",
            "a::b>",
        ] {
            assert!(!is_deparsed(file), "{file}");
        }
    }
}
