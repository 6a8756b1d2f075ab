//! The beginning of what a message shows: hostile text may be of any length, and a type may have millions of blocks.

use std::fmt::{self, Display, Write};

/// Text that takes no more than so many letters, and ends in dots then. Whoever writes beyond is refused, and need not go on.
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
    /// With room for `most` letters.
    pub fn new(most: usize) -> Excerpt {
        Excerpt { text: String::new(), room: most }
    }

    /// Ends in dots here.
    ///
    /// # Errors
    /// Always: nothing more is taken.
    pub fn end(&mut self) -> fmt::Result {
        self.text.push_str("...");
        Err(fmt::Error)
    }

    /// What it took.
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

/// The first `most` letters of what is displayed, and dots if there are more.
///
/// ```
/// assert_eq!(shipable::excerpt::excerpt(&12345, 3), "123...");
/// assert_eq!(shipable::excerpt::excerpt(&"all", 3), "all");
/// ```
pub fn excerpt(displayed: &dyn Display, most: usize) -> String {
    let mut excerpt = Excerpt::new(most);
    // What is cut has said so.
    let _ = write!(excerpt, "{displayed}");
    excerpt.text
}
