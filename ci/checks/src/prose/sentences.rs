//! Sentences that a reader should look at first. Their openings, words or lengths are signs of
//! prose that is hard to read. Many of them are right, so that they are only listed.

use super::markdown::{self, Kind};
use super::passage::Passage;

/// Openings that stand for a noun, or refer to another item's comment.
const OPENINGS: [&str; 8] =
    ["what", "who", "whose", "whoever", "that", "likewise", "the same", "as above"];
/// Words that have a plainer one, and the phrase that each of them is listed with.
const WORDS: [(&str, &str); 5] = [
    ("behind", "behind (after, in time)"),
    ("alone", "alone (only)"),
    ("tells", "tells (reports, returns)"),
    ("so many", "so many (n)"),
    ("so much", "so much (n)"),
];
/// Words that a sentence may have.
const MOST_WORDS: usize = 25;

/// A sentence to look at.
#[derive(Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The line on which the sentence begins.
    pub line: usize,
    pub reason: String,
    pub sentence: String,
}

/// The sentences of passages to look at, with every reason in one entry.
pub fn doubtful(passages: &[Passage]) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    for paragraph in passages.iter().flat_map(paragraphs) {
        for sentence in sentences(&paragraph) {
            let text: Vec<&str> = sentence.iter().map(|word| word.text.as_str()).collect();
            let text = text.join(" ");
            let reasons = reasons(&text);
            if !reasons.is_empty() {
                let reason = reasons.join("; ");
                doubts.push(Doubt { line: sentence[0].line, reason, sentence: text });
            }
        }
    }
    doubts
}

struct Word {
    text: String,
    line: usize,
}

/// The words of each paragraph, list item and table cell of a passage.
fn paragraphs(passage: &Passage) -> Vec<Vec<Word>> {
    let mut paragraphs: Vec<Vec<Word>> = vec![Vec::new()];
    let mut is_in_html_comment = false;
    for (line, kind) in passage.lines.iter().zip(markdown::kinds(passage)) {
        let text = line.text.trim();
        let is_html_comment = is_in_html_comment || text.starts_with("<!--");
        is_in_html_comment = is_html_comment && !text.contains("-->");
        let words = |text: &str| {
            let words = text.split_whitespace();
            words.map(|word| Word { text: word.to_owned(), line: line.number }).collect::<Vec<_>>()
        };
        let continues = paragraphs.len() - 1;
        match kind {
            Kind::Text if !is_html_comment => match markdown::item_mark(text) {
                Some(width) => paragraphs.push(words(&text[width..])),
                None => paragraphs[continues].extend(words(text)),
            },
            Kind::Heading => {
                paragraphs.push(words(text.trim_start_matches('#')));
                paragraphs.push(Vec::new());
            }
            Kind::TableRow => {
                paragraphs.extend(text.split('|').map(words));
                paragraphs.push(Vec::new());
            }
            _ => paragraphs.push(Vec::new()),
        }
    }
    paragraphs.retain(|words| !words.is_empty());
    paragraphs
}

/// Splits the words of a paragraph into sentences.
fn sentences(words: &[Word]) -> Vec<&[Word]> {
    let mut sentences = Vec::new();
    let mut from = 0;
    // Within inline code, marks end no sentence.
    let mut ticks = 0;
    for (at, word) in words.iter().enumerate() {
        ticks += word.text.matches('`').count();
        let next = words.get(at + 1).map(|next| next.text.as_str());
        if ticks % 2 == 0 && ends_sentence(&word.text, next) {
            sentences.push(&words[from..=at]);
            from = at + 1;
        }
    }
    if from < words.len() {
        sentences.push(&words[from..]);
    }
    sentences
}

