//! Creates random rows of the dictionary, and attributes, for irregular messages (`irregular.rs`).

use super::content::resolved;
use super::message::*;
use super::wire::{double, object};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const EXTREME: [i64; 8] = [0, 1, -1, 7, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN];

// Not NUL, since strings in R cannot contain it.
#[rustfmt::skip]
const TEXTS: [&str; 14] = [
    "main", "read", "f", "g(x)", "", "lib.so", "/usr/lib/日本.so", "naïve", "a b", "line\nfeed", "\u{1}",
    "\"quoted\\", "🙂", "[vdso]",
];

/// Keys for which the semantic conventions do not define a type or the kind of record.
#[rustfmt::skip]
const KEYS: [&str; 9] = [
    "thread.id", "request", "alignment", "bytes", "ключ", "a key", "pprof", "service.name", "x",
];

/// The random number generator (splitmix64), and the dictionary of the message so far.
pub struct Maker {
    state: u64,
    pub layout: Layout,
    pub strict: bool,
    pub d: Value,
    /// The first row with each content, for each table.
    known: BTreeMap<(&'static str, String), i64>,
}

impl Maker {
    pub fn new(seed: u64, layout: Layout, strict: bool) -> Maker {
        let mut maker = Maker {
            state: seed,
            layout,
            strict,
            d: json!({}),
            known: BTreeMap::new(),
        };
        for table in fields("Dictionary") {
            let row = match table.kind {
                "string" => json!(""),
                "Link" if !maker.rarely() => {
                    json!({"traceId": "0".repeat(32), "spanId": "0".repeat(16)})
                }
                _ => json!({}),
            };
            maker.known.insert((table.name, row.to_string()), 0);
            maker.d[table.name] = json!([row]);
        }
        maker
    }

    pub fn any(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.any() % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Whether to break a rule of level "should".
    pub fn rarely(&mut self) -> bool {
        !self.strict && self.chance(6)
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn text(&mut self) -> &'static str {
        self.pick(&TEXTS)
    }

    pub fn extreme(&mut self) -> i64 {
        if self.chance(30) {
            self.any() as i64
        } else {
            self.pick(&EXTREME)
        }
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.any() as u8).collect()
    }

    pub fn hex(&mut self, bytes: u64) -> String {
        HEXLOWER.encode(&self.bytes(bytes))
    }

    pub fn base64(&mut self, bytes: u64) -> String {
        BASE64.encode(&self.bytes(bytes))
    }

    /// Returns the index of a row that has the same content, or adds the row.
    fn row(&mut self, table: &'static str, row: Value) -> i64 {
        let again = self.rarely();
        let key = (table, resolved(&self.d, &row).to_string());
        match self.known.get(&key) {
            Some(0) => 0,
            Some(index) if !again => *index,
            _ => {
                let rows = self.d[table].as_array_mut().unwrap();
                rows.push(row);
                let index = rows.len() as i64 - 1;
                self.known.entry(key).or_insert(index);
                index
            }
        }
    }

    pub fn string(&mut self, text: &str) -> i64 {
        self.row("stringTable", json!(text))
    }

    /// A string, or 0.
    fn string_in(&mut self, percent: u64) -> i64 {
        if self.chance(percent) {
            let text = self.text();
            self.string(text)
        } else {
            0
        }
    }

    pub fn link(&mut self) -> i64 {
        let number = self.below(4) + 1;
        let ids = json!({"traceId": format!("{number:02x}").repeat(16), "spanId": format!("{number:016x}")});
        self.row("linkTable", ids)
    }

    fn function(&mut self) -> i64 {
        let mut function = json!({
            "nameStrindex": self.string_in(100),
            "systemNameStrindex": self.string_in(30),
            "filenameStrindex": self.string_in(50),
            "startLine": self.line(),
        });
        function = object(function);
        if !function
            .as_object()
            .unwrap()
            .keys()
            .any(|name| name.ends_with("Strindex"))
        {
            function["nameStrindex"] = json!(self.string("named"));
        }
        self.row("functionTable", function)
    }

