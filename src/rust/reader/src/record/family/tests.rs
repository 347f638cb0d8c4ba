use super::*;
use crate::process::{EXECUTES, Entry, Scripted};
use profile_core::message;
use std::cell::Cell;
use std::fs;

#[test]
fn members_are_children_and_workers_of_all() {
    let system = Scripted::new("members");
    let add = |entry: Entry| drop(system.add(&entry));
    let on = |port: u16| format!("R --args PORT={port}");
    let (first, second) = (on(11122), on(11123));
    add(Entry {
        pid: 10,
        started: 100,
        command: "R",
        children: "11 ",
        ports: &[11122],
        ..Entry::default()
    });
    add(Entry {
        pid: 11,
        started: 200,
        command: "R",
        is_fork: true,
        ..Entry::default()
    });
    // A worker that has a worker, and another one that nothing but its name shows.
    add(Entry {
        pid: 12,
        started: 200,
        command: &first,
        ports: &[11123],
        ..Entry::default()
    });
    for (pid, command) in [(13, second.as_str()), (14, "R"), (15, "R")] {
        add(Entry {
            pid,
            started: 300,
            command,
            ..Entry::default()
        });
    }
    let members = members(10, &[14]).unwrap();
    assert_eq!(members.pids, [10, 14, 11, 12, 13]);
    let roles = members.roles.into_iter().flatten().collect::<Vec<_>>();
    let expected = [
        "master",
        "worker 1 of 2",
        "fork of 10",
        "worker 2 of 2",
        "worker 1 of 1",
    ];
    assert_eq!(roles, expected);
    assert_eq!(members.left_out, 0);
}

/// As mirai and crew start them: a dispatcher in the background, which waits for the workers.
#[test]
fn workers_of_a_dispatcher_are_those_of_its_master() {
    let system = Scripted::new("dispatcher");
    let add = |pid, command, children, ports, names| {
        system.add(&Entry {
            pid,
            started: 100,
            command,
            children,
            ports,
            names,
            ..Entry::default()
        });
    };
    add(10, "R", "13 ", &[], &["ffb0331b4473bf32"]);
    let dispatcher =
        "R -e mirai::dispatcher(\"abstract://ffb0331b4473bf32\",url=\"tcp://127.0.0.1:0\",n=0)";
    add(11, dispatcher, "", &[38095], &[]);
    let daemon = "R -e mirai::daemon(\"tcp://127.0.0.1:38095\",dispatcher=TRUE)";
    add(12, daemon, "", &[], &[]);
    let crew = "R -e crew::crew_worker(settings~+~=~+~list(url~+~=~+~\"tcp://127.0.0.1:38095\"))";
    add(13, crew, "", &[], &[]);
    let members = members(10, &[]).unwrap();
    let roles = members.roles.into_iter().flatten();
    let found = members.pids.into_iter().zip(roles).collect::<Vec<_>>();
    let mut expected = [
        (10, "master"),
        (11, "dispatcher"),
        (12, "worker 2 of 2"),
        (13, "worker 1 of 2"),
    ];
    expected.sort_by_key(|(pid, _)| found.iter().position(|(other, _)| other == pid));
    assert_eq!(found, expected.map(|(pid, role)| (pid, role.to_owned())));
}

#[test]
fn there_are_not_too_many_members() {
    let system = Scripted::new("many");
    let children = (11..=10 + MOST as i32 + 3).map(|pid| pid.to_string());
    let children = children.collect::<Vec<_>>().join(" ");
    for (pid, children) in [(10, children.as_str())]
        .into_iter()
        .chain(children.split(' ').map(|pid| (pid.parse().unwrap(), "")))
    {
        system.add(&Entry {
            pid,
            started: 100,
            command: "R",
            children,
            ..Entry::default()
        });
    }
    let members = members(10, &[]).unwrap();
    assert_eq!((members.pids.len(), members.left_out), (MOST + 1, 3));
}

#[test]
fn nothing_is_searched_until_there_is_another_process() {
    let system = Scripted::new("settled");
    let set_last = |pid: i32| {
        let text = message!("0.10 0.20 0.30 1/90 {pid}\n");
        fs::write(system.path().join("loadavg"), text).unwrap();
    };
    let add = |pid, children| {
        system.add(&Entry {
            pid,
            started: 100,
            command: "R",
            children,
            ..Entry::default()
        });
    };
    add(10, "");
    set_last(10);
    let master = Process::find(10).unwrap();
    let mut family = Family::default();
    family.admit(master.clone(), Role::Named(10)).unwrap();
    let now = Cell::new(Instant::now());
    let mut find = || {
        let found = family.find(vec![master.clone()], now.get()).unwrap();
        found
            .into_iter()
            .map(|found| found.0.pid)
            .collect::<Vec<_>>()
    };
    assert_eq!(find(), [0; 0]);
    add(10, "11");
    add(11, "");
    assert_eq!(find(), [0; 0]);
    set_last(11);
    // As long as it is neither recorded nor passed over, the search goes on.
    assert_eq!([find(), find()], [[11], [11]]);
}

