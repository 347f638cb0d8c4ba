//! The calls that are running, which hold their variables and arguments.

use super::damage::Damage;
use super::known::Known;
use super::objects::Objects;
use crate::running_r::RunningR;
use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, owned, written};
use profile_core::model::heap as names;
use profile_runtime::contexts::Walk;
use profile_runtime::memory::{self, Memory};
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
    r: &RunningR,
    known: &Known,
    objects: &Objects,
) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    let (_, innermost) = r.head.read(memory).ok_or(Damage::Calls)?;
    let mut walk = Walk::new(innermost);
    while let Some((address, record)) = walk.next(memory) {
        let mut call = Call {
            name: owned(names::CALLS.text())?,
            environment: 0,
            held: Vec::new(),
        };
        if record.head().is_call_of_closure() {
            call.environment = record.environment();
            call.name = name_of_call(known, objects, record.call())?;
        }
        let place = r.layout.and_then(|layout| layout.return_value);
        let returned = place.and_then(|place| memory::word(memory, address.wrapping_add(place)));
        let words = record.words().chain(returned);
        for word in words.filter(|&word| objects.is_used_at(word)) {
            call.held.try_push(word)?;
        }
        calls.try_push(call)?;
    }
    if !walk.is_whole() {
        return Err(Damage::Calls.into());
    }
    calls.reverse();
    Ok(calls)
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