    /// A line or column. They start at 1; 0 is unset.
    fn line(&mut self) -> String {
        let line = if self.rarely() {
            self.extreme()
        } else {
            self.pick(&[0, 0, 1, 2, 40, 1 << 40, i64::MAX])
        };
        line.to_string()
    }

    fn mapping(&mut self) -> i64 {
        let mut attributes = self.attributes();
        let mut ids = Vec::new();
        for kind in ["gnu", "go", "htlhash"] {
            if self.chance(30) {
                ids.push(self.build_id(kind));
            }
        }
        if ids.is_empty() {
            ids.push(self.build_id("gnu"));
        }
        attributes.append(&mut ids);
        for has in [
            "has_functions",
            "has_filenames",
            "has_line_numbers",
            "has_inline_frames",
        ] {
            if self.chance(25) {
                let value = json!({"boolValue": self.chance(70)});
                attributes.push(self.attribute(&format!("pprof.mapping.{has}"), value, ""));
            }
        }
        let start = self.pick(&[0, 0x1000, 1 << 47, u64::MAX - 0xffff]);
        let mapping = json!({
            "memoryStart": start.to_string(),
            "memoryLimit": (start + self.pick(&[0, 0x1000, 0xffff])).to_string(),
            "fileOffset": self.pick(&[0, 0x1000, u64::MAX]).to_string(),
            "filenameStrindex": self.string_in(100),
            "attributeIndices": attributes,
        });
        self.row("mappingTable", object(mapping))
    }

    fn build_id(&mut self, kind: &str) -> i64 {
        let irregular = self.rarely();
        let id = match kind {
            _ if irregular => "no known form",
            "gnu" => self.pick(&["ab", "c89b11207f6479603b0d49bf291c092c2b719293"]),
            "go" => "foh3mEXu7BLZjsN9pOwG/kATcXlYVCDEFouRMQed_",
            _ => "600DCAFE4A110000F2BF38C493F5FB92",
        };
        self.attribute(
            &format!("process.executable.build_id.{kind}"),
            json!({"stringValue": id}),
            "",
        )
    }

    fn location(&mut self) -> i64 {
        let mapping = if self.chance(60) { self.mapping() } else { 0 };
        let row = &self.d["mappingTable"][mapping as usize];
        let [start, limit] = ["memoryStart", "memoryLimit"].map(|name| number(&row[name]) as u64);
        let address = match (start, limit) {
            _ if !self.chance(70) => 0,
            (0, 0) => self.pick(&[1, 0x401000, (1 << 53) + 1, u64::MAX]),
            _ if self.rarely() => self.any(),
            _ => self.pick(&[start, limit, start / 2 + limit / 2]),
        };
        let count = self.pick(&[0, 1, 1, 1, 2, 3]);
        let lines = (0..count).map(|_| {
            let function = if self.chance(90) { self.function() } else { 0 };
            object(json!({"functionIndex": function, "line": self.line(), "column": self.line()}))
        });
        let lines: Value = lines.collect();
        let mut attributes = self.attributes();
        if self.chance(40) {
            let type_ = self.pick(&["native", "r", "cpython", "kernel", "go"]);
            attributes.push(self.attribute(
                "profile.frame.type",
                json!({"stringValue": type_}),
                "",
            ));
        }
        if self.chance(10) {
            let value = json!({"boolValue": self.chance(50)});
            attributes.push(self.attribute("pprof.location.is_folded", value, ""));
        }
        let location = json!({
            "mappingIndex": mapping, "address": address.to_string(), "lines": lines, "attributeIndices": attributes,
        });
        let index = self.row("locationTable", object(location));
        // An empty location is valid, but should not be written.
        if self.strict && index == 0 {
            self.location()
        } else {
            index
        }
    }

    /// Adds a stack. Stacks share locations, and may be recursive.
    pub fn stack(&mut self) -> i64 {
        let count = self.pick(&[0, 1, 2, 3, 5]);
        let locations = (0..count).map(|_| match list(&self.d, "locationTable").len() as u64 {
            known if known > 1 && self.chance(60) => self.below(known - 1) as i64 + 1,
            _ => self.location(),
        });
        let locations: Vec<_> = locations.collect();
        self.row("stackTable", object(json!({"locationIndices": locations})))
    }

