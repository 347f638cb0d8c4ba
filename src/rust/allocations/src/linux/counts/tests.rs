use super::*;
use std::path::PathBuf;

/// A file that is removed when the test ends.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn temporary(name: &str) -> Temporary {
    let path = std::env::temp_dir().join(format!("counts-{name}-{}", process::id()));
    let _ = std::fs::remove_file(&path);
    Temporary(path)
}

#[test]
fn what_processes_have_counted_is_read() {
    let file = temporary("read");
    let counts = Counts::create(&file.0).unwrap();
    let fork = Who { pid: 7, parent: 5 };
    let one = counts.add(Who::this(), 3, b"a stack").unwrap();
    let two = counts.add(fork, 4, b"another").unwrap();
    counts.set(one, [1, 2, 3, 4, 5, 6, 7], true);
    counts.set(two, [8; VALUES], false);
    counts.explain(two, "x is y");
    counts.explain(two, "x is z");
    counts.complete(one);
    counts.lose();
    assert!(!counts.has_ended());

    let read = Read::open(&file.0).unwrap();
    let [first, second] = read.slots.as_slice() else {
        panic!()
    };
    assert_eq!((read.pid, read.lost), (process::id().into(), 1));
    assert_eq!((first.pid, second.pid, second.parent), (read.pid, 7, 5));
    assert_eq!((first.date, first.values), (3, [1, 2, 3, 4, 5, 6, 7]));
    assert_eq!((first.grows, first.is_complete), (true, true));
    assert_eq!((second.grows, second.is_complete), (false, false));
    assert_eq!(read.stack(first).unwrap().as_deref(), Some(&b"a stack"[..]));
    assert_eq!(read.reason(first).unwrap(), None);
    assert_eq!(read.reason(second).unwrap().as_deref(), Some("x is z"));
    assert!(counts.has_ended());
}

#[test]
fn damaged_files_are_refused_or_have_no_stacks() {
    let file = temporary("damaged");
    let counts = Counts::create(&file.0).unwrap();
    counts.add(Who::this(), 0, b"a stack").unwrap();
    let open = OpenOptions::new().write(true).open(&file.0).unwrap();
    // A text that is not there.
    open.write_all_at(&[0xff; 8], (HEAD + 24) as u64).unwrap();
    let read = Read::open(&file.0).unwrap();
    assert_eq!(read.stack(&read.slots[0]).unwrap(), None);
    // Too many slots.
    open.write_all_at(&[0xff; 8], 8).unwrap();
    assert_eq!(Read::open(&file.0).unwrap().slots.len(), MOST as usize);
    open.write_all_at(b"?", 0).unwrap();
    assert!(Read::open(&file.0).is_err());
    drop(counts);
    open.set_len(100).unwrap();
    assert!(Read::open(&file.0).is_err());
    // It is not replaced.
    assert!(Counts::create(&file.0).is_err());
}
