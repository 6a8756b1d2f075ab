//! The links and headings of a Markdown page.

use std::collections::HashSet;

use crate::prose::markdown::{self, Kind};

pub struct Page {
    pub links: Vec<Link>,
    /// The text of each heading, without marks of Markdown.
    pub headings: HashSet<String>,
    /// The anchor of each heading, as GitHub makes it.
    pub anchors: HashSet<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// The line on which the link's target ends.
    pub line: usize,
    pub target: String,
}

impl Page {
    pub fn parse(text: &str) -> Page {
        let passage = markdown::passage(text);
        let mut page =
            Page { links: Vec::new(), headings: HashSet::new(), anchors: HashSet::new() };
        // A link may go on in the next line of its paragraph.
        let mut paragraph = String::new();
        for (line, kind) in passage.lines.iter().zip(markdown::kinds(&passage)) {
            if kind != Kind::Text {
                paragraph.clear();
            }
            match kind {
                Kind::Blank | Kind::Code => continue,
                Kind::LinkDefinition => {
                    let address = line.text.split_once("]:").map_or("", |(_, address)| address);
                    page.links.push(Link { line: line.number, target: address.trim().to_owned() });
                    continue;
                }
                Kind::Heading => page.add_heading(line.text.trim()),
                Kind::Text | Kind::TableRow => {}
            }
            let known = targets(&paragraph).len();
            paragraph.push_str(line.text.trim());
            paragraph.push(' ');
            for target in targets(&paragraph).split_off(known) {
                page.links.push(Link { line: line.number, target });
            }
        }
        page
    }

    fn add_heading(&mut self, line: &str) {
        let heading = plain(line.trim_start_matches('#').trim());
        let anchor = anchor(&heading);
        let later = (1..).map(|number| format!("{anchor}-{number}"));
        let mut anchors = std::iter::once(anchor.clone()).chain(later);
        let free = anchors.find(|anchor| !self.anchors.contains(anchor));
        self.anchors.extend(free);
        self.headings.insert(heading);
    }
}

/// The targets of the links and pictures in a text, in the order of their ends. Code has no links.
fn targets(text: &str) -> Vec<String> {
    let text = without_code(text);
    let ends = text.match_indices("](").map(|(at, mark)| &text[at + mark.len()..]);
    ends.filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split(' ').next().unwrap_or("").to_owned())
        .collect()
}

/// A text without its spans of code. A span that has no end is no code.
fn without_code(text: &str) -> String {
    let mut outside = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (before, span) = rest.split_at(start);
        outside.push_str(before);
        let mark = &span[..ticks];
        match span[ticks..].find(mark) {
            Some(length) => rest = &span[ticks + length + ticks..],
            None => {
                outside.push_str(mark);
                rest = &span[ticks..];
            }
        }
    }
    outside + rest
}

/// A heading's text: links become their names, and marks of code and emphasis disappear.
fn plain(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, link)) = rest.split_once('[') {
        text.push_str(before);
        match link.split_once("](").and_then(|(name, rest)| Some((name, rest.split_once(')')?.1))) {
            Some((name, after)) => {
                text.push_str(name);
                rest = after;
            }
            None => {
                text.push('[');
                rest = link;
            }
        }
    }
    text.push_str(rest);
    text.replace(['`', '*'], "")
}

/// GitHub's anchor of a heading: letters, digits, hyphens and underscores in lower case, and a
/// hyphen for each blank.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = heading.to_lowercase();
    lower.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Vec<(usize, String)> {
        Page::parse(text).links.into_iter().map(|link| (link.line, link.target)).collect()
    }

    fn at(line: usize, target: &str) -> (usize, String) {
        (line, target.to_owned())
    }

    #[test]
    fn links_stand_in_text_tables_headings_and_definitions() {
        let text = "# [a](1)\n[b](2) and ![c](3)\n\n| [d](4 \"title\") |\n\n[e]: 5\n";
        assert_eq!(links(text), [at(1, "1"), at(2, "2"), at(2, "3"), at(4, "4"), at(6, "5")]);
    }

    #[test]
    fn a_link_goes_on_in_the_next_line() {
        assert_eq!(links("[a](1) [b\nc](2) d\n"), [at(1, "1"), at(2, "2")]);
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(links("`[a](1)` [`b`](2)\n\n    [c](3)\n\n```\n[d](4)\n```\n"), [at(1, "2")]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let cases = [
            ("What `--check` reports", "what---check-reports"),
            ("lock_all, and so on", "lock_all-and-so-on"),
            ("5. [Two hosts](hosts.md)", "5-two-hosts"),
            ("Rust's types and MPI's", "rusts-types-and-mpis"),
        ];
        for (heading, expected) in cases {
            let page = Page::parse(&format!("## {heading}\n"));
            assert!(page.anchors.contains(expected), "{:?}", page.anchors);
        }
    }

    #[test]
    fn equal_headings_have_numbered_anchors() {
        let page = Page::parse("# A\n## A\n### A\n");
        assert_eq!(page.anchors, ["a", "a-1", "a-2"].map(str::to_owned).into());
    }

    #[test]
    fn headings_in_code_are_none() {
        assert_eq!(Page::parse("```\n# A\n```\n").anchors.len(), 0);
    }
}
