//! Computes the facts about a source that formats store: when it was recorded, for how long, with
//! which period, and the default sample type.

use super::sample_types::{WrittenType, is_rprof};
use crate::error::Result;
use crate::limits::memory::{TryCollect, TryGrow, TryText, owned, with_room};
use crate::message;
use crate::model::known_types::CPU;
use crate::model::{
    PROCESS_ID, PROCESS_PROGRAM, PROCESS_ROLE, PROCESS_SCRIPT, Period, Profile, RprofOptions,
    Source, is_nearly_whole, nanoseconds, nearest,
};

/// When the source was recorded, in nanoseconds since 1970.
pub fn time(source: &Source) -> Option<i64> {
    source.time.or_else(|| nanoseconds(source.timestamp?))
}

/// The period, with its type and unit. The period of Rprof, in microseconds, is converted to nanoseconds, which other
/// tools use.
pub fn period(source: &Source) -> Option<(i64, Option<(&str, &str)>)> {
    let period = source.period.as_ref()?;
    let type_ = period.type_.as_ref();
    match period.nanoseconds() {
        Some(time) if is_rprof(source) => Some((
            nearest(time)?,
            type_.map(|t| (t.name.as_str(), "nanoseconds")),
        )),
        _ => {
            let value = period.exact.or_else(|| nearest(period.value))?;
            Some((value, type_.map(|t| (t.name.as_str(), t.unit.as_str()))))
        }
    }
}

/// The numbers of periods, time stamps and durations of sources that are not written exactly, since formats store
/// 64-bit integers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct InexactFacts {
    /// Periods that are rounded or omitted.
    pub periods: usize,
    pub times: usize,
    pub durations: usize,
}

impl InexactFacts {
    pub fn new(profile: &Profile, durations: &[Option<i64>]) -> InexactFacts {
        let mut inexact = InexactFacts::default();
        for (source, duration) in profile.sources.iter().zip(durations) {
            let sampled = is_rprof(source) && profile.counts().is_some();
            let period = source.period.as_ref();
            let is_time = period.and_then(Period::nanoseconds).is_some();
            inexact.periods += usize::from(period.is_some_and(|p| !is_exact(source, p)));
            inexact.times += usize::from(source.timestamp.is_some() && time(source).is_none());
            inexact.durations += usize::from(sampled && is_time && duration.is_none());
        }
        inexact
    }
}

/// Whether [`period()`] returns the exact period.
fn is_exact(source: &Source, period: &Period) -> bool {
    let value = match period.nanoseconds() {
        Some(time) if is_rprof(source) => time,
        _ if period.exact.is_some() => return true,
        _ => period.value,
    };
    is_nearly_whole(value) && nearest(value).is_some()
}

/// The nanoseconds between two counted samples of each source, if all are known. Sources without counts, such as those
/// of allocations, need no period; theirs is NaN.
pub fn periods_of_counts(profile: &Profile) -> Result<Option<Vec<f64>>> {
    let mut periods = with_room(profile.sources.len())?;
    for (source, count) in profile.sources.iter().zip(counts(profile)?) {
        let period = source.period.as_ref();
        match period.and_then(Period::plausible_nanoseconds) {
            Some(period) => periods.try_push(period)?,
            None if count == 0.0 => periods.try_push(f64::NAN)?,
            None => return Ok(None),
        }
    }
    let is_known = periods.iter().any(|period: &f64| !period.is_nan());
    Ok(is_known.then_some(periods))
}

/// The nanoseconds between two samples of each source, if all are known.
pub fn periods(profile: &Profile) -> Result<Option<Vec<f64>>> {
    let mut periods = with_room(profile.sources.len())?;
    for source in &profile.sources {
        match source
            .period
            .as_ref()
            .and_then(Period::plausible_nanoseconds)
        {
            Some(period) => periods.try_push(period)?,
            None => return Ok(None),
        }
    }
    Ok(Some(periods))
}

