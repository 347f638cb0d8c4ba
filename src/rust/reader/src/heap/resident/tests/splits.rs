//! Rows of address spaces.

use super::{K, M, add_pages, divided, one, split, texts, with_glibc};
use crate::heap::resident::Pool;
use crate::heap::resident::regions::Region;
use crate::heap::resident::split::{ARENA, Claim, Owner};
use crate::heap::tests::Random;

#[test]
fn regions_have_the_names_of_what_they_are() {
    let mut all = divided(&[
        "1000 8 r--p 8 /usr/bin/R",
        "3000 8 r-xp 8 /usr/bin/R",
        "5000 8 rw-p 8 /usr/bin/R|Anonymous: 4 kB",
        "7000 8 rw-p 8",
        "100000 64 rw-p 64 [heap]",
        "7f0000000000 16 r-xp 12 /usr/lib/libR.so (deleted)",
        "7f0000004000 4 rw-p 4 /usr/lib/libR.so (deleted)|Anonymous: 4 kB",
        "7f0000100000 16 r--p 16 /usr/lib/locale/locale-archive",
        "7f0000200000 16 rw-s 16 /dev/shm/block",
        "7f0000300000 16 rw-s 16 /memfd:arrow (deleted)",
        "7f0000400000 16 rw-s 16 /SYSV00000000 (deleted)",
        "7f0000500000 16 rw-s 16 /dev/zero (deleted)",
        "7f0000600000 16 rw-s 16 /data/table.feather",
        "7f0000700000 16 rw-p 16 [anon: glibc: malloc]",
        "7ffc00000000 132 rw-p 20 [stack]",
        "7ffc10000000 16 r--p 0 [vvar]",
        "7ffc10004000 8 r-xp 4 [vdso]",
    ]);
    let variables = Claim {
        addresses: 0x5000..0x7800,
        owner: Owner::Variables,
    };
    let found = split(&all, &[], std::slice::from_ref(&variables));
    let expected = [
        "R's stacks/stack 20",
        "libraries/R/code 20",
        "libraries/R/data 6",
        "libraries/[vdso]/code 4",
        "libraries/libR.so/code 12",
        "libraries/libR.so/data 4",
        "mapped files/locale-archive/file 16",
        "mapped files/table.feather/file 16",
        "native memory, used or free/mappings 86",
        "shared memory/SYSV00000000/shared memory 16",
        "shared memory/block/shared memory 16",
        "shared memory/memfd:arrow/shared memory 16",
        "shared memory/zero/shared memory 16",
    ];
    assert_eq!(texts(&found), expected);
    // The order of the claims, and several of one address, do not matter for the sum.
    split(&all, &one(0x7000..0x9000), &[variables.clone(), variables]);
    all.regions.clear();
    assert_eq!(split(&all, &one(0..u64::MAX), &[]).heap, 0);
}

#[test]
fn objects_that_were_never_written_are_not_resident() {
    // A vector of 800 MB with a region of its own.
    let start = 0x7f00_0000_0000;
    let vector = start + 16..start + 16 + 800 * M;
    let heap = &one(vector);
    let found = split(&divided(&["7f0000000000 819204 rw-p 0"]), heap, &[]);
    assert_eq!((found.heap, found.unsure), (0, 0));
    // With its first page, the system says where it is.
    let mut first = divided(&["7f0000000000 819204 rw-p 4"]);
    add_pages(&mut first, start..start + 819_204 * K, |page| page == 0);
    let found = split(&first, heap, &[]);
    assert_eq!((found.heap, found.unsure), (4080, 0));
    // Together with 300 MB of native code, in one region.
    let both = ["7f0000000000 1126404 rw-p 307200"];
    let mut known = divided(&both);
    let end = start + 1_126_404 * K;
    add_pages(&mut known, start..end, |page| {
        page >= (1_126_404 - 307_200) / 4
    });
    let found = split(&known, heap, &[]);
    assert_eq!((found.heap, found.unsure), (0, 0));
    assert_eq!(
        texts(&found),
        ["native memory, used or free/mappings 307200"]
    );
    // If it does not say where, this is only a guess.
    let unknown = divided(&both);
    let found = split(&unknown, heap, &[]);
    assert_eq!((found.heap, found.unsure), (300 * M, 300 * M));
    // Pages of zeros that were only read.
    let mut zeros = divided(&both);
    add_pages(&mut zeros, start..end, |_| true);
    assert_eq!(split(&zeros, heap, &[]).unsure, 1_126_404 * K - 800 * M);
}

