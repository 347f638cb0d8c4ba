//! Which tables and columns each version has, as data.

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
