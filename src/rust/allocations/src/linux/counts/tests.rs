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
    let [own, other] = [3, 4].map(|date| counts.add_process(date).unwrap());
    let one = counts.add(own, b"a stack").unwrap();
    let two = counts.add(other, b"another").unwrap();
    counts.set(one, [1, 2, 3, 4, 5, 6, 7, 8, 9], true, 10);
    counts.set(two, [8; VALUES], false, 0);
    counts.explain(two, "x is y");
    counts.explain(two, "x is z");
    counts.complete(one);
    let peak = Peak {
        bytes: 1,
        at: 2,
        reached: 3,
        number: 4,
    };
    counts.set_peak(other, peak);
    counts.set_time(own, 11);
    counts.lose();
    assert!(!counts.has_ended());

    let read = Read::open(&file.0).unwrap();
    let ([begin, fork], [first, second]) = (read.processes.as_slice(), read.slots.as_slice())
    else {
        panic!()
    };
    assert_eq!(
        (begin.pid, begin.date, read.lost),
        (process::id().into(), 3, 1)
    );
    assert_eq!((begin.peak, fork.peak), (Peak::default(), peak));
    assert_eq!((begin.time, fork.time), (11, 0));
    assert_eq!((first.process, second.process, first.peak), (0, 1, 10));
    assert_eq!(first.values, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
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
    let own = counts.add_process(0).unwrap();
    counts.add(own, b"a stack").unwrap();
    let open = OpenOptions::new().write(true).open(&file.0).unwrap();
    // A text that is not there.
    open.write_all_at(&[0xff; 8], (SLOTS + 8) as u64).unwrap();
    let read = Read::open(&file.0).unwrap();
    assert_eq!(read.stack(&read.slots[0]).unwrap(), None);
    // Too many slots.
    open.write_all_at(&[0xff; 8], 16).unwrap();
    assert_eq!(
        Read::open(&file.0).unwrap().slots.len(),
        MOST_SLOTS as usize
    );
    open.write_all_at(b"?", 0).unwrap();
    assert!(Read::open(&file.0).is_err());
    drop(counts);
    open.set_len(100).unwrap();
    assert!(Read::open(&file.0).is_err());
    // It is not replaced.
    assert!(Counts::create(&file.0).is_err());
}