/// A family of process 10, and what its search finds after some milliseconds: each process with R is admitted, and
/// others are passed over.
fn found_after(family: &mut Family, begin: Instant, time: u64) -> Vec<(i32, Role)> {
    let now = begin + Duration::from_millis(time);
    let master = Process::find(10).unwrap();
    let mut found = Vec::new();
    for (process, role) in family.find(vec![master], now).unwrap() {
        if process.has_r() {
            found.push((process.pid, role));
            family.admit(process, role).unwrap();
        } else {
            family.pass_over(process, now).unwrap();
        }
    }
    found
}

#[test]
fn a_process_that_executes_r_is_found_again() {
    let system = Scripted::new("executes");
    let set_last = |pid: i32| {
        let text = message!("0.10 0.20 0.30 1/90 {pid}\n");
        fs::write(system.path().join("loadavg"), text).unwrap();
    };
    let run = |pid, started, execution, command, is_fork| {
        system.add(&Entry {
            pid,
            started,
            command,
            execution,
            is_fork,
            children: if pid == 10 { "11" } else { "" },
            ..Entry::default()
        });
    };
    set_last(11);
    run(10, 50, 0, "R", false);
    run(11, 100, 0, "R", true);
    let begin = Instant::now();
    let mut family = Family::default();
    let master = Process::find(10).unwrap();
    family.admit(master, Role::Named(10)).unwrap();
    assert_eq!(found_after(&mut family, begin, 0), [(11, Role::Fork(10))]);
    assert_eq!(found_after(&mut family, begin, 20), []);
    // It executes a shell, which its recording notices, and that R after a long time.
    run(11, 100, EXECUTES, "R", false);
    family.forget(11);
    assert_eq!(found_after(&mut family, begin, 40), []);
    run(11, 100, 2 << 20, "sh", false);
    for time in (60..20_000).step_by(500) {
        assert_eq!(found_after(&mut family, begin, time), []);
    }
    run(11, 100, 3 << 20, "R --file=a.R", false);
    assert_eq!(
        found_after(&mut family, begin, 20_600),
        [(11, Role::Child(10))]
    );
    // R once more, as another role, without a new process in the system.
    assert_eq!(found_after(&mut family, begin, 20_610), []);
    run(11, 100, 4 << 20, "R -f /tmp/Rtmp1/callr-scr-2", false);
    assert_eq!(found_after(&mut family, begin, 20_620), []);
    assert_eq!(
        found_after(&mut family, begin, 21_120),
        [(11, Role::Callr(10))]
    );
    // Another process with its number.
    system.remove(11);
    assert_eq!(found_after(&mut family, begin, 22_000), []);
    run(11, 300, 4 << 20, "R --file=b.R", false);
    assert_eq!(
        found_after(&mut family, begin, 23_000),
        [(11, Role::Child(10))]
    );
    assert_eq!(found_after(&mut family, begin, 24_000), []);
}

#[test]
fn r_that_is_starting_for_long_is_not_given_up() {
    let system = Scripted::new("starting");
    let add = |pid, started, children| {
        system.add(&Entry {
            pid,
            started,
            command: "R",
            children,
            ..Entry::default()
        });
    };
    add(10, 50, "11");
    // An old process, which has executed R just now.
    add(11, 60, "");
    let begin = Instant::now();
    let mut family = Family::default();
    let master = Process::find(10).unwrap();
    family.admit(master.clone(), Role::Named(10)).unwrap();
    let mut is_found = |time| {
        let now = begin + Duration::from_millis(time);
        let found = family.find(vec![master.clone()], now).unwrap();
        for (process, _) in &found {
            family.pass_over(process.clone(), now).unwrap();
        }
        !found.is_empty()
    };
    assert_eq!([0, 20, 4_980, 5_020].map(&mut is_found), [true; 4]);
    assert_eq!([5_040, 60_000].map(&mut is_found), [false; 2]);
}

/// A process may be found by its variable before it is seen as a child.
#[test]
fn a_process_with_the_variable_has_the_role_of_its_program() {
    let system = Scripted::new("variable");
    for (pid, command, variables) in [
        (10, "R", ""),
        (11, "R -f /tmp/Rtmp1/callr-scr-2", "PROFILE_RECORDING=1\0"),
        (
            12,
            "R -e mirai::daemon(\"tcp://127.0.0.1:1\")",
            "PROFILE_RECORDING=1\0",
        ),
        (13, "R -f work.R", "PROFILE_RECORDING=1\0"),
        (14, "R -f work.R", "PROFILE_RECORDING=2\0"),
    ] {
        system.add(&Entry {
            pid,
            started: 100,
            command,
            variables,
            ..Entry::default()
        });
    }
    let master = Process::find(10).unwrap();
    let mut family = Family::of(master, "PROFILE_RECORDING=1".into());
    assert_eq!(
        found_after(&mut family, Instant::now(), 0),
        [
            (11, Role::Callr(10)),
            (12, Role::Worker(10)),
            (13, Role::Child(10))
        ]
    );
}