    /// Adds attributes with different keys.
    pub fn attributes(&mut self) -> Vec<i64> {
        let keys = self.keys();
        let mut indices: Vec<_> = keys
            .into_iter()
            .map(|key| self.some_attribute(key))
            .collect();
        if self.rarely() {
            indices.push(0);
        }
        indices
    }

    fn keys(&mut self) -> Vec<&'static str> {
        let first = self.below(9);
        let count = self.pick(&[0, 0, 0, 1, 1, 2, 3]);
        (0..count)
            .map(|i| KEYS[(first + i * 4) as usize % 9])
            .collect()
    }

    fn some_attribute(&mut self, key: &str) -> i64 {
        let value = self.value(2);
        let unit = if self.rarely() {
            "µ units"
        } else {
            self.pick(&["", "", "By", "ns", "{request}"])
        };
        self.attribute(key, value, unit)
    }

    pub fn attribute(&mut self, key: &str, value: Value, unit: &str) -> i64 {
        let row = json!({"keyStrindex": self.string(key), "value": value, "unitStrindex": self.string(unit)});
        let index = self.row("attributeTable", object(row));
        // Strings are moved to the table only now: an equal row may contain them inline.
        let place = index as usize;
        let value = self.d["attributeTable"][place]["value"].take();
        let value = self.shared(value);
        let mut row = self.d["attributeTable"][place].take();
        row["value"] = value;
        self.d["attributeTable"][place] = object(row);
        index
    }

    /// Moves some strings of a value to the string table.
    fn shared(&mut self, value: Value) -> Value {
        if self.layout != Layout::V11 {
            return value;
        }
        let items = |name: &str| list(&value[name], "values").to_vec();
        if let Some(text) = value["stringValue"].as_str().filter(|_| self.chance(50)) {
            json!({"stringValueStrindex": self.string(text)})
        } else if value["arrayValue"].is_object() {
            let values: Value = items("arrayValue")
                .into_iter()
                .map(|value| self.shared(value))
                .collect();
            json!({"arrayValue": object(json!({"values": values}))})
        } else if value["kvlistValue"].is_object() {
            let values: Value = items("kvlistValue")
                .into_iter()
                .map(|pair| self.shared_pair(pair))
                .collect();
            json!({"kvlistValue": object(json!({"values": values}))})
        } else {
            value
        }
    }

    pub fn shared_pair(&mut self, pair: Value) -> Value {
        let value = self.shared(pair["value"].clone());
        let key = text(&pair, "key");
        if self.layout == Layout::V11 && self.chance(50) {
            object(json!({"keyStrindex": self.string(key), "value": value}))
        } else {
            object(json!({"key": key, "value": value}))
        }
    }

    pub fn value(&mut self, depth: u32) -> Value {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => json!({}),
            1 => json!({"stringValue": self.text()}),
            2 => json!({"boolValue": self.chance(50)}),
            3 => json!({"intValue": self.extreme().to_string()}),
            4 => {
                let irregular = [
                    f64::NAN,
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    -0.0,
                    0.1,
                    5e-324,
                    f64::MAX,
                    3.0,
                ];
                json!({"doubleValue": double(self.pick(&irregular))})
            }
            5 => {
                let count = self.below(4);
                json!({"bytesValue": self.base64(count)})
            }
            6 => {
                let count = self.below(4);
                let values: Value = (0..count).map(|_| self.value(depth - 1)).collect();
                json!({"arrayValue": object(json!({"values": values}))})
            }
            _ => json!({"kvlistValue": object(json!({"values": self.pairs(depth - 1)}))}),
        }
    }

    /// Key-value pairs with different keys; all strings are inline.
    pub fn pairs(&mut self, depth: u32) -> Vec<Value> {
        let keys = self.keys();
        keys.into_iter()
            .map(|key| object(json!({"key": key, "value": self.value(depth)})))
            .collect()
    }

    /// Adds rows that are not used.
    pub fn orphans(&mut self) {
        for _ in 0..3 {
            match self.below(4) {
                0 => self.d["stringTable"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!("nobody's")),
                1 => drop(self.attributes()),
                2 => drop(self.stack()),
                _ => drop(self.link()),
            }
        }
    }
}
