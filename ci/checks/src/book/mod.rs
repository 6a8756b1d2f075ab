//! The book: the project's pages as mdbook takes them, and the links of the finished book.
//!
//! [`stage`] copies the pages that `docs/book/SUMMARY.md` names to a folder, at the places that
//! they have in the project. Links to other files would lead out of the book. So each of these
//! files gets a page ([`listing`]), and a link to a crate's `lib.rs` leads to its documentation.
//! [`check`] follows the links of the finished book.

mod html;
mod listing;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::links::page::Page;
use crate::links::{has_scheme, resolve};
use crate::prose::sources::{self, Language};

const SUMMARY: &str = "docs/book/SUMMARY.md";
/// The folder of the book that has the pages of files.
const FILES: &str = "files";

/// Copies the book's pages to `folder` and returns whether every page of `docs` is in the summary.
///
/// # Errors
/// A description of the first file that can't be read or written.
pub fn stage(folder: &Path) -> Result<bool, String> {
    let root = Path::new(".");
    let summary = read(Path::new(SUMMARY))?;
    let base = Path::new("docs/book");
    let pages: BTreeSet<PathBuf> = (Page::parse(&summary).links.iter())
        .filter_map(|link| resolve(base, Path::new(&link.target)))
        .collect();

    let missing = absent(root, &pages)?;
    for page in &missing {
        println!("{SUMMARY} doesn't name {page}");
    }
    let mut listed = BTreeSet::new();
    for page in &pages {
        let text = read(page)?;
        let page = Staged { path: page, pages: &pages };
        let (text, others) = page.rewritten(&text);
        write(&folder.join(page.path), &text)?;
        for file in others {
            match is_picture(&file) {
                true => copy(&file, &folder.join(&file))?,
                false => _ = listed.insert(file),
            }
        }
    }
    for (path, text) in listing::pages(root, &listed)? {
        write(&folder.join(FILES).join(path), &text)?;
    }
    let summary = Page::parse(&summary).links.iter().fold(summary, |summary, link| {
        let path = resolve(base, Path::new(&link.target)).unwrap_or_default();
        summary.replace(&format!("]({})", link.target), &format!("]({})", path.display()))
    });
    write(&folder.join("SUMMARY.md"), &summary)?;
    Ok(missing.is_empty())
}

/// Prints the links of a finished book that lead nowhere, and returns whether there are none.
///
/// # Errors
/// A description of the first file that can't be read.
pub fn check(folder: &Path) -> Result<bool, String> {
    let broken = html::broken(folder)?;
    if !broken.is_empty() {
        println!("Links of the book that lead nowhere, {} in all:", broken.len());
        broken.iter().for_each(|link| println!("    {link}"));
    }
    Ok(broken.is_empty())
}

/// The pages of `docs` that aren't among `pages`.
fn absent(root: &Path, pages: &BTreeSet<PathBuf>) -> Result<Vec<String>, String> {
    let all = sources::all(root)?.into_iter();
    let of_docs = all.filter(|source| {
        source.language == Language::Markdown
            && source.path.starts_with("docs/")
            && source.path != SUMMARY
    });
    Ok(of_docs.map(|source| source.path).filter(|path| !pages.contains(Path::new(path))).collect())
}

/// A page and all pages of its book, by their paths in the project.
struct Staged<'a> {
    path: &'a Path,
    pages: &'a BTreeSet<PathBuf>,
}

impl Staged<'_> {
    /// The page's text with its links as the book needs them, and the other files that it links to.
    fn rewritten(&self, text: &str) -> (String, BTreeSet<PathBuf>) {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let mut others = BTreeSet::new();
        let mut targets = BTreeMap::new();
        for link in Page::parse(text).links {
            let (file, _) = link.target.split_once('#').unwrap_or((&link.target, ""));
            if file.is_empty() || has_scheme(&link.target) {
                continue;
            }
            let Some(path) = resolve(folder, Path::new(file)) else { continue };
            if self.pages.contains(&path) {
                // mdbook makes an index of each README, and leaves the links to it as they are.
                if file.ends_with("README.md") {
                    let index = link.target.replace("README.md", "index.html");
                    targets.insert(link.target.clone(), index);
                }
                continue;
            }
            if is_picture(&path) {
                others.insert(path);
                continue;
            }
            let up = "../".repeat(folder.components().count());
            let target = match crate_of(&path) {
                Some(name) => format!("{up}api/{name}/index.html"),
                None => {
                    let target = format!("{up}{FILES}/{}", listing::address(&path));
                    others.insert(path);
                    target
                }
            };
            targets.insert(link.target.clone(), target);
        }
        let replaced = targets.iter().fold(text.to_owned(), |text, (from, to)| {
            text.replace(&format!("]({from})"), &format!("]({to})"))
                .replace(&format!("]: {from}\n"), &format!("]: {to}\n"))
        });
        (replaced, others)
    }
}

/// The name of the crate whose root is this file. A link to it leads to the crate's documentation.
fn crate_of(path: &Path) -> Option<String> {
    let folder = path.parent()?.parent()?;
    if !path.ends_with("src/lib.rs") {
        return None;
    }
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
    Some(name.trim_end_matches('"').replace('-', "_"))
}

fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "svg")
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(Path::new(""));
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, to));
    copied.map(|_| ()).map_err(|error| format!("{}: {error}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of `docs/a.md` in a book with `docs/b.md` and `README.md`, and its other files.
    fn rewritten(text: &str) -> (String, Vec<String>) {
        let pages = ["README.md", "docs/a.md", "docs/b.md"].map(PathBuf::from).into();
        let (text, others) = Staged { path: Path::new("docs/a.md"), pages: &pages }.rewritten(text);
        (text, others.iter().map(|path| path.display().to_string()).collect())
    }

    #[test]
    fn links_between_pages_stay() {
        let text = "[b](b.md#c) and [a](#d) and [e](https://example.org/f.rs)\n";
        assert_eq!(rewritten(text), (text.to_owned(), Vec::new()));
    }

    #[test]
    fn a_link_to_a_readme_leads_to_an_index() {
        assert_eq!(rewritten("[r](../README.md#x)\n").0, "[r](../index.html#x)\n");
    }

    #[test]
    fn links_to_files_lead_to_their_listings() {
        let (text, others) = rewritten("[f](../src/f.rs), [g](../src)\n\n[h]: ../h.c\n");
        let (file, folder) = ("../files/src/f.rs.html", "../files/src/index.html");
        assert_eq!(text, format!("[f]({file}), [g]({folder})\n\n[h]: ../files/h.c.html\n"));
        assert_eq!(others, ["h.c", "src", "src/f.rs"]);
    }

    #[test]
    fn a_link_to_a_crate_leads_to_its_documentation() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../derive/src/lib.rs");
        assert_eq!(crate_of(&folder), None);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shipable/derive");
        assert_eq!(crate_of(&root.join("src/lib.rs")).as_deref(), Some("shipable_derive"));
        assert_eq!(crate_of(&root.join("src/names.rs")), None);
    }

    #[test]
    fn pictures_stay_beside_their_page() {
        let text = "![p](pictures/p.svg)\n";
        assert_eq!(rewritten(text), (text.to_owned(), vec!["docs/pictures/p.svg".to_owned()]));
    }
}
