//! The calls that are running, which hold their variables and arguments.

use super::cycle::Cycle;
use super::known::Known;
use super::lists::damaged;
use super::objects::Objects;
use crate::memory::{self, Memory, at, half_at};
use crate::target::Target;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};
use profile_core::model::heap as names;
use profile_runtime::contexts::{
    CALL, CALLFLAG, CALLFUN, CLOENV, CLOSURE, MOST_RECORDS, NEXT, RECORD,
};
use profile_runtime::objects::{CAR, LANGSXP, SYMSXP};

/// A call, and what its record refers to.
pub struct Call {
    pub name: String,
    pub environment: u64,
    pub held: Vec<u64>,
}

/// The calls, outermost first.
pub fn calls(
    memory: &mut impl Memory,
    target: &Target,
    known: &Known,
    objects: &Objects,
) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    let mut address = memory::word(memory, target.addresses.head).unwrap_or(0);
    let mut cycle = Cycle::default();
    for _ in 0..MOST_RECORDS {
        if cycle.has(address) {
            break;
        }
        let Some(record) = memory::array::<RECORD>(memory, address) else {
            return Err(damaged());
        };
        let mut call = Call {
            name: owned(names::CALLS.text())?,
            environment: 0,
            held: Vec::new(),
        };
        if half_at(&record, CALLFLAG as usize) & CLOSURE != 0 {
            call.environment = at(&record, CLOENV as usize);
            call.name = name_of_call(known, objects, at(&record, CALL as usize))?;
        }
        for offset in (CALLFUN as usize..RECORD).step_by(8) {
            let word = at(&record, offset);
            if objects.is_used_at(word) {
                call.held.try_push(word)?;
            }
        }
        calls.try_push(call)?;
        address = at(&record, NEXT as usize);
        if address == 0 {
            calls.reverse();
            return Ok(calls);
        }
    }
    Err(damaged())
}

fn name_of_call(known: &Known, objects: &Objects, call: u64) -> Result<String> {
    let function = objects.typed(call, LANGSXP).map(|call| call.word(CAR));
    match function.filter(|function| objects.typed(*function, SYMSXP).is_some()) {
        Some(name) => {
            let name = known.text(objects, name)?;
            written(format_args!("{name}()")).and_then(|name| names::CALL.of(&name))
        }
        None => names::CALL.of("<Anonymous>()"),
    }
}
