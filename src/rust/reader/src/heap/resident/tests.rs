//! Scripted texts of `smaps`. Whatever they say, the rows and the heap add up to the sum of `Rss`.

use super::pages::Pages;
use super::regions::parse;
use super::rows::Row;
use super::split::{Claim, Split};
use super::{Divided, Glibc, Malloc};
use std::ops::Range;

mod splits;
mod texts;

const K: u64 = 1024;
const M: u64 = K * K;

/// A text of `smaps` with the lines "start size rights Rss name", sizes in kB; further lines after `|`.
fn smaps(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let (line, more) = line.split_once('|').unwrap_or((line, ""));
        let fields: Vec<&str> = line.split(' ').filter(|field| !field.is_empty()).collect();
        let start = u64::from_str_radix(fields[0], 16).unwrap();
        let size: u64 = fields[1].parse().unwrap();
        let name = fields.get(4..).unwrap_or_default().join(" ");
        let end = start + size * K;
        text += &format!("{start:x}-{end:x} {} 00000000 fe:00 {}", fields[2], 7);
        if !name.is_empty() {
            text += &format!("                    {name}");
        }
        text += &format!(
            "\nSize:  {size} kB\nKernelPageSize:  4 kB\nRss:   {} kB\nPss:  1 kB\n",
            fields[3]
        );
        for more in more.split(';').filter(|more| !more.is_empty()) {
            text += &format!("{}\n", more.trim());
        }
        text += "AnonHugePages:         0 kB\nTHPeligible:           0\nVmFlags: rd wr mr mw me \n";
    }
    text
}

fn divided(lines: &[&str]) -> Divided {
    Divided {
        regions: parse(smaps(lines).as_bytes()).unwrap().unwrap(),
        pages: Pages::new(4096),
        ..Divided::default()
    }
}

fn with_glibc(lines: &[&str], used: u64, free: u64, arenas: &[Range<u64>]) -> Divided {
    Divided {
        malloc: Malloc::Glibc(Glibc {
            used,
            free,
            arenas: arenas.to_vec(),
        }),
        ..divided(lines)
    }
}

/// Says of all pages of a part whether they are resident.
fn add_pages(divided: &mut Divided, addresses: Range<u64>, is_present: impl Fn(u64) -> bool) {
    let mut part = divided.pages.begin(addresses.clone()).unwrap();
    for page in addresses.clone().step_by(4096) {
        let word = u64::from(is_present((page - addresses.start) / 4096)) << 63 | 5;
        part.add(&word.to_le_bytes());
    }
    divided.pages.end(part).unwrap();
}

/// Splits, and checks the sum.
fn split(divided: &Divided, heap: &[Range<u64>], claims: &[Claim]) -> Split {
    let split = divided.split(heap.iter().cloned(), claims).unwrap();
    let rows: u64 = split.rows.iter().map(|row| row.bytes).sum();
    assert_eq!(split.heap + rows, divided.sum());
    assert!(split.rows.iter().all(|row| row.bytes > 0));
    split
}

fn texts(split: &Split) -> Vec<String> {
    let text = |row: &Row| {
        let name = row
            .name
            .as_ref()
            .map_or(String::new(), |name| format!("/{name}"));
        format!("{}{name}/{} {}", row.part, row.type_, row.bytes / K)
    };
    split.rows.iter().map(text).collect()
}

/// A block of R's heap.
fn one(block: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(block).collect()
}
