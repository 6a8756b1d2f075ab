//! Lines of words, of which requests and replies consist.

/// The value of `key` in a line of `key=value` words.
pub fn word<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_ascii_whitespace()
        .find_map(|word| word.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}
