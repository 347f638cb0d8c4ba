//! The keys, by which tables refer to each other.

/// The keys. Each is the first column of its table, and a column of the same name in another table
/// contains ids of that table. Keys are in an order in which each table follows those to which it
/// refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Resource,
    Scope,
    Source,
    Sample,
    Function,
    Mapping,
    Location,
}

impl Key {
    pub const ALL: [Key; 7] = [
        Key::Resource,
        Key::Scope,
        Key::Source,
        Key::Sample,
        Key::Function,
        Key::Mapping,
        Key::Location,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Key::Resource => "resource_id",
            Key::Scope => "scope_id",
            Key::Source => "source_id",
            Key::Sample => "sample_id",
            Key::Function => "function_id",
            Key::Mapping => "mapping_id",
            Key::Location => "location_id",
        }
    }

    /// The table whose rows it identifies.
    pub const fn table(self) -> &'static str {
        match self {
            Key::Resource => ".resources",
            Key::Scope => ".scopes",
            Key::Source => "sources",
            Key::Sample => "samples",
            Key::Function => "functions",
            Key::Mapping => ".mappings",
            Key::Location => "locations",
        }
    }

    /// The key whose ids the column with this name contains. Required tables refer to optional ones
    /// by columns whose names have a leading dot.
    pub fn from_column(name: &str) -> Option<Key> {
        let key = match name {
            ".mapping_id" | ".scope_id" => &name[1..],
            _ => name,
        };
        Key::ALL.into_iter().find(|k| k.name() == key)
    }

    /// The key that the column contains, and the name of the column as a static text.
    pub fn column(name: &str) -> Option<(&'static str, Key)> {
        let key = Key::from_column(name)?;
        let name = match name {
            ".mapping_id" => ".mapping_id",
            ".scope_id" => ".scope_id",
            _ => key.name(),
        };
        Some((name, key))
    }
}
