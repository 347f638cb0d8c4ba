//! Files that are the text which R makes of a function of a package, such as `<stats::lm>`, because the package was
//! installed without source references; and files that stand for byte code whose function is not known yet, such as
//! `<bytecode: 0123456789abcdef>`. Lines of these are positions in the code with this digest.

use crate::error::Result;
use crate::limits::memory::written;

const CODE: &str = "<bytecode: ";
/// The number of digits of a digest.
const DIGITS: usize = 16;

/// The file that stands for the code with this digest.
pub fn file_of_code(digest: u64) -> Result<String> {
    written(format_args!("{CODE}{digest:016x}>"))
}

/// The digest of the code for which a file stands.
pub fn code_of_file(file: &str) -> Option<u64> {
    let digits = file.strip_prefix(CODE)?.strip_suffix('>')?;
    let is_digest = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_digest)
}

/// Whether a file is such a text, or stands for code.
///
/// Lines of these come second: where a sample is in the user's own source files is more important. And they say nothing
/// about the package of a frame, since a promise of one function runs in frames of others.
pub fn is_deparsed(file: &str) -> bool {
    let name = file
        .strip_prefix('<')
        .and_then(|file| file.strip_suffix('>'));
    let parts = name.and_then(|name| name.split_once("::"));
    code_of_file(file).is_some()
        || parts.is_some_and(|(package, function)| {
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
    fn files_of_code_have_its_digest() {
        for digest in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let file = file_of_code(digest).unwrap();
            assert_eq!(code_of_file(&file), Some(digest));
            assert!(is_deparsed(&file));
        }
        for file in [
            "<bytecode: 123>",
            "<bytecode: 0123456789abcdefa>",
            "<bytecode: +123456789abcdef>",
            "<bytecode: 0x55d5c8a0b1c2>",
            "bytecode: 0123456789abcdef",
        ] {
            assert_eq!(code_of_file(file), None, "{file}");
            assert!(!is_deparsed(file), "{file}");
        }
    }

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
