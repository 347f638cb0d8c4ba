//! Tables of attributes, and `.labels`, the attributes of samples.
//!
//! A value is stored as a text, with its type in another column: see
//! [`attribute_value`](crate::attribute_value).

use super::cells::exact_double;
use super::column::Column;
use super::key::Key;
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

type AttributeColumn = Column<OwnedAttribute, AttributeDraft>;
type LabelColumn = Column<Label, LabelDraft>;

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
        $key:expr, $name:literal, $doc:literal, $owner_doc:literal, [$($unit:expr)?],
        $rows:expr, $store:expr
    ) => {
        RowTable {
            info: TableInfo::new($name, $doc),
            columns: &[
                AttributeColumn::reference(
                    $key.name(),
                    $key,
                    $owner_doc,
                    |_, (owner, _)| Some(*owner),
                    |a, row| a.owner = row,
                ),
                AttributeColumn::text(
                    "key",
                    "the name of the attribute",
                    |_, (_, a)| Some(a.key),
                    |a, key| a.key = key,
                )
                .not_na(),
                AttributeColumn::kind(
                    "type",
                    "the type of its value",
                    |_, (_, a)| Some(a.value.kind),
                    |a, kind| a.kind = Some(kind),
                ),
                AttributeColumn::text(
                    "value",
                    "the value, as a text of that type",
                    |_, (_, a)| Some(a.value.text),
                    |a, text| a.text = Some(text),
                ),
                $($unit)?
            ],
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

const UNIT: AttributeColumn = AttributeColumn::text(
    "unit",
    "the unit of the value",
    |_, (_, a)| a.unit,
    |a, unit| a.unit = known(unit),
);

pub static RESOURCE_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    Key::Resource,
    ".resource_attributes",
    "an attribute of a resource",
    "the resource",
    [],
    |profile| rows_of_all(profile.resources.iter().map(|r| &r.attributes)),
    |reading, rows| give(rows, reading, |p, owner| &mut p.resources[owner].attributes)
);

pub static SCOPE_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    Key::Scope,
    ".scope_attributes",
    "an attribute of a scope",
    "the scope",
    [],
    |profile| rows_of_all(profile.scopes.iter().map(|s| &s.attributes)),
    |reading, rows| give(rows, reading, |p, owner| &mut p.scopes[owner].attributes)
);

pub static SOURCE_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    Key::Source,
    ".source_attributes",
    "an attribute of a source",
    "the source",
    [UNIT],
    |profile| rows_of_all(profile.sources.iter().map(|s| &s.attributes)),
    |reading, rows| give(rows, reading, |p, owner| &mut p.sources[owner].attributes)
);

pub static MAPPING_ATTRIBUTES: RowTable<OwnedAttribute, AttributeDraft> = attributes!(
    Key::Mapping,
    ".mapping_attributes",
    "an attribute of a mapping",
    "the mapping",
    [UNIT],
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
    Key::Location,
    ".location_attributes",
    "an attribute of a location",
    "the location",
    [UNIT],
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
    columns: &[
        LabelColumn::reference(
            "sample_id",
            Key::Sample,
            "the sample",
            |_, l| Some(l.sample),
            |l, row| l.label.sample = row,
        ),
        LabelColumn::text(
            "key",
            "its name",
            |_, l| Some(l.key),
            |l, key| l.label.key = key,
        )
        .not_na(),
        LabelColumn::text(
            "str",
            "its text",
            |_, l| l.str,
            |l, str| l.label.str = Some(str),
        ),
        LabelColumn::whole(
            "num",
            "its number",
            |_, l| l.num,
            |l, num| {
                l.num = Some(num);
                l.label.num = Some(num as i64);
            },
        ),
        LabelColumn::text(
            "unit",
            "the unit of the number",
            |_, l| l.unit,
            |l, unit| l.label.unit = Some(unit),
        ),
        LabelColumn::decimal(
            "num_exact",
            "`num`, if a double cannot represent it",
            |_, l| l.num.and_then(inexact),
            |l, exact| {
                if let Some(exact) = l.num.and_then(|num| exact_double(exact, num)) {
                    l.label.num = Some(exact);
                }
            },
        )
        .optional(),
        LabelColumn::kind(
            "type",
            "the type of a value that is neither text nor integer, as for attributes",
            |_, l| l.other.map(|value| value.kind),
            |l, kind| l.kind = Some(kind),
        )
        .optional(),
        LabelColumn::text(
            "value",
            "that value, as a text of its type",
            |_, l| l.other.map(|value| value.text),
            |l, text| l.text = Some(text),
        )
        .optional(),
    ],
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
