//! Decodes pages, and compares their data with the samples of the profile.

use super::*;
use crate::analysis::frame_names::shown;
use crate::analysis::packages::package_of;
use crate::io::gzip::Content;
use crate::io::input::Source as Bytes;
use crate::model::{LocationId, StackId, is_summable};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

pub fn html(page: &Page, profile: &Profile) -> String {
    let mut out = Vec::new();
    let losses = page.write(profile, &mut out, GO_ON).unwrap();
    assert!(losses.is_empty());
    String::from_utf8(out).unwrap()
}

/// The text between two texts.
pub fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

pub fn data(page: &Page, profile: &Profile) -> Value {
    let html = html(page, profile);
    let base64 = between(&html, "octet-stream\">", "</script>");
    let gzip = BASE64.decode(base64.as_bytes()).unwrap();
    let mut json = String::new();
    let mut content = Content::new(Bytes::Bytes(&gzip)).unwrap();
    content.read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    let numbers = value.as_array().map(Vec::as_slice).unwrap_or_default();
    numbers.iter().map(|n| n.as_f64().unwrap()).collect()
}

pub fn undelta(value: &Value) -> Vec<usize> {
    let mut sum = 0.0;
    let mut add = |n| {
        sum += n;
        sum as usize
    };
    numbers(value).into_iter().map(&mut add).collect()
}

/// A frame as text: name, file, first line, package, line and kind.
pub type FrameText = String;

pub fn frame_texts(data: &Value) -> Vec<FrameText> {
    let string = |row: &Value| {
        data["strings"][row.as_u64().unwrap() as usize]
            .as_str()
            .unwrap()
    };
    let frames = &data["frames"];
    let count = frames["line"].as_array().unwrap().len();
    (0..count)
        .map(|row| {
            let function = frames["function"][row].as_i64().unwrap();
            let f = usize::try_from(function).unwrap();
            let functions = &data["functions"];
            let [name, file, package] =
                ["name", "file", "package"].map(|c| string(&functions[c][f]));
            format!(
                "{name}|{file}|{}|{package}|{}|{}",
                functions["line"][f],
                frames["line"][row],
                string(&frames["kind"][row])
            )
        })
        .collect()
}

/// The stack of each node, outermost first.
fn node_texts(data: &Value) -> Vec<Vec<FrameText>> {
    let frames = frame_texts(data);
    let depths = undelta(&data["nodes"]["depth"]);
    let frame_of_node = numbers(&data["nodes"]["frame"]);
    assert_eq!((depths[0], frame_of_node[0]), (0, -1.0));
    let mut open: Vec<FrameText> = Vec::new();
    let mut all = vec![Vec::new()];
    for (&depth, &frame) in depths.iter().zip(&frame_of_node).skip(1) {
        assert!(depth >= 1 && depth <= open.len() + 1);
        open.truncate(depth - 1);
        open.push(frames[frame as usize].clone());
        all.push(open.clone());
    }
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "each path is one node");
    all
}

/// The stacks of all samples in the same form.
fn sample_texts(profile: &Profile) -> Vec<Vec<FrameText>> {
    let text = |location: &LocationId| {
        let function = profile.function_of(*location);
        let package = package_of(profile, *location).unwrap_or_default();
        let start = function.map_or(0, |f| f.start_line);
        let shown = shown(profile, *location).unwrap();
        let location = profile.locations.get(*location);
        let kind = profile.frame_type_of(&location).unwrap_or_default();
        let line = location.line_for_r();
        format!(
            "{}|{}|{start}|{package}|{line}|{kind}",
            shown.name, shown.file
        )
    };
    let stack = |id: &StackId| {
        let stack = profile.stacks.get(*id).to_vec().unwrap();
        stack.iter().rev().map(text).collect()
    };
    profile.samples.stack.iter().map(stack).collect()
}

/// Compares the data with sums of the samples, and the order with the samples. Returns the data.
pub fn checked(page: &Page, profile: &Profile) -> Value {
    let data = data(page, profile);
    let nodes = node_texts(&data);
    let stacks = sample_texts(profile);
    let types: Vec<&Values> = profile
        .values
        .iter()
        .filter(|v| is_summable(&v.type_.name, &v.type_.unit))
        .collect();
    assert_eq!(data["types"].as_array().unwrap().len(), types.len());
    type Sums = BTreeMap<(usize, usize, Vec<FrameText>), f64>;
    let mut expected = Sums::new();
    for (row, stack) in stacks.iter().enumerate() {
        for (type_, values) in types.iter().enumerate() {
            let value = values.column[row];
            if !value.is_nan() {
                let key = (profile.samples.source[row].row(), type_, stack.clone());
                *expected.entry(key).or_default() += value;
            }
        }
    }
    expected.retain(|_, sum| *sum != 0.0);
    let mut sums = Sums::new();
    for part in data["values"].as_array().unwrap() {
        let [source, type_] = ["source", "type"].map(|f| part[f].as_u64().unwrap() as usize);
        let rows = undelta(&part["node"]);
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
        for (node, value) in rows.into_iter().zip(numbers(&part["value"])) {
            // There is a part for each set of labels.
            *sums
                .entry((source, type_, nodes[node].clone()))
                .or_default() += value;
        }
    }
    assert_eq!(sums, expected);
    for part in data["order"].as_array().unwrap() {
        let source = part["source"].as_u64().unwrap() as usize;
        let rows: Vec<usize> = (0..stacks.len())
            .filter(|&row| profile.samples.source[row].row() == source)
            .collect();
        let runs = undelta(&part["node"])
            .into_iter()
            .zip(numbers(&part["run"]));
        let order: Vec<_> = runs
            .flat_map(|(node, run)| vec![&nodes[node]; run as usize])
            .collect();
        assert_eq!(
            order,
            rows.iter().map(|&row| &stacks[row]).collect::<Vec<_>>()
        );
        for (type_, values) in types.iter().enumerate() {
            let mut found = part["values"].as_array().unwrap().iter();
            let found = found.find(|v| v["type"] == type_);
            let constant = found.map_or(0.0, |v| v["constant"].as_f64().unwrap());
            let mut written = vec![constant; rows.len()];
            if let Some(found) = found {
                let changed = undelta(&found["sample"]).into_iter();
                for (row, value) in changed.zip(numbers(&found["value"])) {
                    written[row] = value;
                }
            }
            let recorded = rows.iter().map(|&row| values.column[row]);
            let recorded: Vec<f64> = recorded.map(|v| if v.is_nan() { 0.0 } else { v }).collect();
            assert_eq!(written, recorded);
        }
    }
    data
}
