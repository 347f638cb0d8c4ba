//! Which tables and columns each version has, as data.
//!
//! A column that is called `source_id`, `sample_id`, `location_id` or
//! `function_id` holds ids of the table that is named so, wherever it stands;
//! `mapping_id` and `.mapping_id` those of `.mappings`.
//!
//! Whatever a source says beyond the tables of version "2.0" is kept beside them,
//! by the same rules for each format:
//!
//! - one fact of a row is a column with a leading dot, several are a table with a
//!   leading dot, and neither is there where no source says anything of the kind;
//! - a number that its column cannot hold stands, in decimal, in a column of the
//!   same name and `_exact`. It counts as long as the column has what reading it
//!   gives: so whoever edits the column need not know of the other;
//! - addresses are text, `0x` and hexadecimal digits, since R has no such numbers;
//! - `native_id` is the id that a row had in its file, where those were not 1, 2,
//!   3, ….

use Kind::{Double, Integer, List, Logical, Text};

/// The type of a column, in R's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Integer,
    Double,
    Text,
    List,
    Logical,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Integer => "integer",
            Double => "double",
            Text => "character",
            List => "list",
            Logical => "logical",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [Column],
    /// Columns that are there where they say something.
    pub optional: &'static [Column],
}

impl Table {
    pub fn all_columns(&self) -> impl Iterator<Item = &'static Column> {
        self.columns.iter().chain(self.optional)
    }
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

const META: Table = Table {
    name: "meta",
    columns: &[column("key", Text), column("value", Text)],
    optional: &[],
};
const LOCATIONS: Table = Table {
    name: "locations",
    columns: &[
        column("location_id", Integer),
        column("function_id", Integer),
        column("line", Integer),
    ],
    optional: &[],
};
const FUNCTIONS: Table = Table {
    name: "functions",
    columns: &[
        column("function_id", Integer),
        column("name", Text),
        column("system_name", Text),
        column("filename", Text),
        column("start_line", Integer),
    ],
    optional: &[],
};

/// Version "1.0": one sample type, the stacks in a list column.
pub const V1: &[Table] = &[
    META,
    Table {
        name: "sample_types",
        columns: &[column("type", Text), column("unit", Text)],
        optional: &[],
    },
    Table {
        name: "samples",
        columns: &[column("value", Integer), column("locations", List)],
        optional: &[],
    },
    LOCATIONS,
    FUNCTIONS,
];

/// Version "2.0": flat tables with keys.
pub const V2: &[Table] = &[
    META,
    Table {
        name: "sources",
        columns: &[
            column("source_id", Integer),
            column("source_type", Text),
            column("source_uri", Text),
            column("source_timestamp", Double),
        ],
        optional: &[],
    },
    Table {
        name: "samples",
        columns: &[column("sample_id", Integer), column("source_id", Integer)],
        optional: &[],
    },
    Table {
        name: "sample_values",
        columns: &[
            column("sample_id", Integer),
            column("type", Text),
            column("unit", Text),
            column("value", Double),
        ],
        optional: &[],
    },
    Table {
        name: "sample_locations",
        columns: &[
            column("sample_id", Integer),
            column("depth", Integer),
            column("location_id", Integer),
        ],
        optional: &[],
    },
    LOCATIONS,
    FUNCTIONS,
];

/// What may stand beside the tables of version "2.0": columns with a leading dot
/// of those, and further tables.
pub const DOTTED: &[Table] = &[
    Table {
        name: "sources",
        columns: &[],
        optional: &[
            column(".time_nanos", Text),
            column(".period", Double),
            column(".period_exact", Text),
            column(".period_type", Text),
            column(".period_unit", Text),
            column(".duration_nanos", Double),
            column(".duration_nanos_exact", Text),
            column(".default_type", Text),
            column(".drop_frames", Text),
            column(".keep_frames", Text),
            column(".doc_url", Text),
            column(".memory_profiling", Logical),
            column(".gc_profiling", Logical),
            column(".line_profiling", Logical),
        ],
    },
    Table {
        name: "samples",
        columns: &[],
        optional: &[
            column(".toplevel_filename", Text),
            column(".toplevel_line", Integer),
        ],
    },
    Table {
        name: "sample_values",
        columns: &[],
        optional: &[column(".value_exact", Text)],
    },
    Table {
        name: "locations",
        columns: &[],
        optional: &[
            column(".line_exact", Text),
            column(".column", Integer),
            column(".column_exact", Text),
            column(".inlined", Logical),
            column(".frame_type", Text),
            column(".mapping_id", Integer),
            column(".address", Text),
            column(".is_folded", Logical),
            column(".native_id", Text),
        ],
    },
    Table {
        name: "functions",
        columns: &[],
        optional: &[
            column(".start_line_exact", Text),
            column(".has_name", Logical),
            column(".has_system_name", Logical),
            column(".native_id", Text),
        ],
    },
    MAPPINGS,
    SAMPLE_TYPES,
    FILES,
    LABELS,
    COMMENTS,
    PROBLEMS,
];

/// What of files was mapped into memory; the first is the program itself.
pub const MAPPINGS: Table = Table {
    name: ".mappings",
    columns: &[
        column("mapping_id", Integer),
        column("memory_start", Text),
        column("memory_limit", Text),
        column("file_offset", Text),
        column("filename", Text),
        column("build_id", Text),
        column("has_functions", Logical),
        column("has_filenames", Logical),
        column("has_line_numbers", Logical),
        column("has_inline_frames", Logical),
    ],
    optional: &[column("native_id", Text)],
};

/// The sample types of sources, and what their files call them.
pub const SAMPLE_TYPES: Table = Table {
    name: ".sample_types",
    columns: &[
        column("source_id", Integer),
        column("type", Text),
        column("unit", Text),
        column("recorded", Text),
    ],
    optional: &[],
};

/// The `#File` lines of Rprof runs.
pub const FILES: Table = Table {
    name: ".files",
    columns: &[
        column("source_id", Integer),
        column("number", Integer),
        column("filename", Text),
        column("sample_id", Integer),
    ],
    optional: &[],
};

/// The labels of pprof samples.
pub const LABELS: Table = Table {
    name: ".labels",
    columns: &[
        column("sample_id", Integer),
        column("key", Text),
        column("str", Text),
        column("num", Double),
        column("unit", Text),
    ],
    optional: &[column("num_exact", Text)],
};

/// The comments of sources.
pub const COMMENTS: Table = Table {
    name: ".comments",
    columns: &[column("source_id", Integer), column("comment", Text)],
    optional: &[],
};

/// What was odd in the input; nothing in the core reads it back.
const PROBLEMS: Table = Table {
    name: ".problems",
    columns: &[
        column("source_id", Integer),
        column("line", Double),
        column("byte", Double),
        column("problem", Text),
        column("lost", Logical),
        column("description", Text),
        column("text", Text),
    ],
    optional: &[],
};
