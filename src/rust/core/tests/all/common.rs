//! Shared by tests of tables: writes a profile as tables in memory.

use crate::memory_tables::MemoryTables;
use profile_core::model::Profile;
use profile_core::schema::{TABLES, Version};

pub fn go_on() -> bool {
    false
}

pub fn tables(profile: &Profile) -> MemoryTables {
    let mut tables = MemoryTables::default();
    for table in TABLES {
        table
            .write(profile, Version::Two, &mut tables, &go_on)
            .unwrap();
    }
    tables
}
