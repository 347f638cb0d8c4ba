use super::*;
use profile_runtime::IS_LIVE;
use std::rc::Rc;

fn usage(used: u64) -> Usage {
    Usage {
        objects: used / 100,
        data: used / 2,
        used,
        free: 7,
    }
}

fn none() -> Figures {
    Figures::new(Box::new(|| None), || None)
}

fn figures_of(figures: &Figures) -> Vec<(&'static str, u64)> {
    figures.in_chunk().collect()
}

#[test]
fn a_chunk_has_the_use_at_its_end_and_the_least_use() {
    let used = Rc::new(Cell::new(0));
    let shared = Rc::clone(&used);
    let look = move || Some(usage(shared.get()));
    let figures = Figures::new(Box::new(look), || Some(99_000));
    for now in [5000, 9000, 2000, 4000] {
        used.set(now);
        figures.look();
    }
    used.set(6000);
    let expected = |used: u64, least| {
        [
            ("profile.heap.used", used),
            ("profile.heap.used.min", least),
            ("profile.heap.free", 7),
            ("profile.heap.objects", used / 100),
            ("profile.heap.data", used / 2),
            ("profile.heap.resident", 99_000),
        ]
    };
    assert_eq!(figures_of(&figures), expected(6000, 2000));
    // The next chunk has its own.
    used.set(8000);
    assert_eq!(figures_of(&figures), expected(8000, 8000));
}

#[test]
fn what_is_unknown_has_no_figure() {
    assert_eq!(figures_of(&none()), []);
    let figures = Figures::new(Box::new(|| None), || Some(1));
    assert_eq!(figures_of(&figures), [("profile.heap.resident", 1)]);
    let of_this_process = figures_of(&Figures::current(None));
    if IS_LIVE {
        assert!(matches!(
            of_this_process[..],
            [("profile.heap.resident", 1..)]
        ));
    } else {
        assert_eq!(of_this_process, []);
    }
}
