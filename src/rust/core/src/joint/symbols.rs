use super::recording::Module;
use crate::error::Result;
pub struct Symbols<'a>(&'a [Module]);
pub struct Symbol {
    pub name: String,
    pub system_name: String,
    pub filename: String,
    pub line: u32,
    pub column: u32,
}
impl<'a> Symbols<'a> {
    pub fn new(m: &'a [Module]) -> Self {
        Symbols(m)
    }
    pub fn at(&mut self, module: usize, address: u64) -> Result<Vec<Symbol>> {
        let m = &self.0[module];
        let n = format!(
            "{}+{:#x}",
            m.path.rsplit('/').next().unwrap_or_default(),
            address.wrapping_sub(m.bias)
        );
        Ok(vec![Symbol {
            name: n.clone(),
            system_name: n,
            filename: String::new(),
            line: 0,
            column: 0,
        }])
    }
    pub fn known(&self, _: usize) -> crate::model::Symbols {
        crate::model::Symbols::default()
    }
}