#[test]
fn objects_may_be_anywhere() {
    let parts = divided(&[
        "10000 64 rw-p 64",
        "20000 64 rw-p 32",
        "40000 64 rw-p 64 /file",
    ]);
    // Across two regions, in a hole, at its edge, in a file, at the end of the address space.
    let heap = [
        0x1f000..0x21000,
        0x30000..0x31000,
        0x3f000..0x41000,
        u64::MAX - 10..u64::MAX,
    ];
    assert_eq!(split(&parts, &heap, &[]).heap, 4 * K + 4 * K + 4 * K);
    // More than is resident, by overlapping blocks.
    let twice = [0x20000..0x30000, 0x20000..0x30000];
    assert_eq!(split(&parts, &twice, &[]).heap, 32 * K);
}

#[test]
fn free_memory_is_at_most_what_is_resident() {
    let heap = 0x10_0000;
    let lines = ["100000 102400 rw-p 102400 [heap]"];
    let of = |used: u64, free: u64| {
        let all = with_glibc(&lines, used, free, &[]);
        let r = heap..heap + 20 * M;
        texts(&split(&all, &one(r), &[]))
    };
    // 20 MB are R's.
    assert_eq!(
        of(60 * M, 40 * M),
        [
            "free in malloc/free memory 40960",
            "native memory/malloc 40960"
        ]
    );
    // It says that more is free: what was returned to the system.
    assert_eq!(
        of(60 * M, 457 * M),
        [
            "free in malloc/free memory 40960",
            "native memory/malloc 40960"
        ]
    );
    assert_eq!(
        of(60 * M, 10 * M),
        [
            "free in malloc/free memory 10240",
            "native memory/malloc 71680"
        ]
    );
    assert_eq!(of(0, 457 * M), ["free in malloc/free memory 81920"]);
    assert_eq!(of(457 * M, 457 * M), ["native memory/malloc 81920"]);
    assert_eq!(of(u64::MAX, u64::MAX), ["native memory/malloc 81920"]);
    // 10 MB of R's objects are in use, but not resident.
    let mut absent = with_glibc(&["100000 102400 rw-p 92160 [heap]"], 60 * M, 40 * M, &[]);
    add_pages(&mut absent, heap..heap + 100 * M, |page| page >= 2560);
    let found = split(&absent, &one(heap..heap + 20 * M), &[]);
    assert_eq!((found.heap, found.unsure), (10 * M, 0));
    assert_eq!(
        texts(&found),
        [
            "free in malloc/free memory 40960",
            "native memory/malloc 40960"
        ]
    );
}

#[test]
fn arenas_are_of_malloc_and_stacks_follow_guards() {
    let lines = [
        "7f0000000000 1024 rw-p 1024",
        "7f0000100000 64512 ---p 0",
        // What follows an arena is no stack.
        "7f0004000000 132 rw-p 132",
        // A thread's stack, to which the kernel has added a mapping.
        "7f0010000000 4 ---p 0",
        "7f0010001000 8192 rw-p 80",
        "7f0020000000 4 ---p 0",
        "7f0020001000 20480 rw-p 20480",
        // A guard that is far away, and one with a name.
        "7f0030000000 4 ---p 0",
        "7f0030002000 4 rw-p 4",
        "7f0040000000 4 ---p 0 /usr/lib/x.so",
        "7f0040001000 4 rw-p 4",
    ];
    let arena = 0x7f00_0000_0000..0x7f00_0000_0000 + ARENA;
    let mut all = with_glibc(&lines, 256 * K, 768 * K, &one(arena));
    let small = 0x7f00_1000_1000;
    add_pages(&mut all, small..small + 8192 * K, |page| page >= 2028);
    let found = split(&all, &[], &[]);
    let expected = [
        "free in malloc/free memory 768",
        "native memory/malloc 256",
        "native memory/mappings 12428",
        "stacks of threads/stack 8272",
    ];
    assert_eq!(texts(&found), expected);
    assert_eq!(found.unsure, 0);
    // An object of R in the mapping behind the stack ends what may be the stack.
    let vector = 0x7f00_2000_1000 + 2 * M..0x7f00_2000_1000 + 20 * M;
    let found = split(&all, &one(vector), &[]);
    assert_eq!(found.heap, 18 * M);
    assert!(texts(&found).contains(&"stacks of threads/stack 2128".to_owned()));
}

