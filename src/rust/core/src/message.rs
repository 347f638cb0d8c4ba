//! [`message!`](macro@crate::message) formats error messages. Unlike `format!()` it does not abort if
//! memory runs out.

use std::fmt;

/// Formats an error message. If memory runs out, the message is truncated, which is better than
/// ending the process.
#[macro_export]
macro_rules! message {
    ($($arg:tt)*) => { $crate::message::text(format_args!($($arg)*)) };
}

/// The function that [`message!`](macro@crate::message) calls.
pub fn text(arguments: fmt::Arguments) -> String {
    let mut text = String::new();
    let _ = fmt::write(&mut GrowingText(&mut text), arguments);
    text
}

/// A text that can be extended as long as there is memory.
pub(crate) struct GrowingText<'t>(pub &'t mut String);

impl fmt::Write for GrowingText<'_> {
    #[expect(clippy::disallowed_methods, reason = "the memory is reserved")]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.try_reserve(text.len()).map_err(|_| fmt::Error)?;
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_message_is_formatted() {
        assert_eq!(message!("{} and {}", 1, "two"), "1 and two");
    }
}
