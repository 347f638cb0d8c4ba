//! The last whole stacks. They complete those of which only a part is known.

use crate::chain::Called;
use crate::stack::Stack;
use profile_core::error::Result;
use profile_core::limits::memory::TryGrow;

/// The number of stacks that are kept.
const MOST: usize = 64;
/// Deeper stacks are not kept. They change less often than they are read.
const DEEPEST: usize = 500;

#[derive(Debug, Default)]
pub struct Recent {
    stacks: Vec<Whole>,
    /// The number of the oldest stack.
    oldest: usize,
}

#[derive(Debug, Default)]
struct Whole {
    stack: Stack,
    calls: Vec<Called>,
    /// The byte code or the srcref of the innermost function.
    code: u64,
}

impl Recent {
    /// Keeps a stack, its calls, and the byte code or the srcref of the innermost function, in place of the oldest one.
    pub fn keep(&mut self, stack: &Stack, calls: &[Called], code: u64) -> Result<()> {
        if calls.len() > DEEPEST {
            return Ok(());
        }
        if self.stacks.len() < MOST {
            self.stacks.try_push(Whole::default())?;
            self.oldest = self.stacks.len() - 1;
        }
        let whole = &mut self.stacks[self.oldest];
        self.oldest = (self.oldest + 1) % MOST;
        whole.calls.clear();
        whole.calls.try_extend(calls)?;
        whole.stack.clone_from(stack);
        whole.code = code;
        Ok(())
    }

    /// The stack with the highest rank, or the last one of these. Stacks without a rank are not considered.
    pub fn best<R: Ord>(&self, rank: impl Fn(&[Called], u64) -> Option<R>) -> Option<&Stack> {
        let (newer, older) = self.stacks.split_at(self.oldest.min(self.stacks.len()));
        let from_oldest = older.iter().chain(newer);
        let ranked =
            from_oldest.filter_map(|whole| Some((rank(&whole.calls, whole.code)?, &whole.stack)));
        // The last one of several maxima.
        ranked
            .max_by(|one, other| one.0.cmp(&other.0))
            .map(|(_, stack)| stack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::calls;

    /// A stack that is recognized by its code.
    fn keep(recent: &mut Recent, code: u64) {
        recent
            .keep(
                &Stack {
                    is_cut: code % 2 == 1,
                    ..Stack::default()
                },
                &calls(),
                code,
            )
            .unwrap();
    }

    #[test]
    fn the_last_ones_are_kept() {
        let mut recent = Recent::default();
        for code in 0..1000 {
            keep(&mut recent, code);
            let find = |wanted| {
                recent
                    .best(|_, code| (code == wanted).then_some(()))
                    .is_some()
            };
            let oldest = (code + 1).saturating_sub(MOST as u64);
            assert!(find(code) && find(oldest));
            assert!(oldest == 0 || !find(oldest - 1));
        }
    }

    #[test]
    fn of_equal_ones_the_last_is_taken() {
        let mut recent = Recent::default();
        for code in 1..=101 {
            keep(&mut recent, code);
            let last = recent.best(|_, _| Some(())).unwrap();
            assert_eq!(last.is_cut, code % 2 == 1);
        }
        assert!(!recent.best(|_, code| Some(code % 2 == 0)).unwrap().is_cut);
    }

    #[test]
    fn deep_stacks_are_not_kept() {
        let mut recent = Recent::default();
        let deep = vec![calls()[0]; DEEPEST + 1];
        recent.keep(&Stack::default(), &deep, 1).unwrap();
        assert!(recent.best(|_, _| Some(())).is_none());
    }
}
