//! Writes the file: the graph of calls as text.

use super::graph::Graph;
use crate::analysis::sample_types::{WrittenType, whole_types};
use crate::collections::Interner;
use crate::error::{Error, Result};
use crate::formats::losses::{LossKind, Losses};
use crate::formats::write;
use crate::io::save;
use crate::limits::cancel::{self, Stop};
use crate::limits::memory::{TryCollect, TryText, filled};
use crate::message;
use crate::model::{Profile, StringId, is_summable};
use std::io::{BufWriter, Write};

/// The name of an unknown file in the format.
const NO_FILE: &str = "???";

/// Writes files in callgrind's format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer;

impl write::Writer for Writer {
    fn write(&self, profile: &Profile, out: &mut dyn Write, stop: Stop) -> Result<Losses> {
        let mut losses = Losses::default();
        let types = whole_types(profile, true)?;
        let types = types.iter().filter(|t| is_summable(t.key, t.unit));
        let types = types.try_vec()?;
        if types.is_empty() {
            let what = "The profile has no sample types that can be written.";
            return Err(Error::Unsupported(message!("{what}")));
        }
        // The number of samples precedes the values.
        let width = types.len() + 1;
        let by_stack = sum_by_stack(profile, &types, width, &mut losses, stop)?;
        let graph = Graph::new(profile, &by_stack, width, stop)?;
        losses.add(LossKind::ChangedName, graph.changed);
        losses.add(LossKind::OtherFile, graph.left_out);
        let mut out = BufWriter::with_capacity(1 << 16, out);
        write_header(&types, &by_stack, width, &mut out)?;
        write_graph(profile, &graph, &mut out, stop)?;
        out.flush().map_err(save::failed)?;
        Ok(losses)
    }
}

fn sum_by_stack(
    profile: &Profile,
    types: &[&WrittenType],
    width: usize,
    losses: &mut Losses,
    stop: Stop,
) -> Result<Vec<i128>> {
    let mut by_stack = filled(profile.stacks.len() * width, 0_i128)?;
    for (row, stack) in profile.samples.stack.iter().enumerate() {
        cancel::at_row(row, stop)?;
        let source = profile.samples.source[row];
        let sums = &mut by_stack[stack.row() * width..][..width];
        let mut any = false;
        for (sum, type_) in sums[1..].iter_mut().zip(types) {
            let value = type_.value(row, source)?;
            any |= value != 0;
            *sum += i128::from(value);
        }
        sums[0] += i128::from(any);
    }
    for (stack, sums) in profile.stacks.ids().zip(by_stack.chunks_exact_mut(width)) {
        if sums[0] != 0 && profile.stacks.get(stack).is_empty() {
            losses.add(LossKind::EmptySample, usize::try_from(sums[0]).unwrap_or(0));
            sums.fill(0);
        }
        // Numbers of the format have no sign.
        if sums.iter().any(|sum| *sum < 0) {
            losses.add(LossKind::NegativeSum, 1);
            sums.iter_mut().for_each(|sum| *sum = (*sum).max(0));
        }
    }
    Ok(by_stack)
}

fn write_header(
    types: &[&WrittenType],
    by_stack: &[i128],
    width: usize,
    out: &mut impl Write,
) -> Result<()> {
    let mut header = String::new();
    let start = "# callgrind format\nversion: 1\ncreator: profile\npositions: line\nevents:";
    header.try_push_str(start)?;
    for type_ in types {
        let unit = match type_.unit_of_value() {
            "count" | "" => "",
            unit => unit,
        };
        let between = if unit.is_empty() { "" } else { "_" };
        header.try_push_char(' ')?;
        // The names of events are separated by blanks.
        for c in [type_.name, between, unit]
            .iter()
            .flat_map(|text| text.chars())
        {
            let is_plain = c.is_ascii_alphanumeric();
            header.try_push_char(if is_plain { c } else { '_' })?;
        }
    }
    header.try_push_str("\nsummary:")?;
    for event in 1..width {
        let sum: i128 = by_stack.chunks_exact(width).map(|sums| sums[event]).sum();
        header.try_write(format_args!(" {sum}"))?;
    }
    header.try_push_char('\n')?;
    out.write_all(header.as_bytes()).map_err(save::failed)
}

fn write_graph(profile: &Profile, graph: &Graph, out: &mut impl Write, stop: Stop) -> Result<()> {
    let mut names = Numbered::default();
    let mut files = Numbered::default();
    let mut last = None;
    for (at, (place, sums)) in graph.places()?.into_iter().enumerate() {
        cancel::at_row(at, stop)?;
        let file = |function: u32| graph.files[function as usize];
        let name = |file: Option<StringId>| file.map_or(NO_FILE, |file| profile.strings.get(file));
        let own = file(place.function);
        if last.replace(place.function) != Some(place.function) {
            // The id of an unknown file is 0, which no string has.
            let key = own.map_or(0, |file| file.0 + 1);
            files.write("\nfl", key, name(own), out)?;
            names.write("fn", place.function, graph.names.get(place.function), out)?;
        }
        if let Some(callee) = place.callee() {
            let other = file(callee);
            if other != own {
                files.write("cfl", other.map_or(0, |file| file.0 + 1), name(other), out)?;
            }
            names.write("cfn", callee, graph.names.get(callee), out)?;
            let start = graph.starts[callee as usize];
            writeln!(out, "calls={} {start}", sums[0]).map_err(save::failed)?;
        }
        write!(out, "{}", place.line).map_err(save::failed)?;
        for sum in &sums[1..] {
            write!(out, " {sum}").map_err(save::failed)?;
        }
        writeln!(out).map_err(save::failed)?;
    }
    Ok(())
}

/// Names that are written once and then referred to by numbers.
#[derive(Default)]
struct Numbered {
    numbers: Interner<Vec<u32>>,
}

impl Numbered {
    fn write(&mut self, what: &str, key: u32, name: &str, out: &mut impl Write) -> Result<()> {
        let before = self.numbers.len();
        let number = self.numbers.intern(key)? + 1;
        let written = if self.numbers.len() == before {
            writeln!(out, "{what}=({number})")
        } else {
            let mut plain = String::new();
            for c in name.chars() {
                plain.try_push_char(if c.is_control() { ' ' } else { c })?;
            }
            writeln!(out, "{what}=({number}) {plain}")
        };
        written.map_err(save::failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{rprof_profile, written};

    #[test]
    fn each_sample_enters_a_function_once() {
        let profile = rprof_profile(
            "line profiling: sample.interval=1000\n#File 1: a.R\n\
            1#3 \"f\" 1#2 \"g\" 1#4 \"f\" \"main\" \n1#5 \"f\" \"main\" \n1#2 \"g\" \"main\" \n",
        );
        let expected = "# callgrind format\nversion: 1\ncreator: profile\npositions: line\n\
            events: samples cpu_nanoseconds\nsummary: 3 3000000\n\n\
            fl=(1) a.R\nfn=(1) f\n3 1 1000000\n5 1 1000000\n\n\
            fl=(1)\nfn=(2) g\n2 1 1000000\ncfn=(1)\ncalls=1 0\n2 1 1000000\n\n\
            fl=(2) ???\nfn=(3) main\ncfl=(1)\ncfn=(1)\ncalls=1 0\n0 1 1000000\n\
            cfl=(1)\ncfn=(2)\ncalls=2 0\n0 2 2000000\n";
        assert_eq!(written(&Writer, &profile), expected);
    }
}
