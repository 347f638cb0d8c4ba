//! The content of one profile of a file, for sampled and evented profiles.

use super::layout::{NO_UNIT, type_of};
use crate::error::Result;
use crate::formats::json_file::Reader;
use crate::json::Number;
use crate::limits::memory::{TryGrow, owned};
use crate::model::{Period, ValueType, is_exact, nearest, unit_of_time};

/// A profile of the file.
#[derive(Default)]
pub struct Recorded {
    pub name: Option<String>,
    pub unit: Option<String>,
    /// The name and the unit of the sample type, in files that this package wrote.
    pub sample_type: Option<[String; 2]>,
    /// The number of its run, whose other sample types are other profiles, and the period of the run, in files that this
    /// package wrote.
    pub run: Option<u32>,
    pub period: Option<Period>,
    pub start: Option<Number>,
    pub end: Option<Number>,
    pub stacks: Vec<u32>,
    pub weights: Vec<Number>,
}

impl Recorded {
    /// Adds a sample.
    pub fn add(&mut self, stack: u32, depth: usize, json: &mut Reader) -> Result<()> {
        json.take_samples(1, depth)?;
        self.stacks.try_push(stack)
    }

    /// Adds the weight of a sample.
    pub fn weigh(&mut self, weight: Number, json: &mut Reader) -> Result<()> {
        if let Number::Whole(number) = weight {
            if !is_exact(number) {
                json.problems.nearly(number, json.position() as usize);
            }
        }
        self.weights.try_push(weight)
    }

    pub fn value_type(&self) -> Result<ValueType> {
        let (name, unit) = match &self.sample_type {
            Some([name, unit]) => (name.as_str(), unit.as_str()),
            None => type_of(self.unit.as_deref().unwrap_or(NO_UNIT)),
        };
        Ok(ValueType {
            name: owned(name)?,
            unit: owned(unit)?,
        })
    }

    /// The duration in nanoseconds, if the unit is one of time.
    pub fn duration(&self) -> Option<i64> {
        let factor = unit_of_time(self.unit.as_deref()?)?;
        let passed = self.end?.real() - self.start?.real();
        nearest(passed * factor).filter(|&passed| passed > 0)
    }
}
