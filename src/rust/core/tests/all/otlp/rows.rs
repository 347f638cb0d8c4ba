//! Creates random rows of the dictionary, and attributes, for irregular messages (`irregular.rs`).

use super::message::*;

pub const EXTREME: [i64; 8] = [0, 1, -1, 7, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN];

const TEXTS: [&str; 14] = [
    "main",
    "read",
    "f",
    "g(x)",
    "",
    "lib.so",
    "/usr/lib/日本.so",
    "naïve",
    "a b",
    "line\nfeed",
    // Not NUL, since strings in R cannot contain it.
    "\u{1}",
    "\"quoted\\",
    "🙂",
    "[vdso]",
];

/// Keys for which the semantic conventions do not define a type or the kind of record.
const KEYS: [&str; 9] = [
    "thread.id",
    "request",
    "alignment",
    "bytes",
    "ключ",
    "a key",
    "pprof",
    "service.name",
    "x",
];

const UNITS: [&str; 5] = ["", "", "By", "ns", "{request}"];

/// The random number generator (splitmix64), and the dictionary of the message so far.
pub struct Maker {
    state: u64,
    pub layout: Layout,
    pub strict: bool,
    pub dictionary: Dictionary,
}

impl Maker {
    pub fn new(seed: u64, layout: Layout, strict: bool) -> Maker {
        let mut maker = Maker {
            state: seed,
            layout,
            strict,
            dictionary: Dictionary::default(),
        };
        let zeros = Link {
            trace_id: vec![0; 16],
            span_id: vec![0; 8],
        };
        maker.dictionary = Dictionary {
            mapping_table: vec![Mapping::default()],
            location_table: vec![Location::default()],
            function_table: vec![Function::default()],
            link_table: vec![if maker.rarely() {
                Link::default()
            } else {
                zeros
            }],
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
        };
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

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.any() as u8).collect()
    }

    /// Returns the index of a row that is equal by value, or adds the row.
    fn row<T, K: PartialEq>(
        &mut self,
        table: fn(&mut Dictionary) -> &mut Vec<T>,
        value: fn(&Dictionary, &T) -> K,
        row: T,
    ) -> i32 {
        let again = self.rarely();
        let wanted = value(&self.dictionary, &row);
        let rows = std::mem::take(table(&mut self.dictionary));
        let found = rows
            .iter()
            .position(|row| value(&self.dictionary, row) == wanted);
        let rows_again = table(&mut self.dictionary);
        *rows_again = rows;
        match found {
            Some(0) => 0,
            Some(index) if !again => index as i32,
            _ => {
                rows_again.push(row);
                rows_again.len() as i32 - 1
            }
        }
    }

    pub fn string(&mut self, text: &str) -> i32 {
        self.row(
            |d| &mut d.string_table,
            |_, text| text.clone(),
            text.to_string(),
        )
    }

    pub fn some_string(&mut self) -> i32 {
        let text = self.text();
        self.string(text)
    }

    pub fn link(&mut self) -> i32 {
        let number = self.below(4) as u8 + 1;
        let link = Link {
            trace_id: vec![number; 16],
            span_id: [0, 0, 0, 0, 0, 0, 0, number].to_vec(),
        };
        self.row(|d| &mut d.link_table, Dictionary::link, link)
    }

    fn function(&mut self) -> i32 {
        let mut function = Function {
            name_strindex: self.some_string(),
            system_name_strindex: if self.chance(30) {
                self.some_string()
            } else {
                0
            },
            filename_strindex: if self.chance(50) {
                self.some_string()
            } else {
                0
            },
            start_line: self.line(),
        };
        if [function.system_name_strindex, function.filename_strindex] == [0, 0]
            && function.name_strindex == 0
        {
            function.name_strindex = self.string("named");
        }
        self.row(|d| &mut d.function_table, Dictionary::function, function)
    }

    /// A line or column. They start at 1; 0 is unset.
    fn line(&mut self) -> i64 {
        if self.rarely() {
            self.extreme()
        } else {
            self.pick(&[0, 0, 1, 2, 40, 1 << 40, i64::MAX])
        }
    }

    fn mapping(&mut self) -> i32 {
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
                let value = AnyValue::Bool(self.chance(70));
                attributes.push(self.attribute(&format!("pprof.mapping.{has}"), value, ""));
            }
        }
        let start = self.pick(&[0, 0x1000, 1 << 47, u64::MAX - 0xffff]);
        let mapping = Mapping {
            memory_start: start,
            memory_limit: start + self.pick(&[0, 0x1000, 0xffff]),
            file_offset: self.pick(&[0, 0x1000, u64::MAX]),
            filename_strindex: self.some_string(),
            attribute_indices: attributes,
        };
        self.row(|d| &mut d.mapping_table, Dictionary::mapping, mapping)
    }

    fn build_id(&mut self, kind: &str) -> i32 {
        let irregular = self.rarely();
        let id = match kind {
            _ if irregular => "no known form",
            "gnu" => self.pick(&["ab", "c89b11207f6479603b0d49bf291c092c2b719293"]),
            "go" => "foh3mEXu7BLZjsN9pOwG/kATcXlYVCDEFouRMQed_",
            _ => "600DCAFE4A110000F2BF38C493F5FB92",
        };
        let key = format!("process.executable.build_id.{kind}");
        self.attribute(&key, AnyValue::String(id.to_string()), "")
    }

    fn location(&mut self) -> i32 {
        let mut location = Location::default();
        if self.chance(60) {
            location.mapping_index = self.mapping();
        }
        let mapping = &self.dictionary.mapping_table[location.mapping_index as usize];
        let (start, limit) = (mapping.memory_start, mapping.memory_limit);
        if self.chance(70) {
            location.address = match (start, limit) {
                (0, 0) => self.pick(&[1, 0x401000, (1 << 53) + 1, u64::MAX]),
                _ if self.rarely() => self.any(),
                _ => self.pick(&[start, limit, start / 2 + limit / 2]),
            };
        }
        for _ in 0..self.pick(&[0, 1, 1, 1, 2, 3]) {
            location.lines.push(Line {
                function_index: if self.chance(90) { self.function() } else { 0 },
                line: self.line(),
                column: self.line(),
            });
        }
        location.attribute_indices = self.attributes();
        if self.chance(40) {
            let type_ = self.pick(&["native", "r", "cpython", "kernel", "go"]);
            let value = AnyValue::String(type_.to_string());
            location
                .attribute_indices
                .push(self.attribute("profile.frame.type", value, ""));
        }
        if self.chance(10) {
            let value = AnyValue::Bool(self.chance(50));
            location
                .attribute_indices
                .push(self.attribute("pprof.location.is_folded", value, ""));
        }
        let index = self.row(|d| &mut d.location_table, Dictionary::location, location);
        // An empty location is valid, but should not be written.
        if self.strict && index == 0 {
            self.location()
        } else {
            index
        }
    }

    /// Adds a stack. Stacks share locations, and may be recursive.
    pub fn stack(&mut self) -> i32 {
        let mut stack = Stack::default();
        for _ in 0..self.pick(&[0, 1, 2, 3, 5]) {
            let location = match self.dictionary.location_table.len() {
                known if known > 1 && self.chance(60) => self.below(known as u64 - 1) as i32 + 1,
                _ => self.location(),
            };
            stack.location_indices.push(location);
        }
        self.row(|d| &mut d.stack_table, Dictionary::stack, stack)
    }

    /// Adds attributes with different keys.
    pub fn attributes(&mut self) -> Vec<i32> {
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

    fn some_attribute(&mut self, key: &str) -> i32 {
        let value = self.value(2);
        let unit = if self.rarely() {
            "µ units"
        } else {
            self.pick(&UNITS)
        };
        self.attribute(key, value, unit)
    }

    pub fn attribute(&mut self, key: &str, value: AnyValue, unit: &str) -> i32 {
        let attribute = KeyValueAndUnit {
            key_strindex: self.string(key),
            value,
            unit_strindex: self.string(unit),
        };
        let index = self.row(|d| &mut d.attribute_table, Dictionary::attribute, attribute);
        // Strings are moved to the table only now: an equal row may contain them inline.
        let table = &mut self.dictionary.attribute_table;
        if index as usize == table.len() - 1 {
            let value = std::mem::take(&mut table[index as usize].value);
            let value = self.shared(value);
            self.dictionary.attribute_table[index as usize].value = value;
        }
        index
    }

    /// Moves some strings of a value to the string table.
    fn shared(&mut self, value: AnyValue) -> AnyValue {
        if self.layout != Layout::V11 {
            return value;
        }
        match value {
            AnyValue::String(text) if self.chance(50) => {
                AnyValue::StringStrindex(self.string(&text))
            }
            AnyValue::Array(v) => AnyValue::Array(v.into_iter().map(|v| self.shared(v)).collect()),
            AnyValue::Kvlist(v) => {
                AnyValue::Kvlist(v.into_iter().map(|v| self.shared_pair(v)).collect())
            }
            value => value,
        }
    }

    pub fn shared_pair(&mut self, mut pair: KeyValue) -> KeyValue {
        if self.layout == Layout::V11 && self.chance(50) {
            pair.key_strindex = self.string(&std::mem::take(&mut pair.key));
        }
        pair.value = self.shared(pair.value);
        pair
    }

    pub fn value(&mut self, depth: u32) -> AnyValue {
        let kinds = if depth == 0 { 6 } else { 8 };
        match self.below(kinds) {
            0 => AnyValue::Empty,
            1 => AnyValue::String(self.text().to_string()),
            2 => AnyValue::Bool(self.chance(50)),
            3 => AnyValue::Int(self.extreme()),
            4 => AnyValue::Double(Double::new(self.double())),
            5 => {
                let count = self.below(4) as usize;
                AnyValue::Bytes(self.bytes(count))
            }
            6 => AnyValue::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => AnyValue::Kvlist(self.pairs(depth - 1)),
        }
    }

    fn double(&mut self) -> f64 {
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
        self.pick(&irregular)
    }

    /// Key-value pairs with different keys; all strings are inline.
    pub fn pairs(&mut self, depth: u32) -> Vec<KeyValue> {
        let keys = self.keys();
        let pairs = keys.into_iter().map(|key| KeyValue {
            key: key.to_string(),
            value: self.value(depth),
            key_strindex: 0,
        });
        pairs.collect()
    }

    /// Adds rows that are not used.
    pub fn orphans(&mut self) {
        for _ in 0..3 {
            match self.below(4) {
                0 => self.dictionary.string_table.push("nobody's".to_string()),
                1 => drop(self.attributes()),
                2 => drop(self.stack()),
                _ => drop(self.link()),
            }
        }
    }
}