fn ends_sentence(word: &str, next: Option<&str>) -> bool {
    const ABBREVIATIONS: [&str; 5] = ["e.g.", "i.e.", "etc.", "vs.", "cf."];
    let word = word.trim_end_matches(['"', ')', '*', '_', '”']);
    let begins = |next: &str| {
        let next = next.trim_start_matches(['"', '(', '*', '_', '“']);
        next.starts_with(|c: char| c.is_uppercase() || c.is_numeric() || matches!(c, '`' | '['))
    };
    word.ends_with(['.', '!', '?']) && !ABBREVIATIONS.contains(&word) && next.is_none_or(begins)
}

/// Why a sentence should be looked at.
fn reasons(sentence: &str) -> Vec<String> {
    let plain = without_code(sentence);
    let count = plain.split(' ').filter(|word| word.contains(char::is_alphanumeric)).count();
    let letters = |c: char| if c.is_alphanumeric() || c == '\'' { c } else { ' ' };
    let words = plain.to_lowercase().chars().map(letters).collect::<String>();
    let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut reasons = Vec::new();
    // A question may begin with any of these.
    let openings = OPENINGS.iter().filter(|_| !plain.ends_with('?'));
    for opening in openings.filter(|opening| words.starts_with(&format!(" {opening} "))) {
        reasons.push(format!("begins with {opening:?}"));
    }
    for (word, phrase) in WORDS {
        if words.contains(&format!(" {word} ")) {
            reasons.push(phrase.to_owned());
        }
    }
    if count > MOST_WORDS {
        reasons.push(format!("{count} words"));
    }
    reasons
}

/// A sentence with one word, `Code`, for every piece of inline code, and no addresses of links.
fn without_code(sentence: &str) -> String {
    let pieces = sentence.split('`').enumerate();
    let plain: String =
        pieces.map(|(at, piece)| if at % 2 == 1 { "Code" } else { piece }).collect();
    let mut text = String::new();
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        text += before;
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose::comments;

    fn reasons_of(text: &str) -> Vec<(usize, String)> {
        let doubts = doubtful(&comments::of_rust(text));
        doubts.into_iter().map(|doubt| (doubt.line, doubt.reason)).collect()
    }

    #[test]
    fn openings_and_words_are_listed_with_the_line_of_their_sentence() {
        let text = "/// A rank. What it\n/// sends. Likewise a put.\n/// It counts so\n/// many.\n";
        let expected = [
            (1, "begins with \"what\"".to_owned()),
            (2, "begins with \"likewise\"".to_owned()),
            (3, "so many (n)".to_owned()),
        ];
        assert_eq!(reasons_of(text), expected);
    }

    #[test]
    fn identifiers_and_code_are_not_listed() {
        assert_eq!(reasons_of("/// Calls `tells` and [`alone`].\nfn tells(behind: u8) {}\n"), []);
        assert_eq!(reasons_of("/// A call:\n/// ```\n/// f(alone);\n/// ```\n"), []);
        assert_eq!(reasons_of("/// `What` is a type.\n"), []);
    }

    #[test]
    fn a_sentence_of_26_words_is_listed() {
        assert_eq!(reasons_of(&format!("// A{}.\n", " word".repeat(24))), []);
        let long = format!("// A{}.\n", " word".repeat(25));
        assert_eq!(reasons_of(&long), [(1, "26 words".to_owned())]);
    }

    #[test]
    fn marks_within_words_and_code_end_no_sentence() {
        let text = format!("// See `a. B` in e.g. A or 1.2 or b.rs{}.\n", " word".repeat(20));
        assert_eq!(reasons_of(&text), [(1, "29 words".to_owned())]);
    }

    #[test]
    fn paragraphs_items_and_cells_are_sentences_of_their_own() {
        let half = " word".repeat(20);
        let text = format!("A{half}\n\nB{half}\n- C{half}\n- D{half}\n\n| E{half} | F{half} |\n");
        assert_eq!(doubtful(&[markdown::passage(&text)]), []);
    }

    #[test]
    fn a_question_may_begin_with_what() {
        assert_eq!(reasons_of("// What is a window?\n"), []);
    }
}
