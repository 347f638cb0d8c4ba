//! Which tables and columns each version has, as data.
//!
//! A column that is called `source_id`, `sample_id`, `location_id` or
//! `function_id` holds ids of the table that is named so, wherever it stands.

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
}

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

const META: Table = Table {
    name: "meta",
    columns: &[column("key", Text), column("value", Text)],
};
const LOCATIONS: Table = Table {
    name: "locations",
    columns: &[
        column("location_id", Integer),
        column("function_id", Integer),
        column("line", Integer),
    ],
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
};

/// Version "1.0": one sample type, the stacks in a list column.
pub const V1: &[Table] = &[
    META,
    Table {
        name: "sample_types",
        columns: &[column("type", Text), column("unit", Text)],
    },
    Table {
        name: "samples",
        columns: &[column("value", Integer), column("locations", List)],
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
    },
    Table {
        name: "samples",
        columns: &[column("sample_id", Integer), column("source_id", Integer)],
    },
    Table {
        name: "sample_values",
        columns: &[
            column("sample_id", Integer),
            column("type", Text),
            column("unit", Text),
            column("value", Double),
        ],
    },
    Table {
        name: "sample_locations",
        columns: &[
            column("sample_id", Integer),
            column("depth", Integer),
            column("location_id", Integer),
        ],
    },
    LOCATIONS,
    FUNCTIONS,
];

/// What may stand beside the tables of version "2.0": columns with a leading dot
/// of those, and further tables. They are there where a source says so much.
pub const DOTTED: &[Table] = &[
    Table {
        name: "sources",
        columns: &[
            column(".period", Double),
            column(".period_type", Text),
            column(".period_unit", Text),
            column(".duration_nanos", Double),
            column(".default_type", Text),
            column(".memory_profiling", Logical),
            column(".gc_profiling", Logical),
            column(".line_profiling", Logical),
        ],
    },
    Table {
        name: "samples",
        columns: &[
            column(".toplevel_filename", Text),
            column(".toplevel_line", Integer),
        ],
    },
    FILES,
    LABELS,
    COMMENTS,
    PROBLEMS,
];

/// The `#File` lines of Rprof runs.
pub const FILES: Table = Table {
    name: ".files",
    columns: &[
        column("source_id", Integer),
        column("number", Integer),
        column("filename", Text),
        column("sample_id", Integer),
    ],
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
};

/// The comments of sources.
pub const COMMENTS: Table = Table {
    name: ".comments",
    columns: &[column("source_id", Integer), column("comment", Text)],
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
};
