//! The titles of calls: the text of an argument, read from the environment of a running call, see [`titled`]. Any memory
//! will do, also that of this process in a signal handler: nothing is allocated, and the number of reads is limited.
//!
//! An argument is a promise until the function assigns to it, as `loadNamespace()` and `library()` soon do. Its value is
//! the text then. If it has not been evaluated yet, its expression may be a constant, a variable of the caller or, where the
//! function quotes the argument, the text itself as a symbol.
//!
//! [`titled`]: profile_core::model::titled

use crate::environments::name_of_namespace;
use crate::memory::{self, Memory, at};
use crate::objects::{
    ALTREP, BCODESXP, CAR, CDR, CELL, CONSTANTS, DATA, ENVSXP, EXTRA, FRAME, LENGTH, LGLSXP,
    LISTSXP, PRINTNAME, PROMSXP, STRSXP, SYMSXP, TAG, Type, VALUE_OF_PROMISE, VECSXP, has_text,
    object_of,
};
use profile_core::model::titled::Titled;

/// The expression of a promise, and the environment in which it is evaluated.
const EXPRESSION: usize = crate::objects::SECOND;
const PROMISE_ENVIRONMENT: usize = crate::objects::THIRD;

/// More calls than those that pass an argument on before any of them evaluates it.
const MOST_PROMISES: usize = 5;

/// More variables than a call has. `loadNamespace()` has about sixty.
const MOST_VARIABLES: usize = 250;

/// More names than there are in the table.
const MOST_NAMES: usize = 16;

