//! Which tables and columns each version has, as data.
//!
//! A column that is called `source_id`, `sample_id`, `location_id` or
//! `function_id` holds ids of the table that is named so, wherever it stands;
//! `mapping_id` and `.mapping_id` those of `.mappings`, and likewise for `.resources`
//! and `.scopes`.
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
            column(".profile_id", Text),
            column(".scope_id", Integer),
            column(".dropped_attributes_count", Double),
            column(".original_payload_format", Text),
            column(".original_payload", Text),
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
            column(".timestamp", Double),
            column(".time_nanos", Text),
            column(".trace_id", Text),
            column(".span_id", Text),
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
    RESOURCES,
    RESOURCE_ENTITIES,
    SCOPES,
    Owner::Resource.table(),
    Owner::Scope.table(),
    Owner::Source.table(),
    Owner::Mapping.table(),
    Owner::Location.table(),
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

/// The labels of samples: texts and numbers, as pprof has them, and what else
/// attributes of OpenTelemetry may be.
pub const LABELS: Table = Table {
    name: ".labels",
    columns: &[
        column("sample_id", Integer),
        column("key", Text),
        column("str", Text),
        column("num", Double),
        column("unit", Text),
    ],
    optional: &[
        column("num_exact", Text),
        column("type", Text),
        column("value", Text),
    ],
};

/// The comments of sources.
pub const COMMENTS: Table = Table {
    name: ".comments",
    columns: &[column("source_id", Integer), column("comment", Text)],
    optional: &[],
};

/// What profiles of OpenTelemetry were recorded of.
pub const RESOURCES: Table = Table {
    name: ".resources",
    columns: &[
        column("resource_id", Integer),
        column("schema_url", Text),
        column("dropped_attributes_count", Double),
    ],
    optional: &[],
};

/// What attributes of a resource identify; keys as JSON arrays.
pub const RESOURCE_ENTITIES: Table = Table {
    name: ".resource_entities",
    columns: &[
        column("resource_id", Integer),
        column("schema_url", Text),
        column("type", Text),
        column("id_keys", Text),
        column("description_keys", Text),
    ],
    optional: &[],
};

/// What recorded profiles of OpenTelemetry.
pub const SCOPES: Table = Table {
    name: ".scopes",
    columns: &[
        column("scope_id", Integer),
        column("resource_id", Integer),
        column("name", Text),
        column("version", Text),
        column("schema_url", Text),
        column("dropped_attributes_count", Double),
    ],
    optional: &[],
};

/// What has a table of attributes; that of samples is `.labels`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Resource,
    Scope,
    Source,
    Mapping,
    Location,
}

impl Owner {
    pub const ALL: [Owner; 5] = [
        Owner::Resource,
        Owner::Scope,
        Owner::Source,
        Owner::Mapping,
        Owner::Location,
    ];

    /// The key of its rows.
    pub const fn key(self) -> &'static str {
        match self {
            Owner::Resource => "resource_id",
            Owner::Scope => "scope_id",
            Owner::Source => "source_id",
            Owner::Mapping => "mapping_id",
            Owner::Location => "location_id",
        }
    }

    /// Its own table.
    pub const fn parent(self) -> &'static str {
        match self {
            Owner::Resource => ".resources",
            Owner::Scope => ".scopes",
            Owner::Source => "sources",
            Owner::Mapping => ".mappings",
            Owner::Location => "locations",
        }
    }

    /// Whether its attributes may have a unit.
    pub const fn has_units(self) -> bool {
        !matches!(self, Owner::Resource | Owner::Scope)
    }

    /// The table of its attributes. What each value is, its text and type tell.
    pub const fn table(self) -> Table {
        const fn table(name: &'static str, columns: &'static [Column]) -> Table {
            Table {
                name,
                columns,
                optional: &[],
            }
        }
        macro_rules! columns {
            ($key:expr $(, $unit:expr)?) => {
                const {
                    &[
                        column($key, Integer),
                        column("key", Text),
                        column("type", Text),
                        column("value", Text),
                        $(column($unit, Text),)?
                    ]
                }
            };
        }
        match self {
            Owner::Resource => table(".resource_attributes", columns!("resource_id")),
            Owner::Scope => table(".scope_attributes", columns!("scope_id")),
            Owner::Source => table(".source_attributes", columns!("source_id", "unit")),
            Owner::Mapping => table(".mapping_attributes", columns!("mapping_id", "unit")),
            Owner::Location => table(".location_attributes", columns!("location_id", "unit")),
        }
    }
}

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
