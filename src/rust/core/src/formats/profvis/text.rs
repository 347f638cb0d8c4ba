//! The rows of profvis as the lines of an Rprof file.
//!
//! A row has the line from which its function was called. The line that was running is a row of its own, the innermost
//! one, with the code of that line as its label.

use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader, fields};
use crate::limits::memory::{Growing, TryGrow, owned, sort_by_key};
use crate::message;
use std::cmp::Reverse;
use std::io::Write;

#[derive(Default)]
struct Profvis {
    /// Milliseconds.
    interval: Option<f64>,
    time: Vec<f64>,
    depth: Vec<f64>,
    label: Vec<String>,
    file: Vec<f64>,
    line: Vec<f64>,
    files: Vec<File>,
}

#[derive(Default)]
struct File {
    name: String,
    content: String,
}

/// Reads the data, which are next.
pub fn read(json: &mut Reader) -> Result<Vec<u8>> {
    let mut profvis = Profvis::default();
    inside(json, "x", &mut |json| {
        inside(json, "message", &mut |json| profvis.read_message(json))
    })?;
    json.finish()?;
    profvis.text(json)
}

/// Calls `read` with the field of this name of the next value, an object, and skips the others.
fn inside(
    json: &mut Reader,
    name: &str,
    read: &mut dyn FnMut(&mut Reader) -> Result<()>,
) -> Result<()> {
    json.begin_object()?;
    while let Some(key) = json.key()? {
        if key.as_str() == name {
            read(json)?;
        } else {
            json.skip()?;
        }
    }
    Ok(())
}

/// The next value, an array of numbers, in which `null` is a missing one.
fn column(json: &mut Reader) -> Result<Vec<f64>> {
    let mut column = Vec::new();
    json.begin_array()?;
    while json.element()? {
        json.take(2 * size_of::<f64>())?;
        let number = json.number_if_any()?;
        column.try_push(number.map_or(f64::NAN, |number| number.real()))?;
    }
    Ok(column)
}

impl Profvis {
    fn read_message(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "prof" => self.read_rows(json)?,
            "interval" => self.interval = json.number_if_any()?.map(|number| number.real()),
            "files" if json.peek()? == JsonKind::Array => {
                json.begin_array()?;
                while json.element()? {
                    let file = File::read(json)?;
                    self.files.try_push(file)?;
                }
            },
        }
        Ok(())
    }

    fn read_rows(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "time" => self.time = column(json)?,
            "depth" => self.depth = column(json)?,
            "filenum" => self.file = column(json)?,
            "linenum" => self.line = column(json)?,
            "label" => {
                json.begin_array()?;
                while json.element()? {
                    let label = owned(json.text_if_any()?.unwrap_or_default())?;
                    json.take(2 * (size_of::<String>() + label.len()))?;
                    self.label.try_push(label)?;
                }
            },
        }
        Ok(())
    }

    fn text(&self, json: &mut Reader) -> Result<Vec<u8>> {
        let rows = self.label.len();
        if self.time.len() != rows || self.depth.len() != rows {
            return Err(json.error(message!("The columns of `prof` differ in length.")));
        }
        let mut order = Vec::new();
        for row in 0..rows {
            order.try_push(row)?;
        }
        let whole = |number: f64| crate::model::whole(number).unwrap_or(0);
        sort_by_key(&mut order, |&row| {
            // Innermost first.
            (whole(self.time[row]), Reverse(whole(self.depth[row])))
        })?;
        let mut text = Vec::new();
        let mut out = Growing(&mut text);
        let failed = crate::io::save::failed;
        let microseconds = self.interval.unwrap_or(10.0) * 1e3;
        writeln!(out, "line profiling: sample.interval={microseconds:.0}").map_err(failed)?;
        for (number, file) in (1..).zip(&self.files) {
            writeln!(out, "#File {number}: {}", one_line(&file.name)).map_err(failed)?;
        }
        for (at, sample) in order
            .chunk_by(|&a, &b| self.time[a] == self.time[b])
            .enumerate()
        {
            json.check(at)?;
            for (position, &row) in sample.iter().enumerate() {
                json.take(2 * self.label[row].len() + 32)?;
                let place = self.place(row);
                if position > 0 || !self.is_code(row) {
                    write!(out, "\"{}\" ", one_line(&self.label[row])).map_err(failed)?;
                }
                if let Some((file, line)) = place {
                    write!(out, "{file}#{line} ").map_err(failed)?;
                }
            }
            writeln!(out).map_err(failed)?;
        }
        Ok(text)
    }

    /// The number of the file and the line from which a function was called.
    fn place(&self, row: usize) -> Option<(usize, i64)> {
        let number = |column: &[f64]| crate::model::whole(*column.get(row)?);
        let file = usize::try_from(number(&self.file)?).ok()?;
        let line = number(&self.line)?;
        ((1..=self.files.len()).contains(&file) && (1..=i64::from(i32::MAX)).contains(&line))
            .then_some((file, line))
    }

    /// Whether the label of a row is the code at its place.
    fn is_code(&self, row: usize) -> bool {
        let code = || {
            let (file, line) = self.place(row)?;
            let line = usize::try_from(line).ok()?;
            self.files.get(file - 1)?.content.lines().nth(line - 1)
        };
        code().is_some_and(|code| code.trim() == self.label[row].trim())
    }
}

impl File {
    fn read(json: &mut Reader) -> Result<File> {
        let mut file = File::default();
        fields! { json,
            "filename" => file.name = owned(json.text_if_any()?.unwrap_or_default())?,
            "content" => file.content = owned(json.text_if_any()?.unwrap_or_default())?,
        }
        json.take(2 * (file.name.len() + file.content.len()) + 64)?;
        Ok(file)
    }
}

/// Names with line breaks would end the line of a sample.
fn one_line(text: &str) -> impl std::fmt::Display {
    struct OneLine<'t>(&'t str);
    impl std::fmt::Display for OneLine<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            for (at, part) in self.0.split(['\n', '\r']).enumerate() {
                f.write_str(if at > 0 { " " } else { "" })?;
                f.write_str(part)?;
            }
            Ok(())
        }
    }
    OneLine(text)
}
