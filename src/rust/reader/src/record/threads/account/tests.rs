use super::*;

const R: i32 = 7;
const MS: u64 = 1_000_000;
const NONE: f64 = 0.0;

/// Adds a reading: the CPU time of the process and of its threads, in milliseconds. The thread 10 * N + M is of library N.
fn add(account: &mut Account, total: u64, tasks: &[(i32, u64)]) -> Vec<i32> {
    let tasks: Vec<Task> = tasks
        .iter()
        .map(|&(id, cpu)| Task { id, cpu: cpu * MS })
        .collect();
    let mut named = Vec::new();
    let name = |ids: &[i32]| {
        named.extend_from_slice(ids);
        Ok(ids.iter().map(|id| format!("lib{}", id / 10)).collect())
    };
    account.add(Some(total * MS), &tasks, R, name).unwrap();
    named
}

/// R's time, those of libraries with the number of threads, and that of threads that have ended, in milliseconds.
fn times(threads: &Threads) -> (f64, Vec<(&str, f64, f64)>, f64) {
    let ms = |time: f64| time / MS as f64;
    let others = threads.others.iter();
    let others = others.map(|one| (one.name.as_str(), one.count, ms(one.cpu)));
    (ms(threads.r), others.collect(), ms(threads.ended))
}

fn end(account: &mut Account) -> Threads {
    account.end(true).unwrap()
}

#[test]
fn the_sum_is_the_time_of_the_process() {
    let mut account = Account::default();
    add(&mut account, 1000, &[(R, 500), (10, 200), (20, 300)]);
    add(
        &mut account,
        1600,
        &[(R, 600), (10, 400), (20, 300), (21, 300)],
    );
    // Thread 21 has ended, and others have begun and ended meanwhile.
    add(
        &mut account,
        2600,
        &[(R, 700), (10, 500), (11, 50), (20, 300)],
    );
    let all = end(&mut account);
    let libraries = vec![("lib1", 2.0, 350.0), ("lib2", 1.0, 300.0)];
    assert_eq!(times(&all), (200.0, libraries, 1600.0 - 200.0 - 650.0));
}

#[test]
fn only_threads_that_compute_are_looked_up_and_only_once() {
    let mut account = Account::default();
    assert!(add(&mut account, 9, &[(R, 5), (10, 2), (20, 2)]).is_empty());
    assert_eq!(add(&mut account, 20, &[(R, 10), (10, 4), (20, 2)]), [10]);
    assert!(add(&mut account, 30, &[(R, 10), (10, 9), (20, 2)]).is_empty());
    assert_eq!(add(&mut account, 40, &[(R, 10), (10, 9), (20, 3)]), [20]);
}

#[test]
fn an_id_that_is_used_again_is_another_thread() {
    let mut account = Account::default();
    add(&mut account, 1000, &[(R, 500), (10, 500)]);
    add(&mut account, 1100, &[(R, 500), (10, 100)]);
    let libraries = vec![("lib1", 1.0, 100.0)];
    assert_eq!(times(&end(&mut account)), (0.0, libraries, NONE));
}

#[test]
fn r_may_run_in_another_thread() {
    let mut account = Account::default();
    let task = |id, cpu| Task { id, cpu: cpu * MS };
    let name = |ids: &[i32]| Ok(vec!["java".to_owned(); ids.len()]);
    for (r, cpu) in [(8, [100, 0]), (8, [150, 80]), (9, [160, 120])] {
        let tasks = [task(8, cpu[0]), task(9, cpu[1])];
        account.add(None, &tasks, r, name).unwrap();
    }
    // Of thread 9, what it used before R, and of thread 8, what it used afterwards.
    let libraries = vec![("java", 1.0, 90.0)];
    assert_eq!(times(&end(&mut account)), (90.0, libraries, NONE));
}

#[test]
fn what_clocks_differ_by_is_no_thread() {
    let mut account = Account::default();
    add(&mut account, 0, &[(R, 0), (10, 0)]);
    // Each thread may be read too late by a tick of the kernel.
    add(&mut account, 1030, &[(R, 500), (10, 500)]);
    assert_eq!(end(&mut account).ended, NONE);
    // But it adds up.
    add(&mut account, 1031, &[(R, 500), (10, 500)]);
    assert_eq!(end(&mut account).ended, (31 * MS) as f64);
    assert_eq!(end(&mut account).ended, NONE);
}

#[test]
fn parts_have_what_was_used_in_them() {
    let mut account = Account::default();
    add(&mut account, 0, &[(R, 0), (10, 0), (11, 0)]);
    add(&mut account, 300, &[(R, 100), (10, 100), (11, 100)]);
    let libraries = vec![("lib1", 2.0, 200.0)];
    assert_eq!(times(&account.end(false).unwrap()).1, libraries);
    assert_eq!(times(&end(&mut account)).1, libraries);
    add(&mut account, 400, &[(R, 150), (10, 150), (11, 100)]);
    let libraries = vec![("lib1", 1.0, 50.0)];
    assert_eq!(times(&end(&mut account)), (50.0, libraries, NONE));
    assert!(end(&mut account).is_r_only());
}

#[test]
fn a_process_that_started_later_counts_whole() {
    let mut account = Account::from_start();
    add(&mut account, 1000, &[(R, 300), (10, 500)]);
    let libraries = vec![("lib1", 1.0, 500.0)];
    assert_eq!(times(&end(&mut account)), (300.0, libraries, 200.0));
}

#[test]
fn a_process_that_has_ended_uses_nothing() {
    let mut account = Account::default();
    add(&mut account, 0, &[(R, 0), (10, 0)]);
    add(&mut account, 200, &[(R, 100), (10, 100)]);
    add(&mut account, 900, &[]);
    let libraries = vec![("lib1", 1.0, 100.0)];
    assert_eq!(times(&end(&mut account)), (100.0, libraries, NONE));
}

#[test]
fn threads_of_this_package_are_left_out() {
    let mut account = Account::default();
    let task = |id, cpu| Task { id, cpu: cpu * MS };
    let name = |_: &[i32]| Ok(vec![OWN.to_owned()]);
    account
        .add(Some(0), &[task(R, 0), task(9, 0)], R, name)
        .unwrap();
    let tasks = [task(R, 100), task(9, 100)];
    account.add(Some(200 * MS), &tasks, R, name).unwrap();
    assert_eq!(times(&end(&mut account)), (100.0, vec![], NONE));
}
