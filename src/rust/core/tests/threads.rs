//! The number of threads that compression uses. It is a separate test program, since other tests in
//! the same process would have threads of their own.

#![cfg(target_os = "linux")]

use profile_core::io::gzip;
use profile_core::io::save;
use std::fs;

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn compressing_uses_one_more_thread() {
    let before = threads();
    let mut most = before;
    gzip::compress(&mut Vec::new(), |out| {
        for i in 0..64_u8 {
            out.write_all(&[i; 1 << 18]).map_err(save::failed)?;
            most = most.max(threads());
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(most, before + 1);
    // The kernel lists a thread for a moment after it was joined.
    assert!(threads() <= most);
}
