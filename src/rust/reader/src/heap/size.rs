//! The size of R's heap, without a look at its objects in pages.

use super::damage::Damage;
use super::lists::Lists;
use profile_core::error::Result;
use profile_runtime::cycle::Cycle;
use profile_runtime::heap::NEXT;
use profile_runtime::memory::View;
use profile_runtime::node::Node;
use profile_runtime::objects::{CELL, DATA};

/// The bytes of all pages, and of all objects outside of pages by their lengths. Two such sizes differ by what R has
/// allocated or freed.
pub fn size<'m>(memory: &mut impl View<'m>, lists: &Lists) -> Result<u64> {
    let layout = lists.layout;
    let mut sum: u64 = 0;
    for class in layout.page_classes() {
        let count = lists.class(memory, class)?.page_count();
        sum = sum.saturating_add(u64::from(count) * layout.page as u64);
    }
    for class in layout.large_classes() {
        let class = lists.class(memory, class)?;
        for list in class.lists() {
            let mut address = list.first;
            let mut cycle = Cycle::default();
            while address != list.head {
                if cycle.has(address) {
                    return Err(Damage::Objects(class.number()).into());
                }
                let object = memory.view(address, CELL).ok_or(Damage::Object(address))?;
                let node = Node::new(object);
                sum = sum.saturating_add((DATA as u64).saturating_add(node.data()));
                address = node.word(NEXT);
            }
        }
    }
    Ok(sum)
}
