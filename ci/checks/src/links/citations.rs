//! Citations of a page's heading: the page's path, a comma, and the heading in quotes.

use crate::prose::passage::Passage;

#[derive(Debug, PartialEq, Eq)]
pub struct Citation {
    /// The line on which the citation begins.
    pub line: usize,
    /// The path of the page, from the project's root.
    pub page: String,
    pub heading: String,
}

/// The citations of a passage. A citation may go on in the next lines.
pub fn all(passage: &Passage) -> Vec<Citation> {
    let words = || passage.lines.iter().map(|line| line.text.split_whitespace());
    let text = words().flatten().collect::<Vec<_>>().join(" ");
    let numbers: Vec<usize> = (passage.lines.iter().zip(words()))
        .flat_map(|(line, words)| words.map(|_| line.number))
        .collect();

    let mut citations = Vec::new();
    for (at, mark) in text.match_indices(".md, \"") {
        let (before, after) = (&text[..at], &text[at + mark.len()..]);
        let start = before.rfind(|c: char| !is_of_path(c)).map_or(0, |at| at + 1);
        let Some((heading, _)) = after.split_once('"') else { continue };
        if !before[start..].contains('/') {
            continue;
        }
        citations.push(Citation {
            line: numbers[before[..start].matches(' ').count()],
            page: format!("{}.md", &before[start..]),
            heading: heading.to_owned(),
        });
    }
    citations
}

fn is_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/_-.".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose::comments;

    fn citations(rust: &str) -> Vec<(usize, String, String)> {
        let found = comments::of_rust(rust);
        let found = found.iter().flat_map(all);
        found.map(|citation| (citation.line, citation.page, citation.heading)).collect()
    }

    #[test]
    fn a_citation_is_a_path_and_a_heading_in_quotes() {
        let expected = [(1, "docs/a.md".to_owned(), "One two".to_owned())];
        assert_eq!(citations("// Fast (docs/a.md, \"One two\").\n"), expected);
        assert_eq!(citations("// Fast (docs/a.md, one two) and `a.md, \"b\"`.\n"), []);
    }

    #[test]
    fn a_citation_goes_on_in_the_next_line() {
        let expected = [(2, "docs/a.md".to_owned(), "One two".to_owned())];
        assert_eq!(citations("// Fast:\n// see docs/a.md,\n// \"One\n// two\".\n"), expected);
    }
}
