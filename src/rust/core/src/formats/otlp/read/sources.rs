//! Combines the profiles of a scope to sources, and reads their samples.
//!
//! A pprof file with several sample types is converted to several profiles of one scope, which have
//! the same samples. Therefore profiles with equal metadata and the same samples are combined to
//! one source. A source of which only some samples have times is two such groups of profiles.

use super::file::MOST_TYPES;
use super::profiles::{Header, SourceMaker};
use super::samples::{Column, SampleReader};
use super::scopes::{InScope, ResourceReader};
use crate::limits::cancel;
use crate::limits::memory::{TryCollect, TryGrow, owned};
use crate::protobuf::decode::{Message, Result as WireResult};

/// The number of sources between two checks for cancellation.
const SOURCES: usize = 100;

/// The columns of each profile. `columns` has one for each type of all profiles.
fn places_of(headers: &[&Header], columns: Vec<usize>) -> WireResult<Vec<Vec<Column>>> {
    let mut columns = columns.into_iter();
    let mut places = Vec::new();
    for header in headers {
        let (factors, count) = header.recorded.factors();
        let own = factors.into_iter().take(count).zip(columns.by_ref());
        let own = own.map(|(factor, column)| Column { column, factor });
        places.try_push(own.try_vec()?)?;
    }
    Ok(places)
}

/// The values of the samples of a profile, and their byte offsets.
type Values = Vec<(i64, usize)>;
/// A profile, and the values of profiles with the same samples.
type Rest<'a> = (Message<'a>, Vec<Values>);

impl<'a> ResourceReader<'_, 'a> {
    /// Adds the profiles of a scope as sources. Profiles with the same samples are combined; the
    /// scope may specify the order of their sample types.
    pub fn profiles(&mut self, headers: &[Header<'a>], within: &InScope) -> WireResult<()> {
        let all = match &within.order {
            Some(order) => order.iter().map(|&at| &headers[at]).try_vec()?,
            None => headers.iter().try_vec()?,
        };
        let mut left = all.as_slice();
        if within.order.is_some() && self.source(left, within, true)? > 0 {
            return Ok(());
        }
        while !left.is_empty() {
            if self.file.profile.sources.len() % SOURCES == 0 {
                cancel::check(self.stop)?;
            }
            let taken = self.source(left, within, false)?;
            left = left.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Adds a source of the first profile and those directly after it that have the same samples, and
    /// of its other samples, see [`ResourceReader::rest()`]. Returns the number of profiles in it. With `all`,
    /// adds no source and returns 0 if it would not contain all profiles.
    fn source(
        &mut self,
        headers: &[&Header<'a>],
        within: &InScope,
        all: bool,
    ) -> WireResult<usize> {
        let Some((&first, others)) = headers.split_first() else {
            return Ok(0);
        };
        let reader = self.samples();
        let mut values = Vec::new();
        for (i, other) in others.iter().take(MOST_TYPES).enumerate() {
            let types = &headers[..=i];
            if !first.agrees(other) || !all && types.iter().any(|t| t.type_ == other.type_) {
                break;
            }
            // Profiles without samples are combined only if the scope specifies the order.
            match reader.aligned(first.message, other.message)? {
                Some(found) if all || !found.is_empty() => values.try_push(found)?,
                _ => break,
            }
        }
        let count = 1 + values.len();
        if all && count < headers.len() {
            return Ok(0);
        }
        let rest = if all {
            None
        } else {
            self.rest(headers, count)?
        };
        let mut maker = self.maker();
        let is_silent = count == 1 && first.is_silent()?;
        let types = if is_silent {
            Vec::new()
        } else {
            maker.types(&headers[..count])?
        };
        let columns = self.file.columns(&types, first.message.at())?;
        let uri = self.file.origin.own_uri()?;
        let default_type = within.default_type.as_deref();
        let default_type = default_type.map(owned).transpose()?;
        let mut maker = self.maker();
        let source = maker.source(first, types, uri, within.id, default_type)?;
        let id = maker.profile.add_source(source)?;
        let mut reader = self.samples();
        let places = headers.get(..count).unwrap_or_default();
        let places = places_of(places, columns)?;
        let Some((own, others)) = places.split_first().filter(|_| !is_silent) else {
            return Ok(count);
        };
        let mut put = |message, values: &[Values]| {
            reader.read(message, id, own)?;
            let mut all = others.iter().zip(values);
            all.try_for_each(|(columns, values)| reader.add_values(columns, values))
        };
        put(first.message, &values)?;
        let Some((message, values)) = rest else {
            return Ok(count);
        };
        put(message, &values)?;
        Ok(2 * count)
    }

    /// The profiles after the first `count` ones, if these are the other samples of the same source:
    /// they have the same metadata and types, and the samples of one group have times, those of the
    /// other have none. Returns the first of them, and the values of the others.
    fn rest(&mut self, headers: &[&Header<'a>], count: usize) -> WireResult<Option<Rest<'a>>> {
        let (own, others) = headers.split_at(count);
        let (Some(first), Some((&next, further))) = (own.first(), others.split_first()) else {
            return Ok(None);
        };
        let same =
            |(own, other): (&&Header, &&Header)| first.agrees(other) && own.type_ == other.type_;
        if others.len() < count || !own.iter().zip(others).all(same) {
            return Ok(None);
        }
        let reader = self.samples();
        let first_timed = reader.timed(first.message)?;
        let next_timed = reader.timed(next.message)?;
        if first_timed.is_none() || next_timed != first_timed.map(|timed| !timed) {
            return Ok(None);
        }
        let mut values = Vec::new();
        for other in further.iter().take(count - 1) {
            match reader.aligned(next.message, other.message)? {
                Some(found) => values.try_push(found)?,
                None => return Ok(None),
            }
        }
        Ok(Some((next.message, values)))
    }

    fn maker(&mut self) -> SourceMaker<'_, 'a> {
        SourceMaker {
            dictionary: &mut self.dictionary,
            profile: &mut self.file.profile,
            problems: &mut self.file.problems,
            budget: &mut self.file.budget,
            format: self.file.format,
        }
    }

    fn samples(&mut self) -> SampleReader<'_, 'a> {
        SampleReader {
            dictionary: &self.dictionary,
            fields: self.fields,
            forms: &mut self.forms,
            budget: &mut self.file.budget,
            profile: &mut self.file.profile,
            problems: &mut self.file.problems,
            stop: self.stop,
        }
    }
}
