//! The comments of source files. Strings and character literals are skipped, since they may contain
//! the marks of comments.

use super::passage::{Line, Passage};

/// A line of a comment.
struct Found {
    line: Line,
    mark: &'static str,
    /// Whether code stands before the comment in its line.
    is_after_code: bool,
}

/// The comments of a Rust file.
pub fn of_rust(text: &str) -> Vec<Passage> {
    passages(Scanner::new(text, true).comments())
}

/// The comments of a C file.
pub fn of_c(text: &str) -> Vec<Passage> {
    passages(Scanner::new(text, false).comments())
}

/// The comments of a shell script, except the line that names its interpreter.
pub fn of_shell(text: &str) -> Vec<Passage> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if index == 0 && line.starts_with("#!") {
            continue;
        }
        if let Some((code, comment)) = split_shell(line) {
            let text = comment.strip_prefix(' ').unwrap_or(comment).to_owned();
            let line = Line { number: index + 1, text, columns: line.chars().count() };
            found.push(Found { line, mark: "#", is_after_code: !code.trim().is_empty() });
        }
    }
    passages(found)
}

/// Splits a shell line at the `#` that begins a comment: the first one that follows a blank outside
/// of quotes.
fn split_shell(line: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match quote {
            None if c == '#' && before.is_whitespace() => {
                return Some((&line[..at], &line[at + 1..]));
            }
            None if matches!(c, '"' | '\'') && before != '\\' => quote = Some(c),
            Some(open) if c == open && (open == '\'' || before != '\\') => quote = None,
            _ => {}
        }
        before = c;
    }
    None
}

/// Joins the comments of successive lines with one mark. A comment after code stands by itself.
fn passages(found: Vec<Found>) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut last: Option<(usize, &str)> = None;
    for Found { line, mark, is_after_code } in found {
        let number = line.number;
        match passages.last_mut() {
            Some(passage) if !is_after_code && last == Some((number - 1, mark)) => {
                passage.lines.push(line);
            }
            _ => passages.push(Passage { lines: vec![line], is_markdown: false }),
        }
        last = (!is_after_code).then_some((number, mark));
    }
    passages
}

