//! Figures of the source by which its shape is judged: long lists of parameters, long structs,
//! functions that the compiler must inline, the length of a window's call path, and lines of code.
//!
//! The figures say nothing about one function. Their change says what a piece of work did.

use std::path::Path;

use syn::visit::{self, Visit};

use crate::prose::sources::{self, Language};

/// A function with so many parameters, its receiver among them, is counted.
const PARAMETERS: usize = 7;

/// A struct with more fields is counted.
const FIELDS: usize = 15;

/// The files between a call on a window and the transport: a file, or all files of a folder.
const CALL_PATH: &[&str] = &[
    "runtime/src/window/attempt.rs",
    "runtime/src/window/call.rs",
    "runtime/src/window/core/issue.rs",
    "runtime/src/window/core/values.rs",
    "runtime/src/window/memo.rs",
    "runtime/src/window/near.rs",
    "runtime/src/window/operation.rs",
    "runtime/src/window/path/",
];

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Functions with many parameters: file, name and number.
    long_lists: Vec<(String, String, usize)>,
    /// Structs with many fields: file, name and number.
    long_structs: Vec<(String, String, usize)>,
    /// Attributes `inline(always)`.
    inlined: usize,
    /// Lines of the call path without its tests.
    call_path: usize,
    /// Lines that are neither blank nor comment.
    code: usize,
}

/// Prints the figures, and with `names` the functions and structs that are counted.
///
/// # Errors
/// A description of the first file that can't be read or isn't Rust.
pub fn run(names: bool) -> Result<bool, String> {
    let mut counts = Counts::default();
    for source in sources::all(Path::new("."))? {
        if source.language == Language::Rust {
            counts.add(&source.path, &source.text)?;
        }
    }
    println!("{:>6} functions with {PARAMETERS} or more parameters", counts.long_lists.len());
    println!("{:>6} attributes inline(always)", counts.inlined);
    println!("{:>6} structs with more than {FIELDS} fields", counts.long_structs.len());
    println!("{:>6} lines of a window's call path, without its tests", counts.call_path);
    println!("{:>6} lines of Rust that are neither blank nor comment", counts.code);
    if names {
        for (path, name, number) in counts.long_lists.iter().chain(&counts.long_structs) {
            println!("{number:>6} {path}: {name}");
        }
    }
    Ok(true)
}

impl Counts {
    fn add(&mut self, path: &str, text: &str) -> Result<(), String> {
        let lines = || text.lines().map(str::trim);
        self.code += lines().filter(|line| !line.is_empty() && !line.starts_with("//")).count();
        self.inlined += lines().filter(|line| line.starts_with("#[inline(always)]")).count();
        if CALL_PATH
            .iter()
            .any(|part| path == *part || part.ends_with('/') && path.starts_with(part))
        {
            self.call_path += text.lines().take_while(|line| *line != "#[cfg(test)]").count();
        }
        let file = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        Visitor { path, counts: self }.visit_file(&file);
        Ok(())
    }
}

struct Visitor<'a> {
    path: &'a str,
    counts: &'a mut Counts,
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let number = signature.inputs.len();
        if number >= PARAMETERS {
            let entry = (self.path.to_owned(), signature.ident.to_string(), number);
            self.counts.long_lists.push(entry);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let number = item.fields.len();
        if number > FIELDS {
            let entry = (self.path.to_owned(), item.ident.to_string(), number);
            self.counts.long_structs.push(entry);
        }
        visit::visit_item_struct(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_code_only() {
        let text = "// by inline(always)\n\nstruct S { a: u8 }\nimpl S {\n    #[inline(always)]\n    \
                    fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, g: u8) {}\n    fn six(a: u8, b: \
                    u8, c: u8, d: u8, e: u8, g: u8) {}\n}\n#[cfg(test)]\nmod tests {}\n";
        let mut counts = Counts::default();
        counts.add("runtime/src/window/path/mod.rs", text).unwrap();
        assert_eq!(
            counts,
            Counts {
                long_lists: vec![("runtime/src/window/path/mod.rs".into(), "f".into(), 7)],
                inlined: 1,
                call_path: 8,
                code: 8,
                ..Counts::default()
            }
        );
        counts.add("runtime/src/window/pathless.rs", "struct T;").unwrap();
        assert_eq!((counts.call_path, counts.code), (8, 9));
    }

    #[test]
    fn long_structs_are_named() {
        let fields: String = (0..16).map(|n| format!("f{n}: u8,")).collect();
        let mut counts = Counts::default();
        counts.add("a.rs", &format!("struct Long {{ {fields} }}")).unwrap();
        assert_eq!(counts.long_structs, [("a.rs".into(), "Long".into(), 16)]);
    }
}
