use super::*;
use crate::testing::temporary;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn folders_are_private() {
    let base = temporary();
    assert!(system::make_private_folder(&base).unwrap());
    let folder = base.join("a");
    let lock = Lock::open(&folder).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join(NAME))), (0o700, 0o600));
    assert!(lock.take(Role::Agent(7)).unwrap() && lock.is_current());
    // The locks of the same process do not count.
    assert!(!lock.is_taken(Role::Agent(7)).unwrap());
    fs::remove_file(folder.join(NAME)).unwrap();
    assert!(!lock.is_current());
    Lock::open(&folder).unwrap();
    assert!(!lock.is_current());
    let open = base.join("b");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o710)).unwrap();
    let link = base.join("c");
    symlink(&folder, &link).unwrap();
    fs::write(base.join("d"), "").unwrap();
    for name in ["b", "c", "d"] {
        assert!(Lock::open(&base.join(name)).is_err(), "{name}");
    }
    fs::remove_dir_all(&base).unwrap();
}

#[test]
fn a_folder_is_removed_when_nobody_needs_it() {
    let folder = temporary().join("a");
    let lock = Lock::open(&folder).unwrap();
    assert!(!lock.remove(|_| true).unwrap());
    assert!(folder.exists());
    assert!(lock.remove(|_| false).unwrap());
    assert!(!folder.parent().unwrap().exists());
    // It is another folder now.
    assert!(!lock.is_current());
    let again = Lock::open(&folder).unwrap();
    assert!(!lock.remove(|_| false).unwrap());
    assert!(again.remove(|_| false).unwrap());
}