/// The addresses of symbols by their names, as far as they were seen. R never frees a symbol, and has one for each name.
#[derive(Debug, Default)]
pub struct Symbols([(&'static str, u64); MOST_NAMES]);

impl Symbols {
    /// Whether this is the symbol with a name.
    fn is(&mut self, memory: &mut impl Memory, symbol: u64, name: &'static str) -> bool {
        let free = |(known, _): &&mut (&str, u64)| known.is_empty() || *known == name;
        let Some((known, address)) = self.0.iter_mut().find(free) else {
            return false;
        };
        if *address != 0 {
            return *address == symbol;
        }
        let object = object_of(memory, symbol, SYMSXP);
        let is =
            object.is_some_and(|object| has_text(memory, at(&object, PRINTNAME), name.as_bytes()));
        if is {
            (*known, *address) = (name, symbol);
        }
        is
    }
}

/// The title of a call, a `CHARSXP`, given the environment of the call. `None` if it is unknown.
pub fn title(
    memory: &mut impl Memory,
    environment: u64,
    titled: &Titled,
    symbols: &mut Symbols,
) -> Option<u64> {
    let value = variable(memory, environment, titled.argument, symbols)?;
    let mut object = Object::read(memory, value)?;
    for &name in titled.path {
        let environment = object.evaluated(memory)?.address;
        let value = variable(memory, environment, name, symbols)?;
        object = Object::read(memory, value)?;
    }
    let is_promise = object.kind() == PROMSXP && object.evaluated(memory).is_none();
    if let (true, Some(by)) = (is_promise, titled.unquoted_by) {
        let expression = object.expression(memory)?;
        let by = variable(memory, environment, by, symbols)?;
        if expression.kind() == SYMSXP && Object::read(memory, by)?.is_false(memory) {
            return Some(expression.word(PRINTNAME));
        }
    }
    value_of(memory, object)?.text(memory)
}

/// The value of an object. If it is a promise that was not evaluated, of which the expression is a variable or a constant,
/// its future value.
fn value_of(memory: &mut impl Memory, mut object: Object) -> Option<Object> {
    for _ in 0..MOST_PROMISES {
        if let Some(value) = object.evaluated(memory) {
            return Some(value);
        }
        let expression = object.expression(memory)?;
        if expression.kind() != SYMSXP {
            return Some(expression);
        }
        let environment = object.word(PROMISE_ENVIRONMENT);
        let value = find(memory, environment, |_, symbol| {
            symbol == expression.address
        })?;
        object = Object::read(memory, value)?;
    }
    None
}

/// The value of a variable of an environment without a hash table, as those of calls are.
fn variable(
    memory: &mut impl Memory,
    environment: u64,
    name: &'static str,
    symbols: &mut Symbols,
) -> Option<u64> {
    find(memory, environment, |memory, symbol| {
        symbols.is(memory, symbol, name)
    })
}

fn find<M: Memory>(
    memory: &mut M,
    environment: u64,
    mut is_wanted: impl FnMut(&mut M, u64) -> bool,
) -> Option<u64> {
    let environment = object_of(memory, environment, ENVSXP)?;
    let mut cell = at(&environment, FRAME);
    for _ in 0..MOST_VARIABLES {
        let variable = object_of(memory, cell, LISTSXP)?;
        if is_wanted(memory, at(&variable, TAG)) {
            // Otherwise the cell contains a number.
            let has_object = at(&variable, 0) >> EXTRA == 0;
            return has_object.then(|| at(&variable, CAR));
        }
        cell = at(&variable, CDR);
    }
    None
}

/// The start of an object.
#[derive(Clone, Copy)]
struct Object {
    address: u64,
    bytes: [u8; CELL],
}

impl Object {
    fn read(memory: &mut impl Memory, address: u64) -> Option<Object> {
        let bytes = memory::array(memory, address)?;
        Some(Object { address, bytes })
    }

    fn word(&self, offset: usize) -> u64 {
        at(&self.bytes, offset)
    }

    fn kind(&self) -> Type {
        Type::of(self.word(0))
    }

    /// The value, if this is a promise that was evaluated, and else the object itself.
    fn evaluated(&self, memory: &mut impl Memory) -> Option<Object> {
        if self.kind() != PROMSXP {
            return Some(*self);
        }
        // Otherwise the promise contains a number.
        let has_object = self.word(0) >> EXTRA == 0;
        let value = has_object.then(|| Object::read(memory, self.word(VALUE_OF_PROMISE)))??;
        // The value of a promise that was not evaluated is a symbol that stands for that.
        (value.kind() != SYMSXP).then_some(value)
    }

    /// The expression of a promise, a constant or a symbol as it was compiled.
    fn expression(&self, memory: &mut impl Memory) -> Option<Object> {
        if self.kind() != PROMSXP {
            return None;
        }
        let expression = Object::read(memory, self.word(EXPRESSION))?;
        if expression.kind() != BCODESXP {
            return Some(expression);
        }
        let constants = Object::read(memory, expression.word(CONSTANTS))?;
        constants.first(memory, VECSXP)
    }

    /// The first element of a vector of pointers.
    fn first(&self, memory: &mut impl Memory, kind: Type) -> Option<Object> {
        let address = self.first_address(kind)?;
        Object::read(memory, address)
    }

    fn first_address(&self, kind: Type) -> Option<u64> {
        let has_data = self.kind() == kind && self.word(0) & ALTREP == 0 && self.word(LENGTH) > 0;
        has_data.then(|| self.word(DATA))
    }

    /// The first string, also of a list that has it as its first element, as packages with a version are imported; or the
    /// name of a namespace.
    fn text(&self, memory: &mut impl Memory) -> Option<u64> {
        match self.kind() {
            // Namespaces have hash tables, so that the address of `NULL` is not needed.
            ENVSXP => name_of_namespace(memory, 0, &self.bytes),
            VECSXP => self.first(memory, VECSXP)?.first_address(STRSXP),
            _ => self.first_address(STRSXP),
        }
    }

    /// Whether it is `FALSE`, or the constant `FALSE` as a promise.
    fn is_false(&self, memory: &mut impl Memory) -> bool {
        let value = match self.evaluated(memory) {
            Some(value) => Some(value),
            None => self.expression(memory),
        };
        let first = |value: Object| value.word(DATA) as u32;
        let is_flag = |value: &Object| value.kind() == LGLSXP && value.word(LENGTH) == 1;
        value.filter(is_flag).map(first) == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{NIL, Objects, address};
    use crate::objects::{INTSXP, LANGSXP};
    use profile_core::model::titled::{TITLED, row_of_call};

    impl Objects {
        /// The title of a call of this function with these variables.
        fn title(&mut self, function: &str, variables: &[(&str, usize)]) -> Option<String> {
            let environment = address(self.environment(variables));
            let titled = &TITLED[row_of_call(function).unwrap()];
            let text = title(self, environment, titled, &mut Symbols::default())?;
            let string = self.object(text).unwrap();
            let bytes: Vec<u8> = string[6..]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            Some(String::from_utf8(bytes[..string[4] as usize].to_vec()).unwrap())
        }
    }

    #[test]
    fn the_title_is_the_value_of_the_argument() {
        let mut r = Objects::new();
        let text = r.text("dplyr");
        let other = r.text("other");
        let found = Some("dplyr".to_owned());
        assert_eq!(
            r.title("loadNamespace", &[("a", other), ("package", text)]),
            found
        );
        assert_eq!(r.title("loadNamespace", &[("a", text)]), None);
        let call = r.add(LANGSXP, &[]);
        let promise = r.promise(Some(text), call);
        assert_eq!(r.title("loadNamespace", &[("package", promise)]), found);
        // Packages are imported with their versions.
        let list = r.add(VECSXP, &[2, 0, address(text), address(other)]);
        let promise = r.promise(Some(list), call);
        assert_eq!(r.title("loadNamespace", &[("package", promise)]), found);
        // The value is not known yet.
        let promise = r.promise(None, call);
        assert_eq!(r.title("loadNamespace", &[("package", promise)]), None);
        let promise = r.promise(None, text);
        assert_eq!(r.title("loadNamespace", &[("package", promise)]), found);
    }

    #[test]
    fn a_quoted_argument_is_its_own_title() {
        let mut r = Objects::new();
        let symbol = r.symbol("dplyr");
        let text = r.text("tidyr");
        let [no, yes] = [0, 1].map(|flag| r.flag(flag));
        let default = r.promise(None, no);
        let given = r.promise(Some(yes), yes);
        let compiled = r.compiled(symbol);
        for expression in [symbol, compiled] {
            let package = r.promise(None, expression);
            let mut title =
                |by| r.title("library", &[("package", package), ("character.only", by)]);
            assert_eq!(title(no).as_deref(), Some("dplyr"));
            assert_eq!(title(default).as_deref(), Some("dplyr"));
            // It is a variable that does not exist.
            assert_eq!(title(yes), None);
            assert_eq!(title(given), None);
            assert_eq!(r.title("library", &[("package", package)]), None);
            assert_eq!(r.title("requireNamespace", &[("package", package)]), None);
        }
        let package = r.promise(Some(text), symbol);
        let variables = [("package", package), ("character.only", yes)];
        assert_eq!(r.title("library", &variables).as_deref(), Some("tidyr"));
    }

    #[test]
    fn an_argument_that_callers_pass_on_is_their_variable() {
        let mut r = Objects::new();
        let (inner, outer) = (r.symbol("pkg"), r.symbol("name"));
        let text = r.text("dplyr");
        let list = r.add(LISTSXP, &[address(text), address(NIL), address(outer)]);
        let caller = r.add(ENVSXP, &[address(list), address(NIL), address(NIL)]);
        let passed = r.promise(None, outer);
        r.0[passed][6] = address(caller);
        let list = r.add(LISTSXP, &[address(passed), address(NIL), address(inner)]);
        let wrapper = r.add(ENVSXP, &[address(list), address(NIL), address(NIL)]);
        let package = r.promise(None, inner);
        r.0[package][6] = address(wrapper);
        let found = Some("dplyr".to_owned());
        assert_eq!(r.title("loadNamespace", &[("package", package)]), found);
        let yes = r.flag(1);
        let variables = [("package", package), ("character.only", yes)];
        assert_eq!(r.title("library", &variables), found);
        // A promise that refers to itself.
        r.0[package][6] = address(wrapper);
        r.0[list][4] = address(package);
        assert_eq!(r.title("loadNamespace", &[("package", package)]), None);
    }

    #[test]
    fn damaged_objects_have_no_title() {
        let mut r = Objects::new();
        let number = r.add(INTSXP, &[1, 0, 5]);
        let empty = r.add(STRSXP, &[0, 0, 0]);
        let computed = r.text("dplyr");
        r.0[computed][0] |= ALTREP;
        let text = r.text("dplyr");
        let gone = r.add(PROMSXP, &[1 << 40, 1 << 40, 1 << 40]);
        for value in [NIL, number, empty, computed, gone] {
            assert_eq!(r.title("loadNamespace", &[("package", value)]), None);
        }
        // The list of variables is circular, or one of them is none.
        let environment = r.environment(&[("a", text), ("b", text)]);
        let titled = &TITLED[0];
        let list = r.0[environment][4];
        r.object(list).unwrap()[5] = list;
        let found = title(
            &mut r,
            address(environment),
            titled,
            &mut Symbols::default(),
        );
        assert_eq!(found, None);
        for environment in [address(text), 0, u64::MAX] {
            let found = title(&mut r, environment, titled, &mut Symbols::default());
            assert_eq!(found, None);
        }
    }
}
