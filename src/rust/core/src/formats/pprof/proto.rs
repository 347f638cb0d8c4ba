//! The field numbers of `profile.proto`, one module for each message.

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

pub mod value_type {
    pub const TYPE: u32 = 1;
    pub const UNIT: u32 = 2;
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

pub mod mapping {
    pub const ID: u32 = 1;
    pub const MEMORY_START: u32 = 2;
    pub const MEMORY_LIMIT: u32 = 3;
    pub const FILE_OFFSET: u32 = 4;
    pub const FILENAME: u32 = 5;
    pub const BUILD_ID: u32 = 6;
    pub const HAS_FUNCTIONS: u32 = 7;
    pub const HAS_FILENAMES: u32 = 8;
    pub const HAS_LINE_NUMBERS: u32 = 9;
    pub const HAS_INLINE_FRAMES: u32 = 10;
}

pub mod location {
    pub const ID: u32 = 1;
    pub const MAPPING_ID: u32 = 2;
    pub const ADDRESS: u32 = 3;
    pub const LINE: u32 = 4;
    pub const IS_FOLDED: u32 = 5;
}

pub mod line {
    pub const FUNCTION_ID: u32 = 1;
    pub const LINE: u32 = 2;
    pub const COLUMN: u32 = 3;
}

pub mod function {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const SYSTEM_NAME: u32 = 3;
    pub const FILENAME: u32 = 4;
    pub const START_LINE: u32 = 5;
}
