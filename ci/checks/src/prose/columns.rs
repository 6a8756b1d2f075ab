//! Lines of prose that are too long.

use super::markdown::{self, Kind};
use super::passage::{Line, Passage};

/// Columns that a line of prose may take, with indentation and the mark of its comment.
const MOST: usize = 100;

/// The lines of text that are too long and could be broken. Headings, tables, code and definitions
/// of links are no text. A link that fills its line can't be broken, nor can an address.
pub fn overlong(passages: &[Passage]) -> Vec<&Line> {
    let of_passage = |passage: &'_ Passage| {
        let kinds = markdown::kinds(passage);
        kinds.into_iter().map(|kind| kind == Kind::Text).collect::<Vec<_>>()
    };
    let lines = passages.iter().flat_map(|passage| passage.lines.iter().zip(of_passage(passage)));
    let texts = lines.filter(|(_, is_text)| *is_text).map(|(line, _)| line);
    texts.filter(|line| line.columns > MOST && can_be_broken(line)).collect()
}

fn can_be_broken(line: &Line) -> bool {
    let text = line.text.trim();
    let text = &text[markdown::item_mark(text).unwrap_or(0)..];
    if is_link(text) {
        return false;
    }
    let before = line.columns - text.chars().count();
    let addresses = text.split(' ').filter(|word| word.contains("://"));
    addresses.map(|word| word.chars().count()).all(|width| before + width <= MOST)
}

/// Whether a text is one link, with a mark of punctuation or none.
fn is_link(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', ';', ':']);
    let rest = text.strip_prefix('!').unwrap_or(text).strip_prefix('[');
    let Some((name, address)) = rest.and_then(|rest| rest.split_once("](")) else { return false };
    !name.contains('[') && address.find(')') == Some(address.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose::{comments, markdown};

    fn words(columns: usize) -> String {
        "four ".repeat(columns).chars().take(columns - 1).chain(['d']).collect()
    }

    fn is_overlong_markdown(text: &str) -> bool {
        !overlong(&[markdown::passage(text)]).is_empty()
    }

    #[test]
    fn a_comment_of_101_columns_is_too_long() {
        for (columns, expected) in [(100, 0), (101, 1)] {
            let rust = format!("fn f() {{\n    // {}\n}}\n", words(columns - 7));
            assert_eq!(overlong(&comments::of_rust(&rust)).len(), expected, "{rust}");
            let after_code = format!("let a = 1; // {}\n", words(columns - 14));
            assert_eq!(overlong(&comments::of_rust(&after_code)).len(), expected, "{after_code}");
            let c = format!("/* {} */\n", words(columns - 6));
            assert_eq!(overlong(&comments::of_c(&c)).len(), expected, "{c}");
            let shell = format!("# {}\n", words(columns - 2));
            assert_eq!(overlong(&comments::of_shell(&shell)).len(), expected, "{shell}");
            assert_eq!(is_overlong_markdown(&words(columns)), expected == 1);
        }
    }

    #[test]
    fn code_without_a_comment_may_be_long() {
        let code = format!("let a = \"{}\";\n", words(200));
        assert_eq!(overlong(&comments::of_rust(&code)).len(), 0);
    }

    #[test]
    fn columns_are_characters() {
        assert!(!is_overlong_markdown(&"ä".repeat(100)));
        assert!(is_overlong_markdown(&"ä".repeat(101)));
    }

    #[test]
    fn a_table_row_may_be_long() {
        assert!(!is_overlong_markdown(&format!("| {} |", words(120))));
        assert!(is_overlong_markdown(&format!("{} | {}", words(60), words(60))));
    }

    #[test]
    fn code_and_headings_may_be_long() {
        let long = words(120);
        assert!(!is_overlong_markdown(&format!("text\n\n    {long}\n")));
        assert!(!is_overlong_markdown(&format!("```\n{long}\n```\n")));
        assert!(!is_overlong_markdown(&format!("## {long}\n")));
        let example = format!("/// ```\n/// {long}\n/// ```\n/// {long}\n");
        assert_eq!(overlong(&comments::of_rust(&example)).len(), 1);
    }

    #[test]
    fn links_that_cannot_be_broken_may_be_long() {
        let address = format!("https://example.org/{}", "a".repeat(100));
        assert!(!is_overlong_markdown(&format!("[a]: {address}")));
        assert!(!is_overlong_markdown(&format!("- [{}](b.md).", words(110))));
        assert!(!is_overlong_markdown(&format!("see {address}")));
        assert!(is_overlong_markdown(&format!("{} https://example.org", words(90))));
        assert!(is_overlong_markdown(&format!("[a](b.md) {} [c](d.md)", words(90))));
    }
}
