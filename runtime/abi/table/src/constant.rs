//! The table of constants.

use std::sync::OnceLock;

use crate::kind::{Kind, Width};

/// A group of constants, with the title that mpi.h repeats.
#[derive(Clone, Debug)]
pub struct Section {
    title: String,
    constants: Vec<Constant>,
}

/// A constant of MPI.
#[derive(Clone, Debug)]
pub struct Constant {
    name: String,
    kind: String,
    value: String,
}

/// All constants, in the order of the table.
///
/// ```
/// let sections = longshore_abi_table::constants();
/// let mut all = sections.iter().flat_map(|section| section.constants());
/// assert_eq!(all.find(|constant| constant.name() == "ROOT").unwrap().number(), Some(-4));
/// ```
pub fn constants() -> &'static [Section] {
    static SECTIONS: OnceLock<Vec<Section>> = OnceLock::new();
    SECTIONS.get_or_init(|| parse(include_str!("../constants.table")))
}

fn parse(table: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        if let Some(title) = line.strip_prefix('[') {
            let title = title.trim_end_matches(']').to_owned();
            sections.push(Section { title, constants: Vec::new() });
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, kind, value] = words.as_slice() else { panic!("not three words: {line}") };
        let section = sections.last_mut().unwrap_or_else(|| panic!("no title before {line}"));
        let [name, kind, value] = [name, kind, value].map(str::to_owned);
        section.constants.push(Constant { name, kind, value });
    }
    sections
}

impl Section {
    /// Its title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its constants.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }
}

impl Constant {
    /// Its name without the prefix `MPI_`, such as `ANY_TAG`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value; `None` for another name of a constant.
    pub fn number(&self) -> Option<i64> {
        match self.value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => self.value.parse().ok(),
        }
    }

    /// Whether it is an int.
    pub fn is_int(&self) -> bool {
        matches!(self.kind.as_str(), "int" | "macro" | "own")
    }

    /// Whether it is one of Longshore's own, which mpix.h declares.
    pub fn is_own(&self) -> bool {
        self.kind == "own"
    }

    /// Whether the preprocessor has to know it.
    pub(crate) fn is_macro(&self) -> bool {
        self.kind != "int"
    }

    /// The Rust type of the objects that it is a handle of.
    pub(crate) fn object(&self) -> Option<&'static str> {
        Kind::parse(&self.kind).object()
    }

    /// Its value as an expression of C.
    pub(crate) fn expression(&self) -> String {
        match self.kind.split_once(':') {
            Some(("ptr", c)) => return format!("(({c}){})", self.value),
            Some(("fn", function)) => return format!("((MPI_{function} *){})", self.value),
            _ => {}
        }
        match self.kind.as_str() {
            "int" | "macro" if self.value.starts_with('-') => format!("({})", self.value),
            "int" | "macro" | "own" => self.value.clone(),
            "alias" => format!("MPI_{}", self.value),
            kind => format!("(({}){})", Kind::parse(kind).c(Width::Int), self.value),
        }
    }
}
