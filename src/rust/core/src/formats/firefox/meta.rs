//! Reads the metadata of a file, which apply to all its threads.

use super::columns::text;
use crate::error::Result;
use crate::formats::json_file::{JsonKind, Reader, fields};
use crate::json::Number;
use crate::limits::memory::owned;
use crate::model::{Period, ValueType};

/// Information that applies to all threads; times are in milliseconds.
#[derive(Default)]
pub struct Meta {
    pub uri: Option<String>,
    pub interval: Option<f64>,
    /// The time to which times refer, since 1970.
    pub origin: Option<f64>,
    /// When the recording began.
    pub recording: Option<f64>,
    pub product: Option<String>,
    cpu_unit: Option<String>,
}

impl Meta {
    pub fn read(&mut self, json: &mut Reader) -> Result<()> {
        fields! { json,
            "interval" => self.interval = number(json)?,
            "startTime" => self.origin = number(json)?.filter(|&start| start > 0.0),
            "profilingStartTime" => self.recording = number(json)?,
            "product" => self.product = text(json)?,
            "sampleUnits" if json.peek()? == JsonKind::Object => {
                fields! { json,
                    "threadCPUDelta" => self.cpu_unit = text(json)?,
                }
            },
        }
        Ok(())
    }

    pub fn cpu_unit(&self) -> &'static str {
        match self.cpu_unit.as_deref() {
            Some("ns") => "nanoseconds",
            Some("µs") | None => "microseconds",
            Some(_) => "cycles",
        }
    }

    /// When the recording began, in milliseconds since 1970.
    pub fn start(&self) -> Option<f64> {
        Some(self.origin? + self.recording.unwrap_or(0.0))
    }

    pub fn period(&self) -> Result<Option<Period>> {
        let Some(interval) = self.interval.filter(|interval| *interval > 0.0) else {
            return Ok(None);
        };
        Ok(Some(Period {
            value: interval,
            exact: None,
            type_: Some(ValueType {
                name: owned("time")?,
                unit: owned("milliseconds")?,
            }),
        }))
    }
}

fn number(json: &mut Reader) -> Result<Option<f64>> {
    Ok(json.number_if_any()?.map(Number::real))
}
