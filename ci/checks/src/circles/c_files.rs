//! The imports between the C files of a program: the functions of one file that another one names.
//! Headers declare and define no more than every file may use, so that an `#include` is no import.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::graph::Imports;

/// Adds the imports between the C files of a folder.
///
/// # Errors
/// A description of the folder or file that can't be read.
pub fn imports(folder: &Path, imports: &mut Imports) -> Result<(), String> {
    let at = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(|e| at(folder, &e))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
        files.push((path, words(&text)));
    }
    let mut definers: HashMap<&str, &Path> = HashMap::new();
    for (path, words) in &files {
        let shared = functions(words).into_iter().filter(|function| !function.is_static);
        definers.extend(shared.map(|function| (function.name, path.as_path())));
    }
    for (path, words) in &files {
        let own: Vec<&str> = functions(words).iter().map(|function| function.name).collect();
        for word in words.iter().filter(|word| !own.contains(&word.text.as_str())) {
            if let Some(definer) = definers.get(word.text.as_str()) {
                imports.add(path, definer, &word.text, word.line);
            }
        }
    }
    Ok(())
}

struct Function<'a> {
    name: &'a str,
    is_static: bool,
}

/// An identifier or a mark.
struct Word {
    text: String,
    line: usize,
    /// Whether it stands in a macro's definition.
    is_in_macro: bool,
}

/// The functions that a file defines: outside of braces, a name before the parentheses that a brace
/// follows.
fn functions(words: &[Word]) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let mut declaration: Vec<&str> = Vec::new();
    let mut depth = 0usize;
    for word in words.iter().filter(|word| !word.is_in_macro) {
        match word.text.as_str() {
            "{" => {
                let parenthesis = declaration.iter().position(|&word| word == "(");
                let name = parenthesis.and_then(|parenthesis| parenthesis.checked_sub(1));
                if let (0, Some(name), Some(&")")) = (depth, name, declaration.last()) {
                    let is_static = declaration.contains(&"static");
                    found.push(Function { name: declaration[name], is_static });
                }
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                declaration.clear();
            }
            ";" if depth == 0 => declaration.clear(),
            text if depth == 0 => declaration.push(text),
            _ => {}
        }
    }
    found
}

/// The identifiers and marks of a C file, without comments, literals, and directives that define no
/// macro.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut line = 1;
    let mut is_in_macro = false;
    let mut rest = text.chars().peekable();
    let mut before = '\n';
    while let Some(c) = rest.next() {
        match c {
            '\n' => {
                line += 1;
                is_in_macro &= before == '\\';
            }
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut before = ' ';
                for c in rest.by_ref() {
                    line += usize::from(c == '\n');
                    if before == '*' && c == '/' {
                        break;
                    }
                    before = c;
                }
            }
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|&c| c != '\n').is_some() {},
            '"' | '\'' => {
                while let Some(inner) = rest.next().filter(|&inner| inner != c) {
                    if inner == '\\' {
                        rest.next();
                    }
                }
            }
            '#' if !is_in_macro => {
                while rest.next_if(|&c| c == ' ').is_some() {}
                let mut directive = String::new();
                while let Some(c) = rest.next_if(|c| c.is_alphanumeric()) {
                    directive.push(c);
                }
                is_in_macro = directive == "define";
                while !is_in_macro && rest.next_if(|&c| c != '\n').is_some() {}
            }
            _ if c.is_alphanumeric() || c == '_' => {
                let mut text = c.to_string();
                while let Some(c) = rest.next_if(|&c| c.is_alphanumeric() || c == '_') {
                    text.push(c);
                }
                words.push(Word { text, line, is_in_macro });
            }
            _ if c.is_whitespace() => {}
            _ => words.push(Word { text: c.to_string(), line, is_in_macro }),
        }
        before = c;
    }
    words
}
