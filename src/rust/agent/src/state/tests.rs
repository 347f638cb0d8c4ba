use super::*;
use crate::testing::{add_chunk, beginning, checked, spooled};
use profile_core::error::Error;

#[test]
fn every_sample_is_somewhere() {
    let (state, folder) = spooled(1000);
    let now = beginning();
    state.took(true);
    state.add(Err(Error::Memory), now);
    assert_eq!(checked(&state).moves.lost, 1);
    add_chunk(&state, 5, 1, now);
    state.took(false);
    state.missed();
    state.end(Some("panic".into()), now);
    let counts = checked(&state);
    assert_eq!((counts.moves.lost, counts.open, counts.unread), (2, 0, 1));
    assert!(!state.is_empty() && counts.ended);
    state.leave(true, now);
    let counts = checked(&state);
    assert_eq!((counts.moves.lost, counts.taken, counts.cut), (7, 7, 1));
    assert_eq!(counts.last_error.unwrap().0, "panic");
    assert!(state.is_empty() && !folder.exists());
}

#[test]
fn times_are_those_of_the_caller() {
    let (state, _folder) = spooled(1000);
    let now = beginning();
    let moves = |chunks_sent| Moves {
        chunks_sent,
        ..Moves::default()
    };
    state.spool(now, |_| Ok(moves(0)));
    assert_eq!(checked(&state).last_sent, None);
    state.spool(now, |_| Ok(moves(2)));
    state.note("why".into(), now.after(2.0));
    let counts = checked(&state);
    assert_eq!(
        (counts.last_sent, counts.moves.chunks_sent),
        (Some(784_111_747.0), 2)
    );
    assert_eq!(counts.last_error, Some(("why".into(), 784_111_749.0)));
    state.paused(Duration::from_secs(1));
    state.paused(Duration::from_secs(2));
    state.used(5);
    state.used(7);
    let counts = checked(&state);
    assert_eq!((counts.paused, counts.cpu), (Duration::from_secs(3), 7));
    assert!(!state.is_stopped() && state.deadline().is_none());
    state.stop(now.instant);
    assert!(state.is_stopped());
    assert_eq!(state.deadline(), Some(now.instant));
}