/// The duration of each source in nanoseconds. Rprof does not record it; it is computed from the number
/// of samples and the period.
pub fn durations(profile: &Profile) -> Result<Vec<Option<i64>>> {
    let sources = profile.sources.iter().zip(counts(profile)?);
    let duration = |(source, count): (&Source, f64)| {
        let period = source.period.as_ref().filter(|_| is_rprof(source));
        let sampled = || nearest(count * period?.nanoseconds()?);
        source.duration.or_else(sampled)
    };
    let mut durations = Vec::new();
    durations.try_extend_from(sources.map(duration))?;
    Ok(durations)
}

/// The sampled time of each source in seconds; 0 if its period is not known.
pub fn sampled_seconds(profile: &Profile) -> Result<Vec<f64>> {
    let sources = profile.sources.iter().zip(counts(profile)?);
    let seconds = sources.map(|(source, count)| {
        let period = source.period.as_ref();
        period
            .and_then(Period::plausible_nanoseconds)
            .unwrap_or(0.0)
            * count
            / 1e9
    });
    seconds.try_vec()
}

/// The number of counted samples of each source.
pub(super) fn counts(profile: &Profile) -> Result<Vec<f64>> {
    let mut counts = Vec::new();
    counts.try_fill(profile.sources.len(), 0.0)?;
    if let Some(values) = profile.counts() {
        for (value, source) in values.column.iter().zip(profile.samples.source.iter()) {
            counts[source.row()] += if value.is_nan() { 0.0 } else { *value };
        }
    }
    Ok(counts)
}

/// The sum of the durations; `None` if there are none, or it exceeds 2^63.
pub fn total_duration(durations: &[Option<i64>]) -> Option<i64> {
    let mut durations = durations.iter().flatten().copied();
    let first = durations.next()?;
    durations.try_fold(first, i64::checked_add)
}

/// The sample type that a viewer should show first; for sources of Rprof that is the time.
pub fn default_type<'a>(source: &'a Source, types: &[&WrittenType<'a>]) -> Option<&'a str> {
    if is_rprof(source) {
        let time = types.iter().find(|type_| type_.name == CPU.name);
        return time.or(types.first()).map(|type_| type_.name);
    }
    source.default_type.as_deref()
}

/// The last part of a path or URL, without a query, which may hold a password.
pub fn file_name(uri: &str) -> &str {
    let path = if uri.contains("://") {
        uri.split(['?', '#']).next().unwrap_or_default()
    } else {
        uri
    };
    let mut parts = path.rsplit(['/', '\\']);
    parts.find(|part| !part.is_empty()).unwrap_or_default()
}

/// What the process of a source runs: the script of R, otherwise the program. It says more than the number of the process.
pub fn program<'p>(profile: &'p Profile, source: &Source) -> Option<&'p str> {
    let named = |key| Some(file_name(attribute(profile, source, key)?));
    let own = named(PROCESS_SCRIPT).or_else(|| named(PROCESS_PROGRAM));
    own.filter(|name| !name.is_empty())
        .or_else(|| program_in(attribute(profile, source, "process.command_line")?))
}

/// The same from a command line, which other tools may have recorded. Arguments, which may contain secrets, are left out.
fn program_in(command: &str) -> Option<&str> {
    let (of_r, _) = command.split_once(" --args").unwrap_or((command, ""));
    let program = match of_r.split_once(" --file=") {
        Some((_, script)) => script,
        None => command.split(' ').next().unwrap_or_default(),
    };
    Some(file_name(program)).filter(|name| !name.is_empty())
}

/// What a process that works with others is called: `worker 1 of 2, pid 1234`.
pub fn process(profile: &Profile, source: &Source) -> Option<String> {
    let role = attribute(profile, source, PROCESS_ROLE)?;
    Some(match attribute(profile, source, PROCESS_ID) {
        Some(pid) => message!("{role}, pid {pid}"),
        None => role.into(),
    })
}

/// The value of an attribute of a source, as text.
pub fn attribute<'p>(profile: &'p Profile, source: &Source, key: &str) -> Option<&'p str> {
    let text = |id| profile.strings.get(id);
    let mut attributes = source.attributes.iter();
    let found = attributes.find(|attribute| text(attribute.key) == key)?;
    Some(text(found.value.text))
}