#[test]
fn stacks_with_guards_that_are_no_regions_are_known_by_a_flag() {
    // Two stacks, one after the other, and memory in which nothing says so.
    let all = divided(&[
        "7f0000100000 16384 rw-p 160|VmFlags: rd wr mr mw me ac nh",
        "7f0010100000 8192 rw-p 80|VmFlags: rd wr mr mw me ac",
        "7f0020100000 8192 rw-s 80|VmFlags: rd wr mr mw me nh",
    ]);
    let found = texts(&split(&all, &[], &[]));
    assert!(
        found.contains(&"stacks of threads/stack 160".to_owned()),
        "{found:?}"
    );
}

#[test]
fn stacks_of_r_and_pools_have_rows() {
    let lines = [
        "100000 1024 rw-p 1024 [heap]",
        "7f0000000000 65536 rw-p 4200",
    ];
    let start = 0x7f00_0000_0000;
    let stack = Claim {
        addresses: start..start + 3200 * K,
        owner: Owner::RStacks,
    };
    let pool = |allocator: &str, bytes| Pool {
        package: "arrow".to_owned(),
        allocator: allocator.to_owned(),
        bytes,
    };
    let mut all = with_glibc(&lines, M, 0, &[]);
    add_pages(&mut all, start..start + 64 * M, |page| {
        !(50..16_384 - 1000).contains(&page)
    });
    all.pools = vec![pool("mimalloc", M)];
    let claims = &[stack];
    let expected = [
        "R's stacks/stack 200",
        "native memory/malloc 1024",
        "native memory/mappings 2976",
        "pool of /arrow/mimalloc 1024",
    ];
    assert_eq!(texts(&split(&all, &[], claims)), expected);
    // A pool has memory that is not resident.
    all.pools = vec![pool("mimalloc", u64::MAX)];
    let found = texts(&split(&all, &[], claims));
    assert!(found.contains(&"pool of /arrow/mimalloc 4000".to_owned()));
    all.pools = vec![pool("system", 512 * K)];
    let found = texts(&split(&all, &[], claims));
    assert!(found.contains(&"pool of /arrow/system 512".to_owned()));
    assert!(found.contains(&"native memory/malloc 512".to_owned()));
}

#[test]
fn any_text_has_a_sum() {
    // Random addresses, rights and names, and blocks of R anywhere.
    let mut random = Random::new(7);
    let mut below = |most: u64| random.below(most as usize) as u64;
    let names = [
        "",
        "",
        "",
        "[heap]",
        "[stack]",
        "/lib/x.so",
        "/f",
        "/dev/shm/s",
        "[anon:x]",
    ];
    let rights = ["rw-p", "rw-p", "rw-s", "r-xp", "r--p", "---p"];
    for _ in 0..300 {
        let (mut lines, mut start, mut heap, mut claims) = (Vec::new(), 0x10000, vec![], vec![]);
        for _ in 0..below(12) + 1 {
            start += 4096 * below(3);
            let pages = below(300) + 1;
            let resident = [0, pages, below(pages + 1)][below(3) as usize];
            let rights = rights[below(rights.len() as u64) as usize];
            let name = names[below(names.len() as u64) as usize];
            lines.push(format!(
                "{start:x} {} {rights} {} {name}",
                pages * 4,
                resident * 4
            ));
            let block = start + below(4096 * pages);
            heap.push(block..block + below(1 << 20));
            claims.push(Claim {
                addresses: block..block + below(1 << 16),
                owner: [Owner::RStacks, Owner::Variables][below(2) as usize],
            });
            start += 4096 * pages;
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut all = with_glibc(&lines, below(1 << 21), below(1 << 21), &[]);
        for region in all.regions.clone() {
            if below(2) == 0 {
                let seed = below(1 << 20);
                add_pages(&mut all, region.addresses.clone(), |page| {
                    (page * seed) % 3 == 0
                });
            }
        }
        let overlapping = split(&all, &heap, &claims);
        assert!(overlapping.unsure <= all.regions.iter().map(Region::size).sum());
    }
}
