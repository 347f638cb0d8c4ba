//! Tables of attributes, and `.labels`, the attributes of samples.
//!
//! A value is stored as a text, with its type in another column: see
//! [`attribute_value`](crate::attribute_value).

use super::cells::exact_double;
use super::columns::columns;
use super::reading::{EMPTY, Reading, known};
use super::row_table::RowTable;
use super::table::TableInfo;
use crate::attribute_value::AnyValue;
use crate::collections::next_row;
use crate::error::Result;
use crate::limits::memory::{TryGrow, sort_by_key, with_room};
use crate::message;
use crate::model::{
    Attribute, AttributeValue, Label, LocationId, MappingId, Profile, StringId, Strings, ValueKind,
    inexact,
};
use std::borrow::Cow;

/// The row that has an attribute, and the attribute.
type OwnedAttribute = (usize, Attribute);

/// An attribute while it is read: its value may be missing or invalid.
pub struct AttributeDraft {
    owner: usize,
    key: StringId,
    kind: Option<ValueKind>,
    text: Option<StringId>,
    unit: Option<StringId>,
}

macro_rules! attributes {
    (
        $table:literal, $key:ident, $id:literal, $doc:literal, $owner_doc:literal, [$($unit:literal)?],
        $rows:expr, $store:expr
    ) => {
        RowTable {
            info: TableInfo::new($table, $doc),
            columns: columns! {
                (p, a: OwnedAttribute, a: AttributeDraft)
                Reference $id $key(Some(a.0), |row| a.owner = row) $owner_doc;
                Text "key" (Some(a.1.key), |key| a.key = key) "the name of the attribute" .not_na();
                Kind "type" (Some(a.1.value.kind), |kind| a.kind = Some(kind)) "the type of its value";
                Text "value" (Some(a.1.value.text), |text| a.text = Some(text)) "the value, as a text of that type";
                $(Text "unit" (a.1.unit, |unit| a.unit = known(unit)) $unit;)?
            },
            rows: $rows,
            blank: || AttributeDraft {
                owner: 0,
                key: EMPTY,
                kind: None,
                text: None,
                unit: None,
            },
            rules: &[has_value],
            store: $store,
        }
    };
}

pub static RESOURCE_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    ".resource_attributes",
    Resource,
    "resource_id",
    "an attribute of a resource",
    "the resource",
    [],
    |profile| rows_of_all(profile.resources.iter().map(|r| &r.attributes)),
    |reading, rows| give(rows, reading, |p, owner| &mut p.resources[owner].attributes)
);

pub static SCOPE_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    ".scope_attributes",
    Scope,
    "scope_id",
    "an attribute of a scope",
    "the scope",
    [],
    |profile| rows_of_all(profile.scopes.iter().map(|s| &s.attributes)),
    |reading, rows| give(rows, reading, |p, owner| &mut p.scopes[owner].attributes)
);

pub static SOURCE_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    ".source_attributes",
    Source,
    "source_id",
    "an attribute of a source",
    "the source",
    ["the unit of the value"],
    |profile| rows_of_all(profile.sources.iter().map(|s| &s.attributes)),
    |reading, rows| give(rows, reading, |p, owner| &mut p.sources[owner].attributes)
);

pub static MAPPING_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    ".mapping_attributes",
    Mapping,
    "mapping_id",
    "an attribute of a mapping",
    "the mapping",
    ["the unit of the value"],
    |profile| rows_of(
        profile
            .mapping_attributes
            .iter()
            .map(|(id, a)| (id.row(), *a))
    ),
    |reading, rows| {
        let all = &mut reading.profile.mapping_attributes;
        for draft in rows {
            let id = MappingId(next_row(draft.owner, "mappings")?);
            all.try_push((id, draft.finish()))?;
        }
        sort_by_key(all, |(id, _)| *id)
    }
);

pub static LOCATION_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    ".location_attributes",
    Location,
    "location_id",
    "an attribute of a location",
    "the location",
    ["the unit of the value"],
    |profile| rows_of(
        profile
            .location_attributes
            .iter()
            .map(|(id, a)| (id.row(), *a))
    ),
    |reading, rows| {
        let all = &mut reading.profile.location_attributes;
        for draft in rows {
            let id = LocationId(next_row(draft.owner, "locations")?);
            all.try_push((id, draft.finish()))?;
        }
        sort_by_key(all, |(id, _)| *id)
    }
);

