use super::*;
use crate::testing::{add_chunk, beginning, checked, last_error, spooled};

#[test]
fn a_forwarder_is_started_and_its_results_are_counted() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    let settings = Settings {
        target: b"secret".to_vec(),
        command: b"/bin/sh\0-c\0echo '100% broken'; echo $A\0".to_vec(),
        environment: b"A=1\0".to_vec(),
    };
    let mut forward = Forward::new(settings, now);
    add_chunk(&state, 3, 1, now);
    add_chunk(&state, 4, 2, now.after(1.0));
    add_chunk(&state, 5, 3, now.after(2.0));
    forward.step(&state, now);
    while forward.has_child() {
        thread::yield_now();
    }
    assert_eq!(fs::read(folder.join("target")).unwrap(), b"secret");
    assert_eq!(fs::read(folder.join("log")).unwrap(), b"100% broken\n1\n");
    assert_eq!(checked(&state).waiting.chunks, 3);
    let mut files = fs::read_dir(&*folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .map(|path| path.with_extension("").with_extension(""))
        .collect::<Vec<_>>();
    files.sort();
    for (file, outcome) in files.iter().zip(["sent", "refused", "sent-300"]) {
        fs::rename(file.with_extension("otlp.gz"), file.with_extension(outcome)).unwrap();
    }
    fs::write(folder.join("report"), "http://a: HTTP 503").unwrap();
    forward.step(&state, now.after(0.9));
    assert_eq!(checked(&state).waiting.chunks, 3);
    forward.step(&state, now.after(1.0));
    let counts = checked(&state);
    assert_eq!(
        (
            counts.moves.sent,
            counts.moves.refused,
            counts.moves.rejected
        ),
        (8, 4, 300)
    );
    assert_eq!(last_error(&state), "http://a: HTTP 503");
    assert!(!forward.is_unavailable && forward.is_done(&state));
    // It has ended without having been there.
    forward.step(&state, now.after(20.0));
    assert_eq!(
        last_error(&state),
        "The forwarder did not start: 100% broken 1."
    );
    state.leave(false, now);
    assert!(!folder.exists());
}

#[test]
fn a_forwarder_that_cannot_be_started_is_an_error() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    let settings = Settings {
        target: Vec::new(),
        command: b"/no/such/program\0".to_vec(),
        environment: Vec::new(),
    };
    Forward::new(settings, now).step(&state, now);
    let error = last_error(&state);
    assert!(
        error.starts_with("The forwarder cannot be started: "),
        "{error}"
    );
    state.leave(false, now);
    assert!(!folder.exists());
}
