//! The language in which the columns of a row table are declared: a column is a line such as
//!
//! ```text
//! Text "filename" (f.filename) "the file it is in; empty if unknown" .not_na();
//! ```
//!
//! with its kind, one of [`Access`](super::column::Access), its name, the field of the model that has
//! its cell, its documentation, and methods of [`Column`](super::column::Column). Instead of a field, the
//! parentheses may contain an expression that gets the cell, an `Option`, and one that sets it in
//! the draft, or `_` if it is not read: `(has_name(f), |has| f.has_name = Some(has))`. References
//! state their [`Key`](super::key::Key) before the parentheses, which are empty for the key of the
//! table itself.
//!
//! The list begins with the names that these expressions use, and their types: the profile, the row,
//! and the part of the draft that has the fields of the row: `(p, f: Function, f.function: FunctionDraft)`.

use crate::model::{FunctionId, NativeId, ResourceId, ScopeId, StringId, ValueKind};

macro_rules! columns {
    ($head:tt $(
        $kind:ident $name:literal $($key:ident)? ($($access:tt)*) $doc:literal
        $(.$rule:ident($($arg:tt)*))*;
    )*) => {
        &[$(
            crate::schema::columns::column!($head $name $kind [$(crate::schema::Key::$key)?] ($($access)*) $doc)
                $(.$rule($($arg)*))*
        ),*]
    };
}

macro_rules! column {
    (
        ($p:ident, $row:ident: $R:ty, $draft:ident $(.$part:ident)*: $D:ty)
        $name:literal Key [] () $doc:literal
    ) => {
        crate::schema::Column::<$R, $D>::new($name, crate::schema::column::Access::Key, $doc)
    };
    (
        ($p:ident, $row:ident: $R:ty, $draft:ident $(.$part:ident)*: $D:ty)
        $name:literal $kind:ident [$($key:expr)?] ($of:ident $(.$field:tt)+) $doc:literal
    ) => {
        crate::schema::Column::<$R, $D>::new($name, crate::schema::column::Access::$kind(
            $($key,)?
            |_, $of| crate::schema::columns::Field::cell(&$of $(.$field)+),
            |$draft, value| $draft $(.$part)* $(.$field)+ = crate::schema::columns::Field::of(value),
        ), $doc)
    };
    (
        ($p:ident, $row:ident: $R:ty, $draft:ident $(.$part:ident)*: $D:ty)
        $name:literal $kind:ident [$($key:expr)?] ($get:expr, |$value:ident| $set:expr) $doc:literal
    ) => {
        crate::schema::Column::<$R, $D>::new($name, crate::schema::column::Access::$kind(
            $($key,)?
            |$p, $row| {
                let _ = $p;
                $get
            },
            |$draft, $value| $set,
        ), $doc)
    };
    (
        ($p:ident, $row:ident: $R:ty, $draft:ident $(.$part:ident)*: $D:ty)
        $name:literal $kind:ident [] ($get:expr, _) $doc:literal
    ) => {
        crate::schema::Column::<$R, $D>::new(
            $name,
            crate::schema::column::Access::$kind(|_, $row| $get, |_, _| ()),
            $doc,
        )
    };
}

pub(super) use {column, columns};

/// A field of the model that is the content of a cell; `None` is NA.
pub(super) trait Field {
    type Cell<'a>
    where
        Self: 'a;
    /// What is read from a cell.
    type Read;

    fn cell(&self) -> Option<Self::Cell<'_>>;
    fn of(read: Self::Read) -> Self;
}

macro_rules! plain {
    ($($type_:ty),*) => {
        $(impl Field for $type_ {
            type Cell<'a> = $type_;
            type Read = $type_;

            fn cell(&self) -> Option<$type_> {
                Some(*self)
            }

            fn of(read: $type_) -> $type_ {
                read
            }
        })*
    };
}

plain!(
    bool, u32, i64, u64, f64, usize, NativeId, StringId, ValueKind
);

macro_rules! rows_of_tables {
    ($($id:ident),*) => {
        $(impl Field for $id {
            type Cell<'a> = usize;
            type Read = usize;

            fn cell(&self) -> Option<usize> {
                Some(self.row())
            }

            fn of(row: usize) -> $id {
                $id(row as u32)
            }
        })*
    };
}

rows_of_tables!(FunctionId, ResourceId, ScopeId);

impl Field for String {
    type Cell<'a> = &'a str;
    type Read = String;

    fn cell(&self) -> Option<&str> {
        Some(self)
    }

    fn of(read: String) -> String {
        read
    }
}

impl Field for Vec<StringId> {
    type Cell<'a> = &'a [StringId];
    type Read = Vec<StringId>;

    fn cell(&self) -> Option<&[StringId]> {
        Some(self)
    }

    fn of(read: Vec<StringId>) -> Vec<StringId> {
        read
    }
}

impl<F: Field> Field for Option<F> {
    type Cell<'a>
        = F::Cell<'a>
    where
        F: 'a;
    type Read = F::Read;

    fn cell(&self) -> Option<F::Cell<'_>> {
        self.as_ref()?.cell()
    }

    fn of(read: F::Read) -> Option<F> {
        Some(F::of(read))
    }
}