/// The attributes of all rows.
fn rows_of_all<'p>(
    lists: impl Iterator<Item = &'p Vec<Attribute>>,
) -> Result<Cow<'p, [OwnedAttribute]>> {
    let lists = lists.enumerate();
    rows_of(lists.flat_map(|(owner, list)| list.iter().map(move |a| (owner, *a))))
}

fn rows_of<'p>(
    attributes: impl Iterator<Item = OwnedAttribute>,
) -> Result<Cow<'p, [OwnedAttribute]>> {
    let mut rows = with_room(attributes.size_hint().0)?;
    for attribute in attributes {
        rows.try_push(attribute)?;
    }
    Ok(Cow::Owned(rows))
}

/// Adds each attribute to the row that has it.
fn give(
    rows: Vec<AttributeDraft>,
    reading: &mut Reading,
    list: fn(&mut Profile, usize) -> &mut Vec<Attribute>,
) -> Result<()> {
    for draft in rows {
        let attributes = list(&mut reading.profile, draft.owner);
        attributes.try_push(draft.finish())?;
    }
    Ok(())
}

impl AttributeDraft {
    fn finish(&self) -> Attribute {
        let value = AttributeValue {
            kind: self.kind.unwrap_or(ValueKind::Empty),
            text: self.text.unwrap_or(EMPTY),
        };
        Attribute {
            unit: self.unit,
            ..Attribute::new(self.key, value)
        }
    }
}

type Broken = Option<(&'static str, String)>;

fn has_value(draft: &AttributeDraft, strings: &Strings) -> Result<Broken> {
    match draft.kind {
        None if draft.text.is_none() => Ok(Some(("type", message!("must not be NA")))),
        _ => broken_value(draft.kind, draft.text, strings),
    }
}

/// Checks that a value has a type and is valid for it.
fn broken_value(
    kind: Option<ValueKind>,
    text: Option<StringId>,
    strings: &Strings,
) -> Result<Broken> {
    let Some(kind) = kind else {
        let rule = || message!("must not be NA if there is a value");
        return Ok(text.map(|_| ("type", rule())));
    };
    if AnyValue::parse(kind, text.map_or("", |text| strings.get(text)))?.is_none() {
        let rule = message!("is not a value of type {}", kind.name());
        return Ok(Some(("value", rule)));
    }
    Ok(None)
}

/// A label while it is read.
pub struct LabelDraft {
    label: Label,
    num: Option<f64>,
    kind: Option<ValueKind>,
    text: Option<StringId>,
}

pub static LABELS: RowTable<Label, LabelDraft> = RowTable {
    info: TableInfo::new(
        ".labels",
        "a label of a sample: a text, a number with a unit, or a value of another type",
    ),
    columns: columns! {
        (p, l: Label, l.label: LabelDraft)
        Reference "sample_id" Sample(l.sample) "the sample";
        Text "key" (l.key) "its name" .not_na();
        Text "str" (l.str) "its text";
        Whole "num" (l.num, |num| {
            l.num = Some(num);
            l.label.num = Some(num as i64);
        })
            "its number";
        Text "unit" (l.unit) "the unit of the number";
        Decimal "num_exact" (l.num.and_then(inexact), |exact| {
            if let Some(exact) = l.num.and_then(|num| exact_double(exact, num)) {
                l.label.num = Some(exact);
            }
        })
            "`num`, if a double cannot represent it" .optional();
        Kind "type" (l.other.map(|value| value.kind), |kind| l.kind = Some(kind))
            "the type of a value that is neither text nor integer, as for attributes" .optional();
        Text "value" (l.other.map(|value| value.text), |text| l.text = Some(text))
            "that value, as a text of its type" .optional();
    },
    rows: |profile| Ok(Cow::Borrowed(&profile.labels)),
    blank: || LabelDraft {
        label: Label::new(0, EMPTY),
        num: None,
        kind: None,
        text: None,
    },
    rules: &[
        |l, strings| broken_value(l.kind, l.text, strings),
        one_value,
    ],
    store: |reading, rows| {
        let labels = &mut reading.profile.labels;
        for draft in rows {
            let text = draft.text.unwrap_or(EMPTY);
            let other = draft.kind.map(|kind| AttributeValue { kind, text });
            labels.try_push(Label {
                other,
                ..draft.label
            })?;
        }
        sort_by_key(labels, |label| label.sample)
    },
};

fn one_value(draft: &LabelDraft, _: &Strings) -> Result<Broken> {
    let several = draft.kind.is_some() && (draft.label.str.is_some() || draft.num.is_some());
    let rule = || message!("must be NA if `str` or `num` has the value");
    Ok(several.then(|| ("type", rule())))
}
