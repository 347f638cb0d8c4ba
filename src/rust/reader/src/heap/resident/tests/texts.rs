//! Texts, whole and damaged.

use super::{K, smaps};
use crate::heap::resident::regions::{Region, parse};

#[test]
fn regions_are_parsed() {
    let text = smaps(&[
        "1000 8 r-xp 4 /usr/lib/R/bin/exec/R|Shared_Clean: 4 kB;Shared_Dirty: 0 kB;Anonymous: 0 kB",
        "8000 16 rw-s 8 /tmp/with two  blanks (deleted)|Swap: 12 kB;Shared_Dirty: 8 kB;Anonymous: 8 kB",
        "f000 4 ---p 0",
    ]);
    let regions = parse(text.as_bytes()).unwrap().unwrap();
    let expected = Region {
        addresses: 0x1000..0x3000,
        may_read: true,
        may_execute: true,
        name: "/usr/lib/R/bin/exec/R".to_owned(),
        resident: 4096,
        with_others: 4096,
        ..Region::default()
    };
    assert_eq!(regions[0], expected);
    assert_eq!((regions[0].file(), regions[0].size()), ("R", 8192));
    assert!(regions[1].is_shared && regions[1].may_write && !regions[1].is_plain());
    assert_eq!(regions[1].file(), "with two blanks");
    assert_eq!((regions[1].swapped, regions[1].anonymous), (12 * K, 8 * K));
    assert!(regions[2].is_guard() && regions[2].is_plain());
}

#[test]
fn texts_that_are_not_whole_are_refused() {
    let text = smaps(&["1000 8 rw-p 4 [heap]", "8000 16 rw-p 8"]);
    let second = text.find("8000-").unwrap();
    let is_whole = |text: &str| parse(text.as_bytes()).unwrap().is_some();
    assert!(is_whole(&text) && is_whole(&text[..second]));
    // Wherever it ends before the size of the second region is known.
    let known = second + text[second..].find("Pss").unwrap();
    for end in second + 1..known {
        assert!(!is_whole(&text[..end]), "{}", &text[second..end]);
    }
    for bad in [
        "",
        "\n",
        "Rss: 4 kB\n",
        "garbage\n",
        "1000-3000 rw-p 00000000 00:00 0\n",
        "3000-1000 rw-p 00000000 00:00 0\nRss: 4 kB\n",
        "1000-3000 rw 00000000 00:00 0\nRss: 4 kB\n",
        "1000-3000 rw-p 00000000 00:00 0\nRss: 4 MB\n",
        "1000-3000 rw-p 00000000 00:00 0\nRss: -4 kB\n",
        "1000-3000 rw-p 00000000 00:00 0\nRss: 18446744073709551615 kB\n",
        // More than it has room for.
        "1000-3000 rw-p 00000000 00:00 0\nRss: 12 kB\n",
        "1000-3000 rw-p 00000000 00:00 0\nRss: 4 kB\nRss: 8 kB\n",
        // Regions overlap, or are in another order.
        "1000-3000 rw-p 00000000 00:00 0\nRss: 4 kB\n2000-4000 rw-p 00000000 00:00 0\nRss: 4 kB\n",
        "4000-5000 rw-p 00000000 00:00 0\nRss: 4 kB\n1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\n",
    ] {
        assert!(!is_whole(bad), "{bad}");
    }
    // What has become a part of another region is counted once.
    let grown = smaps(&[
        "1000 8 rw-p 4",
        "3000 4 rw-p 4",
        "1000 16 rw-p 12",
        "8000 4 rw-p 4",
    ]);
    let regions = parse(grown.as_bytes()).unwrap().unwrap();
    let resident: Vec<u64> = regions.iter().map(|region| region.resident / K).collect();
    assert_eq!(resident, [12, 4]);
    // Names may be any bytes.
    let name = b"1000-3000 r--p 00000000 00:00 9    /tmp/\xff\xfe Rss: 900 kB\nRss: 4 kB\n";
    let regions = parse(name).unwrap().unwrap();
    assert_eq!(regions[0].resident, 4096);
}
