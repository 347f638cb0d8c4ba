//! What a function itself says about its name: its attributes, its environment, and the function that has called it.

use crate::stack::calls::Call;
use crate::stack::names::{Found, Names, text};
use crate::stack::snapshot::Snapshot;
use profile_core::error::Result;
use profile_core::limits::memory::{TryText, written};
use profile_core::model::Strings;
use profile_runtime::environments::variable_among;
use profile_runtime::memory::{self, Memory, at};
use profile_runtime::objects::{
    ATTRIBUTES, CAR, CDR, CELL, DATA, ENVIRONMENT, ENVSXP, FRAME, HASHTAB, LANGSXP, LENGTH,
    LISTSXP, PROMSXP, STRSXP, SYMSXP, TAG, Type, VALUE_OF_PROMISE, VECSXP, object_of,
};

/// The class of the functions that `object$method` makes, which call the methods of ggproto.
const WRAPPER: &str = "ggproto_method";

/// Bounds on what is read of memory that may be damaged: attributes, and strings or elements of a vector.
const MOST_ATTRIBUTES: usize = 8;
const MOST_ELEMENTS: u64 = 16;
/// More members than an object of R6 has, whose environment has no hash table.
pub const MOST_MEMBERS: usize = 500;

/// A function that was called, and the memory that it is in.
pub struct Function<'a, M> {
    pub memory: &'a mut Snapshot<M>,
    pub nil: u64,
    pub address: u64,
    pub object: [u8; CELL],
    pub names: &'a mut Names,
    pub texts: &'a mut Strings,
}

