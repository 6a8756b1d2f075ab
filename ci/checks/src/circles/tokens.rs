//! Paths in the arguments and bodies of macros, which are token streams without a grammar.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path in a token stream.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenPath {
    pub segments: Vec<String>,
    /// Whether the path is that of a macro call.
    pub is_call: bool,
    pub line: usize,
}

/// The paths of a token stream that may lead to an item of the crate. Fields, methods, lifetimes,
/// variables of macros and code of tests are left out. A `use` yields each of its names.
pub fn paths(tokens: TokenStream) -> Vec<TokenPath> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<TokenPath>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Punct(mark) => match mark.as_char() {
                '#' if is_test_attribute(tokens.get(at + 1)) => {
                    at = end_of_item(&tokens, at + 2);
                    continue;
                }
                // A lifetime.
                '\'' => at += 1,
                '$' if !is_word(tokens.get(at + 1), "crate") => {
                    at = skip_path(&tokens, at + 1);
                    continue;
                }
                // A path from the crates' root, or from a type in angle brackets.
                ':' if is_colons(&tokens, at) => {
                    at = skip_path(&tokens, at + 2);
                    continue;
                }
                // A field or a method, unless the dots are those of a range.
                '.' if is_mark(tokens.get(at + 1), '.') => at += 1,
                '.' => at += usize::from(matches!(tokens.get(at + 1), Some(TokenTree::Ident(_)))),
                _ => {}
            },
            TokenTree::Ident(_) => {
                at = read_path(&tokens, at, Vec::new(), found);
                continue;
            }
            TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

/// Reads the path that begins at an identifier, after `prefix`. Returns the index after it.
fn read_path(
    tokens: &[TokenTree],
    mut at: usize,
    prefix: Vec<String>,
    found: &mut Vec<TokenPath>,
) -> usize {
    let mut segments = prefix;
    let line = tokens[at].span().start().line;
    while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
        if ident != "self" || segments.is_empty() {
            segments.push(ident.to_string());
        }
        at += 1;
        if !is_colons(tokens, at) {
            break;
        }
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(_)) => at += 2,
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                read_use_group(group.stream(), &segments, found);
                return at + 3;
            }
            // Generic arguments, or all names of a module.
            _ => {
                at += 2;
                break;
            }
        }
    }
    let is_call =
        is_mark(tokens.get(at), '!') && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
    found.push(TokenPath { segments, is_call, line });
    at
}

fn read_use_group(tokens: TokenStream, prefix: &[String], found: &mut Vec<TokenPath>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(ident) if ident == "as" => at += 2,
            TokenTree::Ident(_) => at = read_path(&tokens, at, prefix.to_vec(), found),
            _ => at += 1,
        }
    }
}

fn skip_path(tokens: &[TokenTree], at: usize) -> usize {
    match tokens.get(at) {
        Some(TokenTree::Ident(_)) => read_path(tokens, at, Vec::new(), &mut Vec::new()),
        _ => at,
    }
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    is_mark(tokens.get(at), ':') && is_mark(tokens.get(at + 1), ':')
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

fn is_test_attribute(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else { return false };
    matches!(group.stream().to_string().replace(' ', "").as_str(), "test" | "cfg(test)")
}

/// The index after the item or statement that begins at `at`.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Punct(mark) => matches!(mark.as_char(), ';' | ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let length = tokens.get(at..).and_then(|rest| rest.iter().position(is_end));
    length.map_or(tokens.len(), |length| at + length + 1)
}
