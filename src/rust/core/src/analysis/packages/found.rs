//! The environments that were found for a name.

use super::environments::{EnvironmentId, GLOBAL, Home};
use crate::error::Result;
use crate::limits::memory::TryGrow;

/// Homes that were found.
#[derive(Debug, Default)]
pub struct Found {
    pub environments: Vec<EnvironmentId>,
    pub is_unknown: bool,
}

impl Found {
    pub fn of(homes: impl Iterator<Item = Home>) -> Result<Found> {
        let mut found = Found::default();
        for home in homes {
            found.add(home)?;
        }
        Ok(found)
    }

    pub fn add(&mut self, home: Home) -> Result<()> {
        match home {
            None => self.is_unknown = true,
            Some(home) if self.environments.contains(&home) => {}
            Some(home) => self.environments.try_push(home)?,
        }
        Ok(())
    }

    pub fn add_bound(&mut self, home: Option<Home>) -> Result<()> {
        home.map_or(Ok(()), |home| self.add(home))
    }

    pub fn add_all(&mut self, other: &Found) -> Result<()> {
        self.is_unknown |= other.is_unknown;
        let mut others = other.environments.iter();
        others.try_for_each(|&home| self.add(Some(home)))
    }

    pub fn is_empty(&self) -> bool {
        self.environments.is_empty() && !self.is_unknown
    }

    /// Whether all are functions of packages.
    pub fn is_of_package(&self) -> bool {
        !self.is_empty() && !self.is_unknown && !self.environments.contains(&GLOBAL)
    }
}
