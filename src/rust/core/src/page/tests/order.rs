//! Tests orders of so many samples that a page has them as slices.

use super::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// Whole numbers that look random.
fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Samples of 1,000 stacks in random order, each with another value.
fn many(count: usize) -> Profile {
    let names: Vec<String> = (0..1000)
        .map(|i| {
            let letter = |n: u32| char::from_u32('a' as u32 + n).unwrap();
            [i / 100, 10 + i / 10 % 10, i % 10]
                .map(letter)
                .iter()
                .collect()
        })
        .collect();
    let mut state = 1;
    let stacks: Vec<&str> = (0..count)
        .map(|_| names[random(&mut state) as usize % 1000].as_str())
        .collect();
    let mut profile = profile(SourceKind::named("process"), &stacks);
    let bytes: Vec<f64> = (0..count)
        .map(|_| (random(&mut state) % 1_000_000) as f64)
        .collect();
    profile.values.push(values("alloc_size", "bytes", &bytes));
    profile
}

fn order(profile: &Profile) -> Value {
    data(&page(), profile)["order"][0].clone()
}

fn whole_numbers(value: &Value) -> Vec<usize> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|n| n.as_f64().unwrap() as usize).collect()
}

/// The samples and the bytes of each stack in slices that begin at these samples, as the page has them.
type Sums<K> = Vec<BTreeMap<K, (usize, f64)>>;

fn sums_in_page(order: &Value, firsts: &[usize]) -> Sums<usize> {
    let mut bytes = BTreeMap::new();
    let values = &order["values"][1];
    assert_eq!(values["constant"], 0);
    for (sample, value) in undelta(&values["sample"])
        .into_iter()
        .zip(values["value"].as_array().unwrap())
    {
        bytes.insert(sample, value.as_f64().unwrap());
    }
    let mut sums: Sums<usize> = vec![BTreeMap::new(); firsts.len()];
    let mut at = 0;
    for (node, run) in undelta(&order["node"])
        .into_iter()
        .zip(whole_numbers(&order["run"]))
    {
        let slice = firsts.partition_point(|&first| first <= at) - 1;
        let sum = bytes.get(&at).copied().unwrap_or(0.0);
        assert!(
            sums[slice].insert(node, (run, sum)).is_none(),
            "a run for each node"
        );
        at += run;
    }
    sums
}

fn sums_of_samples(profile: &Profile, rows: &[usize], firsts: &[usize]) -> Sums<usize> {
    let mut sums: Sums<usize> = vec![BTreeMap::new(); firsts.len()];
    for (at, &row) in rows.iter().enumerate() {
        let slice = firsts.partition_point(|&first| first <= at) - 1;
        let sum = sums[slice]
            .entry(profile.samples.stack[row].row())
            .or_default();
        sum.0 += 1;
        sum.1 += profile.values[1].column[row];
    }
    sums
}

/// Compares the sums of each slice, without the stack or node they belong to.
fn assert_equal(page: Sums<usize>, samples: Sums<usize>) {
    assert_eq!(page.len(), samples.len());
    let slices = sorted(page).into_iter().zip(sorted(samples));
    for (slice, (page, samples)) in slices.enumerate() {
        let at = page.iter().zip(&samples).position(|(a, b)| a != b);
        let lengths = (page.len(), samples.len());
        assert!(page == samples, "slice {slice}: {lengths:?}, {at:?}");
    }
}

fn sorted<K>(sums: Sums<K>) -> Vec<Vec<(usize, f64)>> {
    let of_slice = |slice: BTreeMap<K, (usize, f64)>| {
        let mut sums: Vec<_> = slice.into_values().collect();
        sums.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        sums
    };
    sums.into_iter().map(of_slice).collect()
}

#[test]
fn few_samples_keep_their_order() {
    let x = many(20_000);
    assert_eq!(order(&x)["slices"], Value::Null);
    checked(&page(), &x);
}

#[test]
fn slices_have_the_sums_of_their_samples() {
    let x = many(1_200_000);
    let html = html(&page(), &x);
    assert!(html.len() < 6_000_000, "{}", html.len());
    let order = order(&x);
    let size = order["slices"]["samples"].as_u64().unwrap() as usize;
    let firsts = undelta(&order["slices"]["first"]);
    assert!(
        firsts.len() > 50 && firsts.len() <= 20_000,
        "{}",
        firsts.len()
    );
    assert_eq!(firsts, (0..1_200_000).step_by(size).collect::<Vec<_>>());
    assert_eq!(
        whole_numbers(&order["run"]).iter().sum::<usize>(),
        1_200_000
    );
    let rows: Vec<usize> = (0..1_200_000).collect();
    assert_equal(
        sums_in_page(&order, &firsts),
        sums_of_samples(&x, &rows, &firsts),
    );
    assert_eq!(order["values"][0]["constant"], 1);
}

