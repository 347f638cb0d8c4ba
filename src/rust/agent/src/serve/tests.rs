use super::*;
use crate::testing::temporary;
use std::fs;

#[test]
fn a_forwarder_removes_its_folder_at_its_end() {
    let folder = temporary().join("a");
    assert_eq!(serve(&folder, false).unwrap(), "wait");
    fs::write(folder.join("1-2-3-4.otlp.gz"), "").unwrap();
    assert_eq!(serve(&folder, true).unwrap(), "end");
    assert!(folder.exists());
    assert_eq!(serve(&folder, false).unwrap(), "wait");
    fs::remove_file(folder.join("1-2-3-4.otlp.gz")).unwrap();
    assert_eq!(serve(&folder, true).unwrap(), "end");
    assert!(!folder.exists());
}
