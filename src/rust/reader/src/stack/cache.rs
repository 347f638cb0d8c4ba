//! Results of lookups, which are kept from stack to stack.

use profile_core::error::Result;
use profile_core::limits::memory::{TryGrow, TryPut};
use std::collections::HashMap;
use std::hash::Hash;

/// The maximum number of entries. Some processes repeatedly compile the code that they evaluate.
const MOST: usize = 1 << 16;

/// Results, of which those of a stack are kept only if it was read without a change of what it refers to.
#[derive(Debug)]
pub struct Cache<K, V> {
    results: HashMap<K, V, foldhash::fast::RandomState>,
    /// The keys that were added since the last `keep()`.
    new: Vec<K>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Cache<K, V> {
        Cache {
            results: HashMap::default(),
            new: Vec::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Cache<K, V> {
    pub fn get(&self, key: K) -> Option<V> {
        self.results.get(&key).copied()
    }

    pub fn put(&mut self, key: K, value: V) -> Result<()> {
        self.results.try_put(key, value)?;
        self.new.try_push(key)
    }

    /// Keeps the results that were added since the last call, because nothing changed while they were read.
    pub fn keep(&mut self) {
        self.new.clear();
        if self.results.len() > MOST {
            self.results.clear();
        }
    }

    /// Discards the results that were added since the last call of `keep()`.
    pub fn forget(&mut self) {
        for key in self.new.drain(..) {
            self.results.remove(&key);
        }
    }
}