/// Reads a file of Rust or C from its first to its last character.
struct Scanner<'a> {
    text: &'a str,
    is_rust: bool,
    /// The byte offset of the next character.
    at: usize,
    /// The byte offsets at which lines begin.
    starts: Vec<usize>,
    found: Vec<Found>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str, is_rust: bool) -> Scanner<'a> {
        let after_ends = text.match_indices('\n').map(|(end, _)| end + 1);
        let starts = std::iter::once(0).chain(after_ends).collect();
        Scanner { text, is_rust, at: 0, starts, found: Vec::new() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn comments(mut self) -> Vec<Found> {
        let mut before = ' ';
        while let Some(c) = self.rest().chars().next() {
            if self.rest().starts_with("//") {
                self.line_comment();
            } else if self.rest().starts_with("/*") {
                self.block_comment();
            } else if c == '"' {
                self.skip_string();
            } else if c == '\'' {
                self.skip_character();
            } else if let Some(hashes) = self.raw_string(before) {
                self.skip_raw_string(hashes);
            } else {
                self.at += c.len_utf8();
            }
            before = c;
        }
        self.found
    }

    /// Adds the part of a line between two offsets as a line of the comment that begins at offset
    /// `code_end` with a mark.
    fn add(&mut self, from: usize, to: usize, mark: &'static str, code_end: usize) {
        let index = self.starts.partition_point(|&start| start <= from) - 1;
        let start = self.starts[index];
        let whole = self.text[start..].lines().next().unwrap_or("");
        let text = self.text[from..to].trim_end();
        let line = Line {
            number: index + 1,
            text: text.strip_prefix(' ').unwrap_or(text).to_owned(),
            columns: whole.chars().count(),
        };
        let is_after_code = start < code_end && !self.text[start..code_end].trim().is_empty();
        self.found.push(Found { line, mark, is_after_code });
    }

    fn line_comment(&mut self) {
        const DOC_MARKS: [&str; 2] = ["///", "//!"];
        let from = self.at;
        let doc = DOC_MARKS.into_iter().find(|mark| self.is_rust && self.rest().starts_with(mark));
        let mark = doc.unwrap_or("//");
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        self.add(from + mark.len(), self.at, mark, from);
    }

    /// Reads a comment that may extend over several lines. Those of Rust may be nested.
    fn block_comment(&mut self) {
        let from = self.at;
        let mut depth = 0;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") && (self.is_rust || depth == 0) {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
            } else {
                let Some(c) = rest.chars().next() else { break };
                self.at += c.len_utf8();
            }
            if depth == 0 {
                break;
            }
        }
        let text = &self.text[from..self.at];
        let end = from + text.strip_suffix("*/").unwrap_or(text).len();
        let first = from + 2;
        let mut start = first;
        for line in self.text[first..end].split('\n') {
            let inner = line.trim_start();
            let blanks = line.len() - inner.len();
            // Most lines after the first begin with a star. So does the text of a doc comment.
            let skipped = match inner.starts_with('*') {
                true => blanks + 1,
                false if start == first => 0,
                false => blanks,
            };
            self.add(start + skipped, start + line.len(), "/*", from);
            start += line.len() + 1;
        }
    }

    fn skip_string(&mut self) {
        let mut is_escaped = false;
        self.at += 1;
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            if c == '"' && !is_escaped {
                return;
            }
            is_escaped = c == '\\' && !is_escaped;
        }
    }

    /// Skips a character literal, or the mark of a lifetime.
    fn skip_character(&mut self) {
        let mut next = self.rest().chars().skip(1);
        let literal = match (next.next(), next.next()) {
            (Some('\\'), Some(escaped)) => {
                let end = 2 + escaped.len_utf8();
                self.rest().get(end..).and_then(|rest| rest.find('\'')).map(|more| end + more + 1)
            }
            (Some(c), Some('\'')) => Some(2 + c.len_utf8()),
            _ => None,
        };
        self.at += literal.unwrap_or(1);
    }

    /// The number of `#` before the quote of the raw string that begins here. `None` if none does.
    fn raw_string(&self, before: char) -> Option<usize> {
        let is_word = before.is_alphanumeric() || before == '_';
        // `br` and `cr` begin raw strings too: there the letter before is the first of the word.
        let may_begin = self.is_rust && (!is_word || matches!(before, 'b' | 'c'));
        let rest = self.rest().strip_prefix('r').filter(|_| may_begin)?;
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        rest[hashes..].starts_with('"').then_some(hashes)
    }

    fn skip_raw_string(&mut self, hashes: usize) {
        self.at += 1 + hashes + 1;
        let end = format!("\"{}", "#".repeat(hashes));
        self.at += self.rest().find(&end).map_or(self.rest().len(), |length| length + end.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The passages, with a `/` between lines.
    fn texts(passages: &[Passage]) -> Vec<String> {
        let text = |passage: &Passage| {
            passage.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("/")
        };
        passages.iter().map(text).collect()
    }

    #[test]
    fn successive_comments_of_one_mark_are_one_passage() {
        let text = "//! a\n//! b\n\n/// c\n/// d\n// e\nfn f() {} // g\n// h\n";
        assert_eq!(texts(&of_rust(text)), ["a/b", "c/d", "e", "g", "h"]);
    }

    #[test]
    fn marks_in_literals_are_no_comments() {
        let text = "f(\"// a\\\"// b\", r#\"// \"c\"#, '\"', '\\'', br\"// d\"); // e\n";
        assert_eq!(texts(&of_rust(text)), ["e"]);
        assert_eq!(texts(&of_rust("fn f<'a>(x: &'a str) {} // \"a\"\n")), ["\"a\""]);
    }

    #[test]
    fn block_comments_lose_their_stars() {
        let text = "/* a\n * b\n   c */ int x; /* d */\n";
        assert_eq!(texts(&of_c(text)), ["a/b/c", "d"]);
        assert_eq!(texts(&of_rust("/* a /* b */ c */ // d\n")), ["a /* b */ c", "d"]);
    }

    #[test]
    fn lines_have_numbers_and_columns() {
        let line = &of_rust("\n    // ä b\n")[0].lines[0];
        assert_eq!((line.number, line.columns, line.text.as_str()), (2, 10, "ä b"));
    }

    #[test]
    fn shell_comments_begin_after_a_blank_outside_of_quotes() {
        let text = "#!/bin/bash\n# a\nx=${#y} # b\necho \"# c\" '# d'\necho a#b $#\n";
        assert_eq!(texts(&of_shell(text)), ["a", "b"]);
    }
}
