//! A stack as bytes: as it is kept while vectors are recorded, and read when that has ended.
//!
//! Numbers are little endian. A text is the number of a text of the record, or [`NONE`].
//!
//! | part     | content                                                                                      |
//! |----------|----------------------------------------------------------------------------------------------|
//! | texts    | their number (32 bits), and for each of them its length (32 bits) and its bytes (UTF-8)       |
//! | about    | the mark (64 bits), whether it is a conversion, whether outer calls are missing (a byte each) |
//! | toplevel | file (a text), line (32 bits)                                                                |
//! | span     | ids of the trace and the span (24 bytes), key (a byte) and value (a text) of its label       |
//! | frames   | for each of them, from the innermost one on: name, file, line, kind of package, package      |

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use profile_core::model::{StringId, Strings};
use profile_reader::stack::frames::{Cut, Frame, Package, Place, Stack};
use profile_reader::stack::spans::{KEYS, Span, SpanIds};
use std::collections::HashMap;

/// No text, and the byte for no label and no span.
const NONE: u32 = u32::MAX;
const NO_LABEL: u8 = 0xfe;
const NO_SPAN: u8 = 0xff;

/// How the package of a function is known.
const UNKNOWN: u8 = 0;
const WITHOUT: u8 = 1;
const NAMED: u8 = 2;

/// What distinguishes vectors of the same stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About {
    /// See [`super::state::mark`].
    pub mark: u64,
    pub is_conversion: bool,
}

/// Writes records. The memory that it uses is kept for the next one.
#[derive(Debug, Default)]
pub struct Writer {
    numbers: HashMap<StringId, u32, foldhash::fast::RandomState>,
    texts: Vec<u8>,
    body: Vec<u8>,
    record: Vec<u8>,
}

impl Writer {
    /// The record of a stack, of whose calls the `most` innermost ones are kept.
    pub fn write(
        &mut self,
        about: About,
        stack: &Stack,
        most: usize,
        texts: &Strings,
    ) -> Result<&[u8]> {
        self.numbers.clear();
        self.texts.clear();
        self.body.clear();
        self.record.clear();
        let is_cut = stack.cut.is_some() || stack.frames.len() > most;
        self.put(&about.mark.to_le_bytes())?;
        self.put(&[u8::from(about.is_conversion), u8::from(is_cut)])?;
        self.place(stack.toplevel.filter(|_| !is_cut), texts)?;
        self.span(stack.span, texts)?;
        for frame in stack.frames.iter().take(most) {
            self.text(Some(frame.name), texts)?;
            self.place(frame.place, texts)?;
            let (kind, package) = match frame.package {
                Package::Unknown => (UNKNOWN, None),
                Package::None => (WITHOUT, None),
                Package::Named(package) => (NAMED, Some(package)),
            };
            self.put(&[kind])?;
            self.text(package, texts)?;
        }
        let count = self.numbers.len() as u32;
        self.record.try_extend(&count.to_le_bytes())?;
        self.record.try_extend(&self.texts)?;
        self.record.try_extend(&self.body)?;
        Ok(&self.record)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.body.try_extend(bytes)
    }

    fn place(&mut self, place: Option<Place>, texts: &Strings) -> Result<()> {
        self.text(place.map(|place| place.file), texts)?;
        self.put(&place.map_or(0, |place| place.line).to_le_bytes())
    }

    fn span(&mut self, span: Option<Span>, texts: &Strings) -> Result<()> {
        let ids = span.map(|span| span.ids);
        self.put(&ids.map_or([0; 16], |ids| ids.trace_id))?;
        self.put(&ids.map_or([0; 8], |ids| ids.span_id))?;
        let label = span.and_then(|span| span.label);
        let key = label.and_then(|(key, _)| KEYS.iter().position(|known| *known == key));
        let without = if span.is_some() { NO_LABEL } else { NO_SPAN };
        self.put(&[key.map_or(without, |key| key as u8)])?;
        self.text(label.map(|(_, value)| value), texts)
    }

    fn text(&mut self, id: Option<StringId>, texts: &Strings) -> Result<()> {
        let next = self.numbers.len() as u32;
        let number = match id {
            None => NONE,
            Some(id) => match self.numbers.get(&id) {
                Some(&number) => number,
                None => {
                    let text = texts.get(id).as_bytes();
                    self.numbers.try_put(id, next)?;
                    self.texts.try_extend(&(text.len() as u32).to_le_bytes())?;
                    self.texts.try_extend(text)?;
                    next
                }
            },
        };
        self.put(&number.to_le_bytes())
    }
}

/// Reads a record, whose texts are added to `texts`. `None` if it is not one.
pub fn read(record: &[u8], texts: &mut Strings) -> Result<Option<(About, Stack)>> {
    let mut reader = Reader {
        rest: record,
        ids: Vec::new(),
    };
    if reader.texts(texts)?.is_none() {
        return Ok(None);
    }
    let mut stack = Stack::default();
    let Some(about) = reader.about(&mut stack) else {
        return Ok(None);
    };
    while !reader.rest.is_empty() {
        let Some(frame) = reader.frame() else {
            return Ok(None);
        };
        stack.frames.try_push(frame)?;
    }
    Ok(Some((about, stack)))
}