/// The seconds since 1970 of a text such as `2026-01-05T10:00:00.5Z`, as attributes of OpenTelemetry have it, in UTC.
pub fn seconds_of_utc(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let numbers = |text: &str, between: char| {
        let mut numbers = text.split(between).map(|part| part.parse::<u32>().ok());
        let found = [numbers.next()??, numbers.next()??, numbers.next()??];
        numbers.next().is_none().then_some(found.map(i64::from))
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hours, minutes, seconds] = numbers(time, ':')?;
    let is_time = hours < 24 && minutes < 60 && seconds <= 60;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && year < 10_000;
    if !is_time || !is_date || fraction.parse::<u64>().is_err() {
        return None;
    }
    // A year that begins in March ends with the day that only some years have.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days_before_month = (153 * month + 2) / 5;
    /// From March 1 of the year 0 to 1970.
    const BEFORE_1970: i64 = 719_468;
    let days = 365 * year + leap_days + days_before_month + day - 1 - BEFORE_1970;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

/// A description of a source of Rprof, such as `Rprof: Rprof.out, 20000 us, memory gc line`.
pub fn provenance(source: &Source) -> Result<String> {
    let mut text = owned(PROVENANCE)?;
    let mut parts = 0;
    let mut add = |part: std::fmt::Arguments| {
        text.try_push_str(if parts > 0 { ", " } else { "" })?;
        parts += 1;
        text.try_write(part)
    };
    if let Some(uri) = &source.uri {
        add(format_args!("{uri}"))?;
    }
    if let Some(time) = source.period.as_ref().and_then(Period::nanoseconds) {
        add(format_args!("{} us", time / 1e3))?;
    }
    let options = words(source.options.unwrap_or_default());
    if !options.is_empty() {
        add(format_args!("{options}"))?;
    }
    Ok(text)
}

/// Whether a text that [`provenance()`] returned says that memory was recorded.
pub fn has_option_of_memory(comment: &str) -> bool {
    let options = comment
        .strip_prefix(PROVENANCE)
        .and_then(|parts| parts.rsplit(", ").next())
        .and_then(options_of_text);
    options.is_some_and(|options| options.memory)
}

const PROVENANCE: &str = "Rprof: ";
const NO_OPTIONS: &str = "none";

/// The options as text, such as `memory gc line`; empty if none is set.
pub fn words(options: RprofOptions) -> &'static str {
    let RprofOptions { memory, gc, line } = options;
    match (memory, gc, line) {
        (false, false, false) => "",
        (false, false, true) => "line",
        (false, true, false) => "gc",
        (false, true, true) => "gc line",
        (true, false, false) => "memory",
        (true, false, true) => "memory line",
        (true, true, false) => "memory gc",
        (true, true, true) => "memory gc line",
    }
}

/// The options as text, `none` if no option is set.
pub fn options_text(options: RprofOptions) -> &'static str {
    match words(options) {
        "" => NO_OPTIONS,
        words => words,
    }
}

/// Parses a text that [`options_text()`] returned.
pub fn options_of_text(text: &str) -> Option<RprofOptions> {
    let has = |option| text.split(' ').any(|word| word == option);
    let options = RprofOptions {
        memory: has("memory"),
        gc: has("gc"),
        line: has("line"),
    };
    (options_text(options) == text).then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_attributes() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("2000-02-29T12:30:15.25Z", Some(951_827_415)),
            ("2026-11-29T08:28:33Z", Some(1_795_940_913)),
            ("2026-11-29 08:28:33Z", None),
            ("2026-11-29T08:28:33", None),
            ("2026-13-29T08:28:33Z", None),
            ("2026-11-29T24:28:33Z", None),
            ("2026-11-29T08:28:33.xZ", None),
            ("2026-11-29-1T08:28Z", None),
            ("99999999999-11-29T08:28:33Z", None),
            ("", None),
        ];
        for (text, seconds) in cases {
            assert_eq!(seconds_of_utc(text), seconds, "{text}");
        }
    }
}
