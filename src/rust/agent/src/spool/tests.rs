use super::*;
use crate::testing::{
    add_chunk, again, beginning, checked, files, last_error, rename, scan, spooled,
};
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_chunk_is_a_private_file_whose_name_begins_with_the_time() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    for (time, samples) in [(0.25, 3), (0.5, 4), (1.0, 5)] {
        add_chunk(&state, samples, 1, now.after(time));
    }
    let names = files(&folder);
    for (name, (start, end)) in names.iter().zip([
        ("0784111747250-", "-000000-3.otlp.gz"),
        ("0784111747500-", "-000001-4.otlp.gz"),
        ("0784111748000-", "-000002-5.otlp.gz"),
    ]) {
        assert!(name.starts_with(start) && name.ends_with(end), "{name}");
        let path = folder.join(name);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read(path).unwrap(), [1; 10]);
    }
    let waiting = checked(&state).waiting;
    assert_eq!(
        (waiting.chunks, waiting.samples, waiting.bytes),
        (3, 12, 30)
    );
}

#[test]
fn the_oldest_chunks_are_dropped_but_not_one_that_is_being_sent() {
    let (state, folder) = spooled(35);
    let now = beginning();
    for samples in [1, 2, 4] {
        add_chunk(&state, samples, 1, now);
    }
    let names = files(&folder);
    rename(&folder, &names[0], "sending");
    add_chunk(&state, 8, 4, now);
    let counts = checked(&state);
    assert_eq!((counts.moves.full, counts.waiting.samples), (2, 13));
    // It has been sent, so there is room for another one.
    rename(&folder, &names[0].replace("otlp.gz", "sending"), "sent");
    add_chunk(&state, 16, 5, now);
    let counts = checked(&state);
    assert_eq!((counts.moves.full, counts.moves.sent), (2, 1));
    assert_eq!(counts.waiting.samples, 28);
    // Larger than the spool.
    state.took(false);
    state.add(Ok(vec![0; 36]), now);
    let counts = checked(&state);
    assert_eq!((counts.moves.full, counts.waiting.samples), (31, 0));
    assert!(files(&folder).is_empty());
}

#[test]
fn chunks_that_fill_the_spool_exactly_are_kept() {
    let (state, _folder) = spooled(20);
    let now = beginning();
    for samples in [1, 2] {
        add_chunk(&state, samples, 1, now);
    }
    assert_eq!(checked(&state).moves.full, 0);
    state.took(false);
    state.add(Ok(vec![0; 1]), now);
    let counts = checked(&state);
    assert_eq!((counts.moves.full, counts.waiting.bytes), (1, 11));
}

#[test]
fn what_a_forwarder_has_sent_is_counted_once() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    for samples in [1, 2, 4, 8] {
        add_chunk(&state, samples, 1, now);
    }
    let names = files(&folder);
    for (name, outcome) in names.iter().zip(["sent", "sent-300", "refused", "sending"]) {
        rename(&folder, name, outcome);
    }
    fs::write(folder.join("report"), "http://a: HTTP 400").unwrap();
    scan(&state, now);
    let counts = checked(&state);
    assert_eq!((counts.moves.sent, counts.moves.chunks_sent), (3, 2));
    assert_eq!((counts.moves.rejected, counts.moves.refused), (300, 4));
    assert_eq!((counts.waiting.chunks, counts.last_sent), (1, now.unix()));
    assert_eq!(last_error(&state), "http://a: HTTP 400");
    state.note("other".into(), now);
    scan(&state, now);
    assert_eq!(checked(&state).moves.sent, 3);
    // It was read before.
    assert_eq!(last_error(&state), "other");
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn chunks_of_agents_that_have_ended_are_adopted() {
    let (first, folder) = spooled(1000);
    let now = beginning();
    for samples in [1, 2, 4] {
        add_chunk(&first, samples, 1, now);
    }
    let names = files(&folder);
    rename(&folder, &names[1], "sent");
    rename(&folder, &names[2], "refused");
    // The last one was not completed.
    let incomplete = names[0].replace("-000000-1.otlp.gz", "-000003-8.new");
    fs::write(folder.join(incomplete), "").unwrap();
    for file in [
        "a",
        "1-2-3",
        "1-2-3-4.otlp.gz.bak",
        "1-x-3-4.otlp.gz",
        "1-fffffffffffff-3-4.sent",
    ] {
        fs::write(folder.join(file), "").unwrap();
    }
    // As if the process was killed.
    std::mem::forget(first);
    let second = again(&folder, 1000);
    add_chunk(&second, 16, 2, now.after(1.0));
    scan(&second, now);
    let counts = checked(&second);
    assert_eq!((counts.taken, counts.moves.found), (16, 7));
    assert_eq!((counts.moves.sent, counts.moves.refused), (2, 4));
    assert_eq!(counts.waiting.samples, 17);
    assert_eq!(files(&folder).len(), 7);
}

#[test]
fn what_remains_at_the_end_is_for_the_next_agent() {
    let (first, folder) = spooled(1000);
    let now = beginning();
    add_chunk(&first, 3, 1, now);
    first.leave(false, now);
    assert_eq!(checked(&first).waiting.samples, 3);
    let second = again(&folder, 1000);
    scan(&second, now);
    assert_eq!(checked(&second).moves.found, 3);
    let names = files(&folder);
    assert_eq!(fs::read(folder.join(&names[0])).unwrap(), [1; 10]);
    rename(&folder, &names[0], "sent");
    scan(&second, now);
    second.leave(false, now);
    assert!(!folder.exists());
}

#[test]
fn a_folder_that_was_removed_is_created_again_and_its_chunks_are_lost() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    add_chunk(&state, 3, 1, now);
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    add_chunk(&state, 4, 1, now);
    assert_eq!(files(&folder).len(), 1);
    scan(&state, now);
    // A file that is being renamed may not be found once.
    assert_eq!(checked(&state).moves.lost, 0);
    scan(&state, now);
    let counts = checked(&state);
    assert_eq!((counts.moves.lost, counts.waiting.samples), (3, 4));
}

#[test]
fn a_chunk_that_cannot_be_written_is_lost() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    fs::remove_dir_all(&*folder).unwrap();
    fs::write(&*folder, "").unwrap();
    add_chunk(&state, 3, 1, now);
    assert_eq!(checked(&state).moves.lost, 3);
    let error = last_error(&state);
    assert!(error.contains("must belong to this user"), "{error}");
    fs::remove_file(&*folder).unwrap();
    add_chunk(&state, 4, 1, now);
    assert_eq!(checked(&state).waiting.samples, 4);
}
