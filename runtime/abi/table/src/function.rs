//! The table of functions.

use std::sync::OnceLock;

use crate::kind::{Kind, Width};

/// A function of MPI, with both of its versions.
#[derive(Clone, Debug)]
pub struct Function {
    name: String,
    path: String,
    flags: Vec<String>,
    parameters: Vec<Parameter>,
    result: Option<Kind>,
}

/// The way of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Into the call.
    In,
    /// Out of it.
    Out,
    /// Both.
    Both,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Parameter {
    name: String,
    way: Way,
    kind: Kind,
    is_large_only: bool,
}

/// All functions, in the order of the table.
///
/// ```
/// let functions = longshore_abi_table::functions();
/// let send = functions.iter().find(|function| function.name() == "Send").unwrap();
/// assert_eq!((send.module(), send.widths().len()), ("p2p", 2));
/// ```
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: OnceLock<Vec<Function>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| parse(include_str!("../functions.table")))
}

fn parse(table: &str) -> Vec<Function> {
    let mut path = String::new();
    let mut functions = Vec::new();
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        match line.strip_prefix('[') {
            Some(title) => title.trim_end_matches(']').clone_into(&mut path),
            None => functions.push(Function::parse(&path, line)),
        }
    }
    functions
}

impl Function {
    fn parse(path: &str, line: &str) -> Function {
        let (head, rest) = line.split_once('|').unwrap_or_else(|| panic!("no `|` in {line}"));
        let mut head = head.split_whitespace().map(str::to_owned);
        let name = head.next().unwrap_or_else(|| panic!("no name in {line}"));
        let (parameters, result) = match rest.split_once("->") {
            Some((parameters, result)) => (parameters, Some(Kind::parse(result.trim()))),
            None => (rest, None),
        };
        let words: Vec<&str> = parameters.split_whitespace().collect();
        let parameters = words.chunks(2).map(|pair| Parameter::parse(pair[0], pair[1])).collect();
        Function { name, path: path.to_owned(), flags: head.collect(), parameters, result }
    }

    /// Its name without the prefix `MPI_`, such as `Send`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the module that has it.
    pub fn module(&self) -> &str {
        self.path.rsplit_once("::").map_or(&*self.path, |(_, name)| name)
    }

    /// The path of the module that has it, in the crate longshore-abi.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its parameters, those of the version with large counts among them.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The kind of its value; `None` for an error code.
    pub fn result(&self) -> Option<&Kind> {
        self.result.as_ref()
    }

    /// Whether it has a flag of the table.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|has| has == flag)
    }

    /// Its versions.
    pub fn widths(&self) -> &'static [Width] {
        let has_large = |parameter: &Parameter| parameter.kind.has_large();
        match self.parameters.iter().any(has_large) {
            true => &[Width::Int, Width::Large],
            false => &[Width::Int],
        }
    }

    /// Whether it is one of Longshore's own, which mpix.h declares.
    pub fn is_own(&self) -> bool {
        self.has("own")
    }

    /// What its name in C begins with.
    pub(crate) fn prefix(&self) -> &'static str {
        if self.is_own() { "MPIX_" } else { "MPI_" }
    }

    /// The name of a version in C, such as `MPI_Send_c`.
    pub fn c_name(&self, width: Width) -> String {
        let suffix = match width {
            Width::Int => "",
            Width::Large => "_c",
        };
        format!("{}{}{suffix}", self.prefix(), self.name)
    }

    /// The parameters of a version.
    pub fn parameters_of(&self, width: Width) -> impl Iterator<Item = &Parameter> {
        let has = move |parameter: &&Parameter| width == Width::Large || !parameter.is_large_only;
        self.parameters.iter().filter(has)
    }
}

impl Parameter {
    fn parse(kind: &str, name: &str) -> Parameter {
        let (kind, is_large_only) = match kind.strip_prefix('^') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let (mark, kind) = kind.split_at(1);
        let way = match mark {
            "<" => Way::In,
            ">" => Way::Out,
            "=" => Way::Both,
            _ => panic!("{name}: no way is marked {mark}"),
        };
        Parameter { name: name.to_owned(), way, kind: Kind::parse(kind), is_large_only }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its way.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Its kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn is_large_only(&self) -> bool {
        self.is_large_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_all_functions_once() {
        let all = || functions().iter().filter(|function| !function.is_own());
        let mut names: Vec<&str> = all().map(Function::name).collect();
        let versions: usize = all().map(|function| function.widths().len()).sum();
        assert_eq!((names.len(), versions), (503, 662));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 503);
    }

    #[test]
    fn a_line_gives_a_function() {
        let put = functions().iter().find(|function| function.name() == "Put").unwrap();
        let last = put.parameters().last().unwrap();
        assert_eq!((last.name(), last.way(), last.kind().object()), ("win", Way::In, Some("Win")));
        assert_eq!(put.c_name(Width::Large), "MPI_Put_c");
    }
}
