//! A passage: lines of prose that belong together, without the marks of their comment.

/// A comment over one or more lines, or a Markdown file.
#[derive(Debug, PartialEq, Eq)]
pub struct Passage {
    pub lines: Vec<Line>,
    /// Whether the passage is a Markdown file. In comments, indentation suffices to set an example
    /// apart; in Markdown it has to follow an empty line.
    pub is_markdown: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the line in its file, from 1.
    pub number: usize,
    /// The text after the mark of the comment and one space.
    pub text: String,
    /// The columns of the line in its file, with indentation and mark.
    pub columns: usize,
}
