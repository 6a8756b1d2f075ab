//! The kinds of Markdown's lines: text, or a form of its own such as a table's row.

use super::passage::{Line, Passage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Blank,
    Heading,
    TableRow,
    /// A line of a fenced or an indented block, or the fence itself.
    Code,
    LinkDefinition,
}

/// A Markdown file as one passage.
pub fn passage(text: &str) -> Passage {
    let lines = text.lines().enumerate().map(|(index, text)| Line {
        number: index + 1,
        text: text.to_owned(),
        columns: text.chars().count(),
    });
    Passage { lines: lines.collect(), is_markdown: true }
}

/// The kind of each line of a passage.
pub fn kinds(passage: &Passage) -> Vec<Kind> {
    const CODE_INDENT: usize = 4;
    let mut fence: Option<&str> = None;
    // The column at which the text of the innermost list item begins.
    let mut item_indent = 0;
    let mut previous = Kind::Blank;
    let mut kinds = Vec::with_capacity(passage.lines.len());
    for line in &passage.lines {
        let text = line.text.trim_start();
        let indent = line.text.len() - text.len();
        let may_be_code = !passage.is_markdown || matches!(previous, Kind::Blank | Kind::Code);
        let kind = if let Some(open) = fence {
            if text.starts_with(open) {
                fence = None;
            }
            Kind::Code
        } else if text.is_empty() {
            // A blank line within a block belongs to no text either way.
            Kind::Blank
        } else if let Some(open) = ["```", "~~~"].into_iter().find(|open| text.starts_with(open)) {
            fence = Some(open);
            Kind::Code
        } else if indent >= item_indent + CODE_INDENT && may_be_code {
            Kind::Code
        } else if text.starts_with('|') {
            Kind::TableRow
        } else if is_heading(text) {
            Kind::Heading
        } else if is_link_definition(text) {
            Kind::LinkDefinition
        } else {
            Kind::Text
        };
        if kind != Kind::Code && kind != Kind::Blank {
            match item_mark(text) {
                Some(width) => item_indent = indent + width,
                None if indent < item_indent => item_indent = 0,
                None => {}
            }
        }
        previous = kind;
        kinds.push(kind);
    }
    kinds
}

/// The width of the mark that begins a list item, with the blank after it.
pub fn item_mark(text: &str) -> Option<usize> {
    if text.starts_with("- ") || text.starts_with("* ") || text.starts_with("+ ") {
        return Some(2);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let is_number = digits > 0 && [". ", ") "].iter().any(|end| text[digits..].starts_with(end));
    is_number.then_some(digits + 2)
}

fn is_heading(text: &str) -> bool {
    let level = text.len() - text.trim_start_matches('#').len();
    (1..=6).contains(&level) && text[level..].starts_with(' ')
}

/// Whether a line gives a link its address: `[name]: address`.
fn is_link_definition(text: &str) -> bool {
    let name = text.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    name.is_some_and(|(name, address)| !name.contains(']') && !address.trim().contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::*;

    #[test]
    fn lines_have_their_kinds() {
        let text = "# Head\ntext\n\n| a | b |\n```rust\n# code\n```\n[a]: b\n[a]: b c\n#text\n";
        let expected =
            [Heading, Text, Blank, TableRow, Code, Code, Code, LinkDefinition, Text, Text];
        assert_eq!(kinds(&passage(text)), expected);
    }

    #[test]
    fn indented_code_follows_a_blank_line() {
        let text = "text\n    more text\n\n    code\n    code\ntext\n";
        assert_eq!(kinds(&passage(text)), [Text, Text, Blank, Code, Code, Text]);
    }

    #[test]
    fn a_paragraph_of_a_list_item_is_no_code() {
        let text = "10. item\n\n    text\n\n        code\n\ntext\n\n    code\n";
        let expected = [Text, Blank, Text, Blank, Code, Blank, Text, Blank, Code];
        assert_eq!(kinds(&passage(text)), expected);
    }

    #[test]
    fn indentation_sets_code_in_comments_apart() {
        let comment = Passage { is_markdown: false, ..passage("text\n    code\ntext\n") };
        assert_eq!(kinds(&comment), [Text, Code, Text]);
    }
}
