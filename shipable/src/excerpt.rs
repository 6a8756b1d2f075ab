//! Excerpts: the beginnings of long texts in messages.
//!
//! A text from a peer may have any length, and the notation of a type may list millions of blocks.

use std::fmt::{self, Display, Write};

/// A writer that keeps a limited number of characters. A longer text ends in dots.
///
/// Writing more than the limit is an error, so that a `Display` implementation can stop early.
///
/// ```
/// use std::fmt::Write;
///
/// let mut beginning = shipable::excerpt::Excerpt::new(5);
/// write!(beginning, "{}", 123)?;
/// assert!(write!(beginning, "{}", 456).is_err());
/// assert_eq!(beginning.into_text(), "12345...");
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[derive(Debug)]
pub struct Excerpt {
    text: String,
    room: usize,
}

impl Excerpt {
    /// An excerpt of at most `most` characters.
    pub fn new(most: usize) -> Excerpt {
        Excerpt { text: String::new(), room: most }
    }

    /// Ends the text in dots.
    ///
    /// # Errors
    /// Always, so that the writer stops.
    pub fn end(&mut self) -> fmt::Result {
        self.text.push_str("...");
        Err(fmt::Error)
    }

    /// The text written so far.
    pub fn into_text(self) -> String {
        self.text
    }
}

impl Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.room == 0 {
                return self.end();
            }
            self.text.push(letter);
            self.room -= 1;
        }
        Ok(())
    }
}

/// The first `most` characters of a value's display, and dots if there are more.
///
/// ```
/// assert_eq!(shipable::excerpt::excerpt(&12345, 3), "123...");
/// assert_eq!(shipable::excerpt::excerpt(&"all", 3), "all");
/// ```
pub fn excerpt(displayed: &dyn Display, most: usize) -> String {
    let mut excerpt = Excerpt::new(most);
    // The error means that the excerpt is full.
    let _ = write!(excerpt, "{displayed}");
    excerpt.text
}