impl<M: Memory> Function<'_, M> {
    /// A method of a Reference class or of S7.
    pub fn by_attributes(&mut self) -> Result<Option<String>> {
        if at(&self.object, ATTRIBUTES) == self.nil {
            return Ok(None);
        }
        let object = self.object;
        if let Some(class) = self.text_attribute(&object, "refClassName")? {
            if let Some(name) = self.text_attribute(&object, "name")? {
                return written(format_args!("{class}${name}")).map(Some);
            }
        }
        let class = self.text_attribute(&object, "class")?;
        if class.as_deref() != Some("S7_method") {
            return Ok(None);
        }
        let Some(generic) = self.object_attribute(&object, "generic")? else {
            return Ok(None);
        };
        let Some(generic) = self.text_attribute(&generic, "name")? else {
            return Ok(None);
        };
        let Some(signature) = self.attribute(&object, "signature")? else {
            return Ok(None);
        };
        let classes = self.classes(signature)?;
        written(format_args!("{generic}({classes})")).map(Some)
    }

    /// The classes of a signature of S7, with their packages.
    fn classes(&mut self, signature: u64) -> Result<String> {
        let mut text = String::new();
        let count = match object_of(self.memory, signature, VECSXP) {
            Some(list) => at(&list, LENGTH).min(MOST_ELEMENTS),
            None => 0,
        };
        for number in 0..count {
            let element = signature.wrapping_add(DATA as u64 + 8 * number);
            let class = memory::word(self.memory, element).unwrap_or(0);
            if number > 0 {
                text.try_push_str(", ")?;
            }
            // Classes of base are lists, and `class_any` is an object without a name.
            let Some(class) = memory::array::<CELL>(self.memory, class) else {
                return Ok(text);
            };
            if let Some(package) = self.text_attribute(&class, "package")? {
                text.try_push_str(&package)?;
                text.try_push_str("::")?;
            }
            let name = match self.text_attribute(&class, "name")? {
                Some(name) => Some(name),
                None => self.first_text_of_list(&class)?,
            };
            text.try_push_str(name.as_deref().unwrap_or("ANY"))?;
        }
        Ok(text)
    }

    /// The first element of a list, if it is a string.
    fn first_text_of_list(&mut self, list: &[u8; CELL]) -> Result<Option<String>> {
        match Type::of(at(list, 0)) == VECSXP && at(list, LENGTH) > 0 {
            true => self.string(at(list, DATA), 0),
            false => Ok(None),
        }
    }

    /// `print(ggplot2::ggplot)` for a method `print.ggplot2::ggplot` of an S3 generic for a class of S7. It is called by a
    /// symbol, and `data.table::fread()` by a call of `::`.
    pub fn of_s3_for_s7(&mut self, called: &str, call: Call) -> Result<Option<String>> {
        let Some((before, class)) = called.split_once("::") else {
            return Ok(None);
        };
        let Some((generic, package)) = before.rsplit_once('.') else {
            return Ok(None);
        };
        let head = object_of(self.memory, call.call, LANGSXP).map_or(0, |call| at(&call, CAR));
        let is_symbol = object_of(self.memory, head, SYMSXP).is_some();
        if generic.is_empty() || class.starts_with(':') || !is_symbol {
            return Ok(None);
        }
        written(format_args!("{generic}({package}::{class})")).map(Some)
    }

    /// A method of ggproto. `object$method` is a function that calls it as `f` or, in newer versions, by its name.
    /// `wrapper` is the function that has called it, which has attributes.
    pub fn of_ggproto(
        &mut self,
        called: &str,
        caller: Call,
        wrapper: &[u8; CELL],
    ) -> Result<Option<String>> {
        if self.text_attribute(wrapper, "class")?.as_deref() != Some(WRAPPER) {
            return Ok(None);
        }
        let Some(environment) = self.environment(at(wrapper, ENVIRONMENT)) else {
            return Ok(None);
        };
        if self.variable(&environment, "f")? != Some(self.address) {
            return Ok(None);
        }
        let Some(object) = self.environment_in(&environment, "self")? else {
            return Ok(None);
        };
        let Some(class) = self.class_at(&object, 0)? else {
            return Ok(None);
        };
        if called != "f" {
            return written(format_args!("{class}${called}")).map(Some);
        }
        let outer = self
            .names
            .name_of_call(self.memory, caller.call, self.texts)?;
        let Found::Name(outer) = outer else {
            return Ok(None);
        };
        match member(self.texts.get(outer)) {
            Some(member) => written(format_args!("{class}${member}")).map(Some),
            None => Ok(None),
        }
    }

    /// Whether it is what `object$method` of ggproto makes.
    pub fn is_wrapper(&mut self) -> Result<bool> {
        let object = self.object;
        if at(&object, ATTRIBUTES) == self.nil {
            return Ok(false);
        }
        let class = self.text_attribute(&object, "class")?;
        Ok(class.as_deref() == Some(WRAPPER))
    }

    pub fn environment(&mut self, address: u64) -> Option<[u8; CELL]> {
        object_of(self.memory, address, ENVSXP)
    }

    /// The value of a variable, or of the promise that it is.
    pub fn variable(&mut self, environment: &[u8; CELL], name: &str) -> Result<Option<u64>> {
        let value = match at(environment, HASHTAB) == self.nil {
            true => self.variable_of_list(at(environment, FRAME), name)?,
            false => {
                let (memory, nil) = (&mut *self.memory, self.nil);
                variable_among(memory, nil, environment, name, MOST_MEMBERS)
            }
        };
        let Some(value) = value else {
            return Ok(None);
        };
        let promise = object_of(self.memory, value, PROMSXP);
        Ok(Some(
            promise.map_or(value, |promise| at(&promise, VALUE_OF_PROMISE)),
        ))
    }

    /// The value of a variable in a list, whose symbols are mostly known.
    fn variable_of_list(&mut self, list: u64, name: &str) -> Result<Option<u64>> {
        let mut cell = list;
        for _ in 0..MOST_MEMBERS {
            if cell == self.nil {
                return Ok(None);
            }
            let Some(variable) = object_of(self.memory, cell, LISTSXP) else {
                return Ok(None);
            };
            let symbol = at(&variable, TAG);
            let tag = self.names.symbol(self.memory, symbol, self.texts)?;
            if matches!(tag, Found::Name(tag) if self.texts.get(tag) == name) {
                return Ok(Some(at(&variable, CAR)));
            }
            cell = at(&variable, CDR);
        }
        Ok(None)
    }

    pub fn environment_in(
        &mut self,
        environment: &[u8; CELL],
        name: &str,
    ) -> Result<Option<[u8; CELL]>> {
        let address = self.variable(environment, name)?;
        Ok(address.and_then(|address| self.environment(address)))
    }

    pub fn name_of_symbol(&mut self, symbol: u64) -> Result<Option<String>> {
        match self.names.symbol(self.memory, symbol, self.texts)? {
            Found::Name(name) => written(format_args!("{}", self.texts.get(name))).map(Some),
            Found::Nothing | Found::Damaged => Ok(None),
        }
    }

    /// The name of a variable, unless it tells as little as the name of the call.
    pub fn name_of_variable(&mut self, symbol: u64) -> Result<Option<String>> {
        let name = self.name_of_symbol(symbol)?;
        Ok(name.filter(|name| !name.is_empty() && !Names::is_common(name)))
    }

    /// The class of an object, or one from which it inherits.
    pub fn class_at(&mut self, object: &[u8; CELL], level: usize) -> Result<Option<String>> {
        let Some(class) = self.attribute(object, "class")? else {
            return Ok(None);
        };
        let name = self.string(class, level as u64)?;
        // What ends the vector is the system, which is not a class of the user.
        Ok(name.filter(|name| !matches!(name.as_str(), "" | "R6" | "ggproto" | "gg")))
    }

    /// An element of a character vector.
    fn string(&mut self, vector: u64, number: u64) -> Result<Option<String>> {
        let Some(object) = object_of(self.memory, vector, STRSXP) else {
            return Ok(None);
        };
        if number >= at(&object, LENGTH) || number >= MOST_ELEMENTS {
            return Ok(None);
        }
        let element = vector.wrapping_add(DATA as u64 + 8 * number);
        match memory::word(self.memory, element) {
            Some(element) => text(self.memory, element),
            None => Ok(None),
        }
    }

    fn text_attribute(&mut self, object: &[u8; CELL], name: &str) -> Result<Option<String>> {
        match self.attribute(object, name)? {
            Some(value) => self.string(value, 0),
            None => Ok(None),
        }
    }

    fn object_attribute(&mut self, object: &[u8; CELL], name: &str) -> Result<Option<[u8; CELL]>> {
        let value = self.attribute(object, name)?;
        Ok(value.and_then(|value| memory::array(self.memory, value)))
    }

    /// The value of an attribute.
    fn attribute(&mut self, object: &[u8; CELL], name: &str) -> Result<Option<u64>> {
        let mut cell = at(object, ATTRIBUTES);
        for _ in 0..MOST_ATTRIBUTES {
            if cell == self.nil {
                return Ok(None);
            }
            let Some(attribute) = object_of(self.memory, cell, LISTSXP) else {
                return Ok(None);
            };
            let tag = self
                .names
                .symbol(self.memory, at(&attribute, TAG), self.texts)?;
            if matches!(tag, Found::Name(tag) if self.texts.get(tag) == name) {
                return Ok(Some(at(&attribute, CAR)));
            }
            cell = at(&attribute, CDR);
        }
        Ok(None)
    }
}

/// The member in `object$member`, the text of a call.
pub fn member(called: &str) -> Option<&str> {
    let (object, member) = called.split_once('$')?;
    Some(member).filter(|member| !object.is_empty() && !member.is_empty())
}
