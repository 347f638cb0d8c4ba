//! Where the memory of processes cannot be read, all functions refuse, and name the platforms where it can.

use profile_core::error::Result;
use profile_reader::heap::resident::Malloc;
use profile_reader::live::{dump, heap_of, list, own_heap, record};
use profile_reader::recorded::settings::{Clock, Settings, Wanted};
use profile_reader::recorded::waits::WaitNames;
use profile_runtime::LIVE_PLATFORMS;
use std::time::Duration;

fn expect_refusal<T>(result: Result<T>) {
    let error = result.err().unwrap();
    assert_eq!(error.class(), "profile_error_unsupported");
    assert!(error.to_string().contains(LIVE_PLATFORMS), "{error}");
}

#[test]
fn processes_are_refused() {
    let pid = std::process::id() as i32;
    expect_refusal(list());
    expect_refusal(dump(pid, &|| false));
    expect_refusal(own_heap(None, None, Vec::new()));
    expect_refusal(heap_of(pid, &Malloc::Unknown, &|| false));
    let settings = Settings {
        interval: Duration::from_millis(10),
        duration: Duration::from_secs(1),
        clock: Clock::Cpu,
        children: false,
        pause: true,
        native: false,
        names: WaitNames::Short,
        own: false,
        positions: false,
    };
    let wanted = Wanted {
        pids: &[pid],
        ..Wanted::default()
    };
    expect_refusal(record(&wanted, &settings, &|| false));
}
