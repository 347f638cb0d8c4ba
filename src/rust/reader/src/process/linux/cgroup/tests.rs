use super::*;
use crate::process::Scripted;

/// Writes a file below the scripted folder.
fn write(system: &Scripted, name: &str, text: &str) {
    let file = system.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// Mounts the group `root` of each type of file system.
fn mounted(system: &Scripted, mounts: &[(&str, &str, &str, &str)]) {
    let lines = mounts.iter().map(|(root, folder, kind, options)| {
        let folder = system.path().join(folder);
        let folder = folder.display();
        format!("35 31 0:32 {root} {folder} rw,relatime shared:9 - {kind} {kind} {options}\n")
    });
    write(system, "self/mountinfo", &lines.collect::<String>());
}

#[test]
fn version_2_has_the_lowest_limit_of_all_groups_around() {
    let system = Scripted::new("cgroup-2");
    mounted(&system, &[("/", "fs", "cgroup2", "rw")]);
    write(&system, "7/cgroup", "0::/batch/job\n");
    for (folder, limit, used, highest, kills) in [
        ("fs/batch/job", "max", 300, "350", 2),
        ("fs/batch", "1000", 900, "950", 3),
    ] {
        write(&system, &format!("{folder}/memory.max"), limit);
        write(
            &system,
            &format!("{folder}/memory.current"),
            &format!("{used}\n"),
        );
        write(&system, &format!("{folder}/memory.peak"), highest);
        let events = format!("low 0\nhigh 0\nmax 9\noom 1\noom_kill {kills}\noom_group_kill 0\n");
        write(&system, &format!("{folder}/memory.events"), &events);
    }
    let group = Cgroup::of(7).unwrap().unwrap();
    let limit = |bytes, used, highest| {
        Some(MemoryLimit {
            bytes,
            used,
            highest,
        })
    };
    assert_eq!(group.limit(), limit(1000, 900, Some(950)));
    assert!(group.limit().is_some_and(|limit| limit.is_near()));
    // What the kernel would drop first does not count when the limit is near.
    write(
        &system,
        "fs/batch/memory.stat",
        "anon 700\nfile 200\ninactive_file 150\n",
    );
    assert_eq!(group.limit(), limit(1000, 750, Some(950)));
    assert!(group.limit().is_some_and(|limit| !limit.is_near()));
    assert_eq!(group.kills(), Some(2));
    // Older kernels do not know the highest use.
    write(&system, "fs/batch/job/memory.max", "500\n");
    fs::remove_file(system.path().join("fs/batch/job/memory.peak")).unwrap();
    assert_eq!(group.limit(), limit(500, 300, None));
    write(&system, "fs/batch/job/memory.max", "max\n");
    write(&system, "fs/batch/memory.max", "max\n");
    assert_eq!(group.limit(), None);
}

#[test]
fn version_1_shows_a_container_its_own_group_only() {
    let system = Scripted::new("cgroup-1");
    let mounts = [
        ("/", "unified", "cgroup2", "rw"),
        ("/docker/12", "cpu", "cgroup", "rw,cpu,cpuacct"),
        ("/docker/12", "memory", "cgroup", "rw,memory"),
    ];
    mounted(&system, &mounts);
    write(&system, "unified/cgroup.procs", "");
    write(&system, "memory/memory.limit_in_bytes", "2000\n");
    write(&system, "memory/memory.usage_in_bytes", "1500\n");
    write(&system, "memory/memory.max_usage_in_bytes", "1999\n");
    write(
        &system,
        "memory/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n",
    );
    write(
        &system,
        "7/cgroup",
        "5:cpu,cpuacct:/docker/12\n4:memory:/docker/12\n0::/\n",
    );
    let group = Cgroup::of(7).unwrap().unwrap();
    let expected = MemoryLimit {
        bytes: 2000,
        used: 1500,
        highest: Some(1999),
    };
    assert_eq!((group.limit(), group.kills()), (Some(expected), Some(4)));
    write(
        &system,
        "memory/memory.limit_in_bytes",
        "9223372036854771712\n",
    );
    assert_eq!(group.limit(), None);
    // Another container cannot be seen.
    write(&system, "8/cgroup", "4:memory:/docker/13\n0::/\n");
    assert_eq!(Cgroup::of(8).unwrap(), None);
}

#[test]
fn without_control_groups_there_are_no_limits() {
    let system = Scripted::new("cgroup-none");
    assert_eq!(Cgroup::of(7).unwrap(), None);
    assert_eq!((kills_on_machine(), memory_of_machine()), (None, None));
    mounted(&system, &[("/", "fs", "cgroup2", "rw")]);
    // The outermost group has no limit, and a group outside of the namespace is not seen.
    for (path, folder) in [("/", "fs/cgroup.procs"), ("/../other", "fs/memory.max")] {
        write(&system, "7/cgroup", &format!("0::{path}\n"));
        write(&system, folder, "");
        assert_eq!(Cgroup::of(7).unwrap(), None, "{path}");
    }
    for broken in ["", "0", "::", "4:memory", "4:memory:/\n0::", "\u{0}:x:y"] {
        write(&system, "7/cgroup", broken);
        assert_eq!(Cgroup::of(7).unwrap(), None, "{broken}");
    }
}

#[test]
fn what_is_left_is_the_least_of_the_group_and_the_machine() {
    let system = Scripted::new("cgroup-left");
    assert_eq!(memory_left(), None);
    write(
        &system,
        "meminfo",
        "MemTotal: 2000 kB\nMemAvailable: 100 kB\n",
    );
    assert_eq!(memory_left(), Some(102_400));
    mounted(&system, &[("/", "fs", "cgroup2", "rw")]);
    write(
        &system,
        &format!("{}/cgroup", std::process::id()),
        "0::/job\n",
    );
    write(&system, "fs/job/memory.events", "oom_kill 0\n");
    for (limit, expected) in [(1000, 600), (400, 0), (900_000, 102_400)] {
        write(&system, "fs/job/memory.max", &format!("{limit}\n"));
        write(&system, "fs/job/memory.current", "400\n");
        assert_eq!(memory_left(), Some(expected));
    }
}

#[test]
fn the_machine_has_figures_of_its_own() {
    let system = Scripted::new("cgroup-machine");
    write(
        &system,
        "vmstat",
        "nr_free_pages 1\noom_kill 3\noom_killer 4\n",
    );
    write(
        &system,
        "meminfo",
        "MemTotal:  2000 kB\nMemFree: 1 kB\nMemAvailable:   100 kB\n",
    );
    assert_eq!(kills_on_machine(), Some(3));
    assert_eq!(memory_of_machine(), Some((2_048_000, 102_400)));
    write(&system, "meminfo", "MemTotal: 99999999999999999999 kB\n");
    assert_eq!(memory_of_machine(), None);
}

#[test]
fn throttling_of_a_group_and_those_around_it_is_added() {
    let system = Scripted::new("cgroup-throttled");
    mounted(&system, &[("/", "fs", "cgroup2", "rw")]);
    write(&system, "7/cgroup", "0::/batch/job\n");
    let stat = |time: u32| format!("usage_usec 9\nnr_throttled 3\nthrottled_usec {time}\n");
    write(&system, "fs/batch/job/cpu.stat", &stat(8_000_000));
    write(&system, "fs/batch/cpu.stat", &stat(500));
    write(&system, "fs/cpu.stat", "usage_usec 9\n");
    let group = Throttling::of(7).unwrap().unwrap();
    assert_eq!(group.time(), Some(8_000_500_000));
    // One without a limit.
    write(&system, "fs/batch/job/cpu.stat", "usage_usec 9\n");
    write(&system, "fs/batch/cpu.stat", "");
    assert_eq!(group.time(), None);
    assert!(Throttling::of(8).unwrap().is_none());
    drop(system);

    let system = Scripted::new("cgroup-throttled-1");
    mounted(&system, &[("/job", "cpu", "cgroup", "rw,cpu,cpuacct")]);
    write(&system, "7/cgroup", "4:cpu,cpuacct:/job\n0::/\n");
    write(&system, "cpu/cpu.stat", "nr_periods 5\nthrottled_time 77\n");
    assert_eq!(Throttling::of(7).unwrap().unwrap().time(), Some(77));
}