struct Reader<'a> {
    rest: &'a [u8],
    ids: Vec<StringId>,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn texts(&mut self, texts: &mut Strings) -> Result<Option<()>> {
        let Some(count) = self.number() else {
            return Ok(None);
        };
        for _ in 0..count {
            let length = self.number().map(|length| length as usize);
            let parts = length.and_then(|length| self.rest.split_at_checked(length));
            let text = parts.and_then(|(text, _)| std::str::from_utf8(text).ok());
            let (Some((_, rest)), Some(text)) = (parts, text) else {
                return Ok(None);
            };
            self.rest = rest;
            self.ids.try_push(texts.intern(text)?)?;
        }
        Ok(Some(()))
    }

    /// A text; the outer `None` if the record has no such text.
    fn text(&mut self) -> Option<Option<StringId>> {
        match self.number()? {
            NONE => Some(None),
            number => self.ids.get(number as usize).copied().map(Some),
        }
    }

    fn place(&mut self) -> Option<Option<Place>> {
        let file = self.text()?;
        let line = i32::from_le_bytes(self.take()?);
        Some(file.map(|file| Place { file, line }))
    }

    fn about(&mut self, stack: &mut Stack) -> Option<About> {
        let mark = u64::from_le_bytes(self.take()?);
        let [is_conversion, is_cut] = self.take()?;
        stack.cut = (is_cut != 0).then_some(Cut::Full);
        stack.toplevel = self.place()?;
        let ids = SpanIds {
            trace_id: self.take()?,
            span_id: self.take()?,
        };
        let [key] = self.take()?;
        let value = self.text()?;
        let label = KEYS.get(usize::from(key)).copied().zip(value);
        stack.span = (key != NO_SPAN).then_some(Span { ids, label });
        Some(About {
            mark,
            is_conversion: is_conversion != 0,
        })
    }

    fn frame(&mut self) -> Option<Frame> {
        let name = self.text()??;
        let place = self.place()?;
        let [kind] = self.take()?;
        let package = match (kind, self.text()?) {
            (NAMED, Some(package)) => Package::Named(package),
            (WITHOUT, None) => Package::None,
            (UNKNOWN, None) => Package::Unknown,
            _ => return None,
        };
        Some(Frame {
            name,
            called: name,
            place,
            code: None,
            package,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(texts: &mut Strings) -> Stack {
        let [f, g, file, package, value] =
            ["f", "g", "a.R", "stats", "job 1"].map(|text| texts.intern(text).unwrap());
        let place = Place { file, line: 7 };
        let frame = |name, place, package| Frame {
            name,
            called: name,
            place,
            code: None,
            package,
        };
        Stack {
            frames: vec![
                frame(f, Some(place), Package::Unknown),
                frame(g, None, Package::Named(package)),
                frame(f, None, Package::None),
            ],
            toplevel: Some(Place { file, line: 1 }),
            span: Some(Span {
                ids: SpanIds {
                    trace_id: [1; 16],
                    span_id: [2; 8],
                },
                label: Some((KEYS[1], value)),
            }),
            ..Stack::default()
        }
    }

    #[test]
    fn a_stack_comes_back() {
        let mut texts = Strings::default();
        let whole = stack(&mut texts);
        let about = About {
            mark: 1 << 40,
            is_conversion: true,
        };
        let mut writer = Writer::default();
        let record = writer.write(about, &whole, 10, &texts).unwrap().to_vec();
        // The same ids are given, in the order in which texts appear.
        assert_eq!(
            read(&record, &mut texts).unwrap(),
            Some((about, whole.clone()))
        );

        let bare = Stack::default();
        let record = writer.write(About::default(), &bare, 10, &texts).unwrap();
        let found = read(record, &mut texts).unwrap();
        assert_eq!(found, Some((About::default(), bare)));

        let record = writer.write(about, &whole, 2, &texts).unwrap();
        let (_, cut) = read(record, &mut texts).unwrap().unwrap();
        assert_eq!(cut.cut, Some(Cut::Full));
        assert_eq!(cut.frames, whole.frames[..2]);
        assert_eq!(cut.toplevel, None);
    }

    #[test]
    fn damaged_records_are_none() {
        let mut texts = Strings::default();
        let whole = stack(&mut texts);
        let mut writer = Writer::default();
        let record = writer.write(About::default(), &whole, 10, &texts);
        let record = record.unwrap().to_vec();
        let frame = 17;
        for length in 0..record.len() {
            let found = read(&record[..length], &mut texts).unwrap();
            let is_whole = (record.len() - length) % frame == 0 && found.is_some();
            assert_eq!(found.is_some(), is_whole, "{length}");
        }
        for position in 0..record.len() {
            let mut other = record.clone();
            other[position] ^= 0xff;
            // Another stack, or none.
            let _ = read(&other, &mut texts).unwrap();
        }
    }
}
