//! Changes texts line by line.

use super::Random;

/// The separators of the parts of a line, and numbers that readers may not expect.
const SEPARATORS: [&[u8]; 10] = [
    b" ", b"\t", b";", b":", b",", b"  ", b"", b"\"", b"\r", b"\xff",
];
const NUMBERS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"00",
    b"1.5",
    b"-0",
    b"2147483648",
    b"9007199254740993",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1e308",
    b"1e999",
    b"inf",
    b"nan",
    b"0x1f",
];

/// Changes a few lines.
pub fn mutate(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = text
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    for _ in 0..1 + random.below(5) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(11) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[other].clone()),
            2 => lines.swap(at, other),
            // The start of one line with the end of another one.
            3 => {
                let (end, start) = (random.below(lines[at].len() + 1), lines[other].len());
                let rest = lines[other][random.below(start + 1)..].to_vec();
                lines[at].truncate(end);
                lines[at].extend(rest);
            }
            4 if at + 1 < lines.len() => {
                let next = lines.remove(at + 1);
                lines[at].extend(next);
            }
            5 => {
                let end = random.below(lines[at].len() + 1);
                let rest = lines[at].split_off(end);
                lines.insert(at + 1, rest);
            }
            6 => {
                lines[at] = replace(
                    &lines[at],
                    random,
                    |byte| b" \t;:,\"".contains(&byte),
                    &SEPARATORS,
                )
            }
            7 | 8 => {
                lines[at] = replace(&lines[at], random, |byte| byte.is_ascii_digit(), &NUMBERS)
            }
            9 => {
                let long =
                    lines[at].repeat(random.below(2000).min(1 + 20_000 / (lines[at].len() + 1)));
                lines[at] = long;
            }
            _ => {
                lines.truncate(at + 1);
                let end = random.below(lines[at].len() + 1);
                lines[at].truncate(end);
            }
        }
    }
    lines.join(&b'\n')
}

/// The line with one run of bytes of a kind replaced.
fn replace(
    line: &[u8],
    random: &mut Random,
    is_kind: impl Fn(u8) -> bool,
    by: &[&[u8]],
) -> Vec<u8> {
    let starts: Vec<usize> = (0..line.len())
        .filter(|&at| is_kind(line[at]) && (at == 0 || !is_kind(line[at - 1])))
        .collect();
    let Some(&start) = starts.get(random.below(starts.len())) else {
        return line.to_vec();
    };
    let length = line[start..]
        .iter()
        .take_while(|&&byte| is_kind(byte))
        .count();
    let by = by[random.below(by.len())];
    [&line[..start], by, &line[start + length..]].concat()
}
