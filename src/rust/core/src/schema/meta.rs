//! `meta`: information about the whole profile. One row contains the version of the tables; users may
//! add other rows, which are not in the model.

use super::column::Column;
use super::columns::columns;
use super::input::{Text, invalid, invalid_column};
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::error::Result;
use crate::limits::memory::owned;
use crate::message;
use std::borrow::Cow;

/// A key and its value.
#[derive(Debug, Clone, Default)]
pub struct MetaRow {
    key: &'static str,
    value: &'static str,
}

const COLUMNS: &[Column<MetaRow>] = columns! {
    (p, m: MetaRow, m: MetaRow)
    OwnText "key" (Some(m.key), _) "what the fact is about" .not_na();
    OwnText "value" (Some(m.value), _) "the fact";
};

const INFO: TableInfo = TableInfo {
    key: &[],
    ..TableInfo::new(
        "meta",
        "a fact about the whole profile; one row has key `version` and value `2.0`",
    )
};

pub static META: RowTable<MetaRow> = RowTable {
    info: INFO,
    columns: COLUMNS,
    rows: |_| {
        Ok(Cow::Borrowed(&[MetaRow {
            key: "version",
            value: "2.0",
        }]))
    },
    blank: MetaRow::default,
    rules: &[],
    store: |_, _| Ok(()),
};

pub static META_V1: RowTable<MetaRow> = RowTable {
    info: INFO,
    columns: COLUMNS,
    rows: |_| {
        Ok(Cow::Borrowed(&[MetaRow {
            key: "version",
            value: "1.0",
        }]))
    },
    blank: MetaRow::default,
    rules: &[],
    store: |_, _| Ok(()),
};

/// The version of the tables, which exactly one row contains.
pub fn check_meta(key: &Text, value: &Text) -> Result<String> {
    let mut found = None;
    for row in 0..key.len() {
        match key.get(row) {
            None => return Err(invalid("meta", "key", row, "must not be NA")),
            Some("version") if found.is_some() => {
                return Err(invalid("meta", "key", row, "duplicate key `version`"));
            }
            Some("version") => found = Some(row),
            Some(_) => {}
        }
    }
    let version = found.and_then(|row| value.get(row));
    match (found, version) {
        (_, Some(version @ ("1.0" | "2.0"))) => owned(version),
        (Some(row), Some(version)) => {
            let rule = message!("unknown version \"{version}\"; supported are \"1.0\" and \"2.0\"");
            Err(invalid("meta", "value", row, rule))
        }
        (row, _) => {
            let rule = "must contain the version under the key `version`";
            Err(match row {
                Some(row) => invalid("meta", "value", row, rule),
                None => invalid_column("meta", Some("value"), rule),
            })
        }
    }
}
