//! The messages of `profile.proto`.
//!
//! For the profile as a whole, and for samples and labels, of which a file may have millions, only
//! the field numbers are declared: these messages are read directly into columns, and written in
//! pieces.

use crate::protobuf::messages::messages;

pub mod profile {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
    pub const DROP_FRAMES: u32 = 7;
    pub const KEEP_FRAMES: u32 = 8;
    pub const TIME_NANOS: u32 = 9;
    pub const DURATION_NANOS: u32 = 10;
    pub const PERIOD_TYPE: u32 = 11;
    pub const PERIOD: u32 = 12;
    pub const COMMENT: u32 = 13;
    pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub const DOC_URL: u32 = 15;
}

pub mod sample {
    pub const LOCATION_ID: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const LABEL: u32 = 3;
}

pub mod label {
    pub const KEY: u32 = 1;
    pub const STR: u32 = 2;
    pub const NUM: u32 = 3;
    pub const NUM_UNIT: u32 = 4;
}

messages! {
    /// The type of a value. Texts are indices into the string table here and below.
    ValueType {
        // Written even if the text is empty, which Go accepts.
        r#type TYPE 1 (int64, optional) Option<i64>,
        unit UNIT 2 (int64, optional) Option<i64>,
    }

    /// A file that was loaded, such as a program or a library.
    Mapping {
        id ID 1 (uint64) u64,
        memory_start MEMORY_START 2 (uint64) u64,
        memory_limit MEMORY_LIMIT 3 (uint64) u64,
        file_offset FILE_OFFSET 4 (uint64) u64,
        filename FILENAME 5 (int64) i64,
        build_id BUILD_ID 6 (int64) i64,
        has_functions HAS_FUNCTIONS 7 (bool) bool,
        has_filenames HAS_FILENAMES 8 (bool) bool,
        has_line_numbers HAS_LINE_NUMBERS 9 (bool) bool,
        has_inline_frames HAS_INLINE_FRAMES 10 (bool) bool,
    }

    /// An address, and the functions at it.
    Location {
        id ID 1 (uint64) u64,
        mapping_id MAPPING_ID 2 (uint64) u64,
        address ADDRESS 3 (uint64) u64,
        /// Innermost first; all except the last one are inlined.
        line LINE 4 (message, repeated) Vec<Line>,
        is_folded IS_FOLDED 5 (bool) bool,
    }

    Line {
        function_id FUNCTION_ID 1 (uint64) u64,
        line LINE 2 (int64) i64,
        column COLUMN 3 (int64) i64,
    }

    Function {
        id ID 1 (uint64) u64,
        name NAME 2 (int64) i64,
        system_name SYSTEM_NAME 3 (int64) i64,
        filename FILENAME 4 (int64) i64,
        start_line START_LINE 5 (int64) i64,
    }
}
