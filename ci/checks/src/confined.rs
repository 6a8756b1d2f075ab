//! The confinement of unsafe code: the table of `docs/design.md`, under its heading *Unsafe*, lists
//! every module in which the lint `unsafe_code` is off, and no other.
//!
//! A row has a crate and modules between backticks. A module stands for the modules within it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::prose::sources::{self, Source};

const PAGE: &str = "docs/design.md";
const HEADING: &str = "## Unsafe";
const ALLOWED: &str = "allow(unsafe_code";

/// The crates of the table, with the folders of their modules.
const CRATES: &[(&str, &str)] = &[
    ("shipable", "shipable/src/"),
    ("transport", "transport/src/"),
    ("job", "runtime/job/src/"),
    ("launcher", "runtime/launcher/src/"),
    ("runtime", "runtime/src/"),
    ("abi", "runtime/abi/src/"),
    ("benches", "benches/src/"),
];

/// A crate of the table and the path of a module in it.
type Module = (String, String);

/// Prints the modules that only the table or only the code has, and returns whether there are none.
///
/// # Errors
/// A description of the first file that can't be read.
pub fn run() -> Result<bool, String> {
    let wrong = differences(&sources::all(Path::new("."))?)?;
    if !wrong.is_empty() {
        println!("{PAGE} lists other modules with unsafe code than there are:");
        wrong.iter().for_each(|line| println!("    {line}"));
    }
    Ok(wrong.is_empty())
}

fn differences(sources: &[Source]) -> Result<Vec<String>, String> {
    let page = sources.iter().find(|source| source.path == PAGE);
    let listed = listed(&page.ok_or_else(|| format!("{PAGE} is missing"))?.text);
    let found: BTreeSet<Module> = sources
        .iter()
        .filter(|source| source.path.ends_with(".rs") && source.text.contains(ALLOWED))
        .filter_map(|source| module_of(&source.path))
        .collect();
    let covers = |(krate, module): &Module, (of, within): &Module| {
        let rest = within.strip_prefix(module.as_str());
        krate == of && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let missing = found.iter().filter(|within| !listed.iter().any(|entry| covers(entry, within)));
    let idle = listed.iter().filter(|entry| !found.iter().any(|within| covers(entry, within)));
    let missing = missing.map(|(krate, module)| format!("{krate}: {module} isn't listed"));
    let idle = idle.map(|(krate, module)| format!("{krate}: {module} has no unsafe code"));
    Ok(missing.chain(idle).collect())
}

/// The modules of the table.
fn listed(page: &str) -> BTreeSet<Module> {
    let section = page.lines().skip_while(|line| *line != HEADING).skip(1);
    let rows = section.take_while(|line| !line.starts_with("## "));
    let mut modules = BTreeSet::new();
    for row in rows.filter(|line| line.starts_with('|')) {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (Some(krate), Some(names)) = (cells.next(), cells.next()) else { continue };
        // Every second piece stands between backticks.
        for name in names.split('`').skip(1).step_by(2) {
            modules.insert((krate.to_owned(), name.to_owned()));
        }
    }
    modules
}

/// The module that a file of a crate is.
fn module_of(path: &str) -> Option<Module> {
    let (krate, file) =
        CRATES.iter().find_map(|(krate, folder)| Some((*krate, path.strip_prefix(folder)?)))?;
    let module = file.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    Some((krate.to_owned(), module.replace('/', "::")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prose::sources::Language;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), language: Language::Rust, text: text.to_owned() }
    }

    fn found(rows: &str, files: &[(&str, &str)]) -> Vec<String> {
        let page = format!(
            "`a`\n{HEADING}\n\n| crate | modules |\n|---|---|\n{rows}\n## End\n| x | `y` |\n"
        );
        let mut sources = vec![source(PAGE, &page)];
        sources.extend(files.iter().map(|(path, text)| source(path, text)));
        differences(&sources).unwrap_or_default()
    }

    const UNSAFE: &str = "#![allow(unsafe_code)]";

    #[test]
    fn a_listed_module_stands_for_those_within_it() {
        let files = [("shipable/src/kernels/x86.rs", UNSAFE), ("runtime/src/raw.rs", UNSAFE)];
        assert!(found("| shipable | `kernels` | |\n| runtime | `raw` |", &files).is_empty());
    }

    #[test]
    fn modules_that_only_one_side_has_are_found() {
        let files = [("shipable/src/kernels_x/mod.rs", UNSAFE), ("runtime/src/raw.rs", "")];
        let wrong = found("| shipable | `kernels` | |\n| runtime | `raw` |", &files);
        let idle = ["runtime: raw has no unsafe code", "shipable: kernels has no unsafe code"];
        assert_eq!(wrong, [&["shipable: kernels_x isn't listed"][..], &idle].concat());
    }
}
