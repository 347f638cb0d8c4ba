//! What a reader keeps from one stack to the next: the memory of the process, and what was looked up in it.

use crate::running_r::RunningR;
use crate::stack::builtin::Builtin;
use crate::stack::calls::{Call, Calls, PositionVariables};
use crate::stack::codes::Codes;
use crate::stack::frames::{CodeAt, Package, Place, Where};
use crate::stack::identity::Identities;
use crate::stack::missing::Read;
use crate::stack::names::{Found, Names};
use crate::stack::packages::Packages;
use crate::stack::places::{Places, Root};
use crate::stack::snapshot::Snapshot;
use crate::stack::titles::Titles;
use crate::stack::trunk::Trunk;
use profile_core::error::Result;
use profile_core::model::{StringId, Strings};
use profile_runtime::contexts::{BUILTIN, Site};
use profile_runtime::memory::Memory;

#[derive(Debug)]
pub struct Kept<M> {
    pub snapshot: Snapshot<M>,
    pub r: RunningR,
    /// Where R keeps the position of the innermost function, if that was found.
    pub registers: Option<PositionVariables>,
    pub trunk: Trunk,
    /// Whether names are only what calls say, and none is followed by a title.
    pub plain_names: bool,
    /// Whether positions in byte code are read.
    pub positions: bool,
    names: Names,
    places: Places,
    packages: Packages,
    identities: Identities,
    titles: Titles,
    codes: Codes,
    /// The names of functions and files.
    pub texts: Strings,
}

impl<M: Memory> Kept<M> {
    pub fn new(
        snapshot: Snapshot<M>,
        r: RunningR,
        registers: Option<PositionVariables>,
    ) -> Kept<M> {
        Kept {
            snapshot,
            r,
            registers,
            trunk: Trunk::default(),
            plain_names: false,
            positions: false,
            names: Names::default(),
            places: Places::default(),
            packages: Packages::default(),
            identities: Identities::default(),
            titles: Titles::default(),
            codes: Codes::default(),
            texts: Strings::default(),
        }
    }

    /// Keeps what was looked up since the last call.
    pub fn keep(&mut self) {
        self.names.keep();
        self.places.keep();
        self.packages.keep();
        self.identities.keep();
        self.titles.keep();
    }

    /// Discards what was looked up since the last call of `keep()`.
    pub fn forget(&mut self) {
        self.names.forget();
        self.places.forget();
        self.packages.forget();
        self.identities.forget();
        self.titles.forget();
    }

    /// Reads the innermost calls, see [`Calls::read()`].
    pub fn read_calls(&mut self, calls: &mut Calls, depth: (usize, usize)) -> Read<()> {
        let (registers, trunk) = (self.registers, &mut self.trunk);
        calls.read(&mut self.snapshot, &self.r, registers, depth, trunk)
    }

    /// The name of the function that is called, given the address of the call.
    pub fn name_of_call(&mut self, call: u64) -> Result<Found> {
        let names = &mut self.names;
        names.name_of_call(&mut self.snapshot, call, &mut self.texts)
    }

    /// What a site refers to.
    pub fn root(&mut self, site: Site) -> Result<Root> {
        Root::find(&mut self.snapshot, &self.r, site)
    }

    /// The name of a function by its definition, given what the call says and the next outer call. If it has none, and many
    /// functions are called so, the place where this one was defined is added.
    pub fn defined_name(
        &mut self,
        called: StringId,
        call: Call,
        caller: Option<Call>,
    ) -> Result<StringId> {
        if self.plain_names {
            return Ok(called);
        }
        let name = self.identities.find(
            &mut self.snapshot,
            self.r.values.nil,
            called,
            (call, caller),
            &mut self.names,
            &mut self.texts,
        )?;
        if let Some(name) = name {
            return Ok(name);
        }
        if !Names::is_common(self.texts.get(called)) {
            return Ok(called);
        }
        let definition = self.places.find_definition(
            &mut self.snapshot,
            &self.r,
            call.function,
            &mut self.names,
            &mut self.texts,
        )?;
        match definition {
            Some(place) => self.names.at(place, called, &mut self.texts),
            None => Ok(called),
        }
    }

    /// The package of the function that was called.
    pub fn package_of(&mut self, call: Call) -> Result<Package> {
        if u32::from(call.record.flags) & BUILTIN != 0 {
            return Packages::of_builtins(&mut self.texts);
        }
        let (snapshot, r) = (&mut self.snapshot, &self.r);
        self.packages
            .find(snapshot, r, call.function, &mut self.texts)
    }

    /// The name of a function of this package with the title of the call, if it has one.
    pub fn with_title(
        &mut self,
        name: StringId,
        package: Package,
        environment: u64,
    ) -> Result<StringId> {
        let (snapshot, texts) = (&mut self.snapshot, &mut self.texts);
        self.titles
            .add_title(snapshot, (name, package), environment, texts)
    }

    /// The place of a site, and the builtin that is called there, unless this call has a record: `inner` is the address of
    /// the recorded call.
    pub fn place_of(&mut self, site: Root, inner: u64) -> Result<(Where, Option<StringId>)> {
        let (mut at, builtin) = self.places.find(
            &mut self.snapshot,
            &self.r,
            site,
            &mut self.names,
            &mut self.texts,
        )?;
        let builtin = builtin.filter(|builtin: &Builtin| builtin.call != inner);
        if !self.positions {
            at.code = None;
        }
        Ok((at, builtin.map(|builtin| builtin.name)))
    }

    /// The place that stands for a position in byte code. The process may go on.
    pub fn place_in_code(&mut self, at: CodeAt) -> Result<Option<Place>> {
        self.codes
            .place(&mut self.snapshot, &self.r, at, &mut self.texts)
    }
}
