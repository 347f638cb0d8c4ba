use super::*;
use crate::state::{State, Store};
use crate::testing::{add_chunk, beginning, checked, last_error, temporary};
use std::fs;

#[test]
fn each_chunk_is_a_file_and_one_that_cannot_be_written_is_lost() {
    let (path, now) = (temporary(), beginning());
    let name = "my-api".to_owned();
    let folder = Folder::new(path.clone(), name);
    let start = format!(
        "my-api-{}-{:08x}-19941106T084907Z-",
        process::id(),
        folder.id
    );
    let state = State::new(Store::Folder(folder));
    add_chunk(&state, 3, 1, now);
    let error = last_error(&state);
    assert!(error.contains("there is no such file"), "{error}");
    let counts = checked(&state);
    assert_eq!((counts.moves.lost, counts.moves.sent), (3, 0));
    fs::create_dir(&path).unwrap();
    for byte in [1, 2, 3] {
        add_chunk(&state, 1, byte, now);
    }
    let counts = checked(&state);
    assert_eq!((counts.moves.sent, counts.moves.chunks_sent), (3, 3));
    assert_eq!(counts.last_sent, now.unix());
    assert!(state.is_empty());
    let mut files = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect::<Vec<_>>();
    files.sort_by_key(|file| fs::read(file).unwrap());
    assert_eq!(files.len(), 3);
    for (file, byte) in files.iter().zip([1, 2, 3]) {
        assert_eq!(fs::read(file).unwrap(), [byte; 10]);
        let name = file.file_name().unwrap().to_str().unwrap();
        let number = name
            .strip_prefix(&start)
            .and_then(|rest| rest.strip_suffix(".pb.gz"));
        number.unwrap().parse::<u64>().unwrap();
    }
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn agents_with_the_same_process_id_share_a_folder() {
    let (path, now) = (temporary(), beginning());
    fs::create_dir(&path).unwrap();
    let folder = || Folder::new(path.clone(), "my-api".to_owned());
    assert_ne!(folder().id, folder().id);
    // Even if they have drawn the same number: each one counts its files from 0.
    let same = Folder { id: 7, ..folder() };
    let other = Folder { id: 7, ..folder() };
    for round in 0..10 {
        for folder in [&same, &other] {
            NEXT.store(round, Ordering::Relaxed);
            folder.put(&[1], Content::Heap, now).unwrap();
        }
    }
    assert_eq!(fs::read_dir(&path).unwrap().count(), 20);
    fs::remove_dir_all(&path).unwrap();
}
