//! The texts of steps and classes.

use super::known::Known;
use super::objects::Objects;
use super::steps::{Kind as StepKind, Step};
use profile_core::error::Result;
use profile_core::limits::memory::{TryText, owned, written};
use profile_runtime::objects::{CLOSXP, TYPE, Type};

/// Reads names in a heap.
pub struct Texts<'t, 'm> {
    pub known: &'t Known,
    pub objects: &'t Objects<'m>,
}

/// The number of types. Greater numbers are addresses of names of classes.
const TYPES: u64 = TYPE + 1;
const FUNCTION: u64 = CLOSXP.0 as u64;
/// Marks the address of the name of a package that defines a class of ALTREP objects.
pub const FOREIGN: u64 = 1 << 63;

impl Texts<'_, '_> {
    /// The text of a step to an object of a class; 0 for none.
    pub fn step(&self, (kind, name): Step, class: u64) -> Result<String> {
        let mut text = String::new();
        match kind {
            StepKind::Binding => {
                text.try_push_char('$')?;
                text.try_push_str(&self.known.text(self.objects, name)?)?;
            }
            StepKind::Attribute => {
                let name = self.known.text(self.objects, name)?;
                text.try_write(format_args!("attr \"{name}\""))?;
            }
            StepKind::Root => {}
            StepKind::Element => text.try_push_str("[[*]]")?,
            StepKind::Closure => text.try_push_str("closure env")?,
            StepKind::Parent => text.try_push_str("parent env")?,
            StepKind::Promise => text.try_push_str("promise env")?,
            StepKind::Code => text.try_push_str("in code")?,
            StepKind::Pointer => text.try_push_str("kept by pointer")?,
            StepKind::PointerTag => text.try_push_str("pointer tag")?,
            StepKind::Value => text.try_push_str("value")?,
            StepKind::Finalizer => text.try_push_str("finalizer")?,
        }
        let is_named = matches!(kind, StepKind::Binding | StepKind::Element);
        if is_named || class >= TYPES {
            text.try_push_str(&self.suffix(class)?)?;
        }
        Ok(text)
    }

    /// What follows the name of an object of a class.
    pub fn suffix(&self, class: u64) -> Result<String> {
        match class {
            FUNCTION => owned("()"),
            0..TYPES => Ok(String::new()),
            _ => {
                let mut text = owned(" ")?;
                text.try_push_str(&self.class(class)?)?;
                Ok(text)
            }
        }
    }

    /// The name of a class or type.
    pub fn class(&self, class: u64) -> Result<String> {
        if class < TYPES {
            return owned(Type(class as u8).name());
        }
        if class & FOREIGN != 0 {
            let package = self.known.text(self.objects, class & !FOREIGN)?;
            return written(format_args!("ALTREP of {package} (native memory unknown)"));
        }
        let mut text = owned("<")?;
        text.try_push_str(&self.known.text(self.objects, class)?)?;
        text.try_push_char('>')?;
        Ok(text)
    }
}
