//! Parses the line of a frame.

use memchr::{memchr2, memrchr};

/// A frame; texts are parts of its line.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Frame<'l> {
    pub address: Option<u64>,
    /// Without the offset in the function; `None` if it is unknown.
    pub symbol: Option<&'l [u8]>,
    /// The file that the code is in; `None` if it is unknown.
    pub module: Option<&'l [u8]>,
    pub is_inlined: bool,
}

/// perf writes addresses in this many columns, after a tab; simpleperf writes no tab.
const COLUMNS: usize = 16;
const UNKNOWN: &[u8] = b"[unknown]";

/// Parses a line, with the blanks at its start.
pub fn frame(line: &[u8]) -> Frame<'_> {
    let text = line.trim_ascii();
    let mut frame = Frame::default();
    let mut rest = text;
    if let Some(at) = last_parenthesis(text) {
        let inside = &text[at + 1..text.len() - 1];
        rest = text[..at].trim_ascii_end();
        if inside == b"inlined" {
            frame.is_inlined = true;
        } else if inside != UNKNOWN {
            // `-F +dsoff` adds the offset in the file.
            frame.module = Some(without_offset(inside));
        }
    }
    let end = memchr2(b' ', b'\t', rest).unwrap_or(rest.len());
    let (first, after) = rest.split_at(end);
    let after = after.trim_ascii_start();
    // `-F sym` writes symbols without addresses, and "add" is both a symbol and a number.
    let is_number = || !after.is_empty() || is_address_aligned(line);
    if let Some(address) = hexadecimal(first).filter(|_| is_number()) {
        frame.address = Some(address);
        rest = after;
    }
    let symbol = without_offset(rest);
    frame.symbol = Some(symbol).filter(|symbol| !symbol.is_empty() && *symbol != UNKNOWN);
    frame
}

/// Whether the first word of a line ends where perf's addresses end.
pub fn is_address_aligned(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    let end = memchr2(b' ', b'\t', text).unwrap_or(text.len());
    let tab = usize::from(line.starts_with(b"\t"));
    line.len() - text.len() + end == COLUMNS + tab
}

/// The offset of the last opening parenthesis, if its closing parenthesis ends the text, and if a blank, a tab or
/// nothing precedes it. Modules may contain parentheses: `(/tmp/a (deleted))`.
pub fn last_parenthesis(text: &[u8]) -> Option<usize> {
    if !text.ends_with(b")") {
        return None;
    }
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.checked_sub(1)?,
            _ => continue,
        }
        if depth == 0 {
            let is_start = at == 0 || matches!(text.get(at - 1), Some(b' ' | b'\t'));
            return is_start.then_some(at);
        }
    }
    None
}

pub fn hexadecimal(text: &[u8]) -> Option<u64> {
    let is_number = (1..=COLUMNS).contains(&text.len()) && text.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    u64::from_str_radix(text, 16).ok()
}

/// Whether a byte separates fields.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn without_offset(symbol: &[u8]) -> &[u8] {
    let Some(at) = memrchr(b'+', symbol) else {
        return symbol;
    };
    let is_offset = symbol[at + 1..]
        .strip_prefix(b"0x")
        .is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit));
    if is_offset { &symbol[..at] } else { symbol }
}

/// Whether the code belongs to the kernel.
pub fn is_kernel(frame: &Frame) -> bool {
    const HIGH: u64 = 1 << 63;
    match frame.module {
        Some(module) => {
            let name = module.rsplit(|byte| *byte == b'/').next().unwrap_or(module);
            let is_named = [&b"[kernel"[..], b"[guest.kernel", b"vmlinux"]
                .iter()
                .any(|start| name.starts_with(start));
            let is_loaded = [&b".ko"[..], b".ko.gz", b".ko.xz", b".ko.zst"]
                .iter()
                .any(|end| name.ends_with(end));
            is_named || is_loaded || frame.address >= Some(HIGH)
        }
        // Stacks of code without frame pointers contain numbers that are no addresses.
        None => false,
    }
}

/// The file and the line of `a.c:12`.
pub fn source_line(text: &[u8]) -> Option<(&[u8], i64)> {
    let text = text.trim_ascii();
    let at = memrchr(b':', text)?;
    let line = std::str::from_utf8(&text[at + 1..]).ok()?.parse().ok()?;
    let file = &text[..at];
    (line > 0 && !file.is_empty() && file != b"??").then_some((file, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_different_fields() {
        let of = |line: &'static str| {
            let found = frame(line.as_bytes());
            let text = |bytes: Option<&[u8]>| {
                bytes.map_or("-".to_owned(), |b| String::from_utf8(b.to_vec()).unwrap())
            };
            let inlined = if found.is_inlined { "!" } else { "" };
            let address = found.address.map_or("-".to_owned(), |a| format!("{a:x}"));
            format!(
                "{address} {}{inlined} {}",
                text(found.symbol),
                text(found.module)
            )
        };
        for (line, expected) in [
            (
                "\t            d679 [unknown] (/usr/bin/dash)",
                "d679 - /usr/bin/dash",
            ),
            (
                "\tffffffff8104f45a msr+0xa ([kernel.kallsyms])",
                "ffffffff8104f45a msr [kernel.kallsyms]",
            ),
            (
                "\t             7f0 f(int, (x) y)+0x0 (/a (deleted))",
                "7f0 f(int, (x) y) /a (deleted)",
            ),
            ("\t             7f0 operator+ (m)", "7f0 operator+ m"),
            ("\t             7f0 inner (inlined)", "7f0 inner! -"),
            ("\tadd (m)", "- add m"),
            ("\tadd", "- add -"),
            ("\t             7f0 (m)", "7f0 - m"),
            ("\tmain+0x12 (/a)", "- main /a"),
            ("  7f0 f ([unknown])", "7f0 f -"),
            ("\t               0 [unknown] ([unknown])", "0 - -"),
            ("        10a4\tmult\t(/lib/x.so)", "10a4 mult /lib/x.so"),
            ("            10a4", "10a4 - -"),
            ("\t", "- - -"),
            ("\t)))", "- ))) -"),
            ("\t             7f0 f+0x1 (/a+0x7f0)", "7f0 f /a"),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn the_kernel_is_found_by_its_modules() {
        let of = |line: &'static str| is_kernel(&frame(line.as_bytes()));
        assert!(of("\tffffffff8104f45a f ([kernel.kallsyms])"));
        assert!(of("\tf (/lib/modules/6.1/kernel/fs/ext4.ko.xz)"));
        assert!(of("\tffffffffc04f45a0 f ([nf_tables])"));
        assert!(of("\tf (/usr/lib/debug/boot/vmlinux-6.1)"));
        assert!(!of("\t    7ffc04f45a0 f ([vdso])"));
        assert!(!of("\t            7f0 f (/bin/a)"));
    }

    #[test]
    fn source_lines_have_a_number() {
        assert_eq!(source_line(b"  a:b.c:12"), Some((&b"a:b.c"[..], 12)));
        for text in [
            &b"  libc.so.6[2a]"[..],
            b"  ??:0",
            b"  a.c:0",
            b"",
            b"a.c:-3",
        ] {
            assert_eq!(source_line(text), None);
        }
    }
}
