//! stub
use crate::cancel::Stop;
use crate::error::Result;
use crate::input::Origin;
use crate::model::Profile;
use crate::problems::Problems;
use std::io::Read;
use std::path::Path;
pub fn read_path(_path: &Path, _origin: Origin, _stop: Stop) -> Result<(Profile, Problems)> {
    Err(crate::Error::Unsupported("not yet".to_owned()))
}
pub fn read(_input: impl Read, _origin: Origin, _stop: Stop) -> Result<(Profile, Problems)> {
    Err(crate::Error::Unsupported("not yet".to_owned()))
}