#[test]
fn slices_have_equal_times_if_times_are_known() {
    let mut x = many(600_000);
    let step = 1_000_000;
    x.sources[0].period = Some(Period {
        value: step as f64,
        exact: None,
        type_: Some(ValueType {
            name: "wall".to_owned(),
            unit: "nanoseconds".to_owned(),
        }),
    });
    let mut state = 5;
    let mut time = 1_700_000_000_000_000_000;
    // Irregular, many at once for a while, and with a gap of a third of the time.
    let mut times = Vec::new();
    for row in 0..600_000 {
        time += match row {
            100_000..200_000 => step / 10,
            300_000 => 300_000 * step,
            _ => step / 2 + random(&mut state) as i64 % step,
        };
        times.push((row, time));
    }
    x.samples.times = times.clone();
    let order = order(&x);
    let size = order["slices"]["nanoseconds"].as_f64().unwrap() as i64;
    let firsts = undelta(&order["slices"]["first"]);
    assert!(firsts.len() > 50, "{}", firsts.len());
    // A slice begins where the time does not belong to the previous one.
    let number = |row: usize| (i128::from(times[row].1) - i128::from(i64::MIN)) / i128::from(size);
    let expected: Vec<usize> = (0..600_000)
        .filter(|&row| row == 0 || number(row) != number(row - 1))
        .collect();
    assert_eq!(firsts, expected);
    let rows: Vec<usize> = (0..600_000).collect();
    assert_equal(
        sums_in_page(&order, &firsts),
        sums_of_samples(&x, &rows, &firsts),
    );
    // Slices begin at their times, and their samples end before the next slice.
    let known = undelta(&order["times"]["sample"]);
    let [at, each] = ["at", "each"].map(|name| {
        let numbers = order["times"][name].as_array().unwrap().iter();
        numbers.map(|n| n.as_f64().unwrap()).collect::<Vec<_>>()
    });
    let half = step as f64 / 2.0;
    let time_of = |sample: usize, segment: usize| {
        at[segment] + (sample - known[segment]) as f64 * each[segment]
    };
    for (slice, &first) in firsts.iter().enumerate() {
        let recorded = (times[first].1 - times[0].1) as f64;
        let segment = known.partition_point(|&sample| sample <= first) - 1;
        assert!(
            (time_of(first, segment) - recorded).abs() <= half,
            "slice {slice}"
        );
        if let Some(&next) = firsts.get(slice + 1) {
            let begin = (times[next].1 - times[0].1) as f64;
            assert!(
                time_of(next, segment) <= begin + 2.0 * half,
                "slice {slice}"
            );
        }
    }
}

#[test]
fn slices_are_read_as_samples() {
    let x = many(1_200_000);
    let html = html(&page(), &x);
    assert!(order(&x)["slices"].is_object());
    let path = std::env::temp_dir().join(format!("slices-{}.html", std::process::id()));
    let head = "<head>\n<meta name=\"generator\" content=\"profile\">";
    std::fs::write(&path, html.replacen("<head>", head, 1)).unwrap();
    let read = formats::read(Input::File(&path), None, Origin::default(), GO_ON);
    std::fs::remove_file(&path).unwrap();
    let (read, _) = read.unwrap();
    let all: Vec<usize> = (0..1_200_000).collect();
    assert_equal(
        sums_of_samples(&read, &all, &[0]),
        sums_of_samples(&x, &all, &[0]),
    );
}

/// A profile with these sums of memory in use, of which three kinds are recorded.
fn with_levels(bytes: &[f64]) -> Profile {
    let stacks: Vec<&str> = bytes.iter().map(|_| "f").collect();
    let mut x = profile(SourceKind::named("rprof"), &stacks);
    for (name, share) in [("vsize_small", 0.25), ("vsize_large", 0.5), ("nodes", 0.25)] {
        let column: Vec<f64> = bytes.iter().map(|bytes| bytes * share).collect();
        x.values.push(values(name, "bytes", &column));
    }
    x
}

#[test]
fn memory_in_use_is_the_largest_of_each_part() {
    let few = order(&with_levels(&[100.0, 400.0, f64::NAN, 200.0]));
    assert_eq!(few["memory"]["samples"], 1);
    assert_eq!(whole_numbers(&few["memory"]["bytes"]), [100, 400, 0, 200]);
    // 2,500 samples: parts of 3, the last one of 1.
    let many: Vec<f64> = (0..2500).map(|at| f64::from(4 * (at % 11))).collect();
    let many = order(&with_levels(&many));
    assert_eq!(many["memory"]["samples"], 3);
    let bytes = whole_numbers(&many["memory"]["bytes"]);
    assert_eq!(bytes.len(), 834);
    assert_eq!(bytes[..3], [8, 20, 32]);
    assert_eq!(bytes[833], 8);
    assert!(order(&with_levels(&[f64::NAN])).get("memory").is_none());
    assert!(
        order(&profile(SourceKind::named("rprof"), &["f"]))
            .get("memory")
            .is_none()
    );
}
