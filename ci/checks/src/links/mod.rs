//! Links: every link of a Markdown page leads to a file of the project, and its anchor to a
//! heading.
//!
//! Citations are checked as well: a comment or a page cites a heading by the path of its page, a
//! comma, and the heading in quotes. Addresses with a scheme, such as `https:`, aren't followed.

mod citations;
pub mod page;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::prose::sources::{self, Language, Source};
use page::Page;

/// Prints the links and citations that lead nowhere, and returns whether there are none.
///
/// # Errors
/// A description of the first file that can't be read.
pub fn run() -> Result<bool, String> {
    let root = Path::new(".");
    let sources = sources::all(root)?;
    let broken = broken(&sources, |path| root.join(path).exists());
    if !broken.is_empty() {
        println!("Links that lead nowhere, {} in all:", broken.len());
        broken.iter().for_each(|link| println!("    {link}"));
    }
    Ok(broken.is_empty())
}

/// The broken links and citations of all sources, each with its file, line and reason. `exists`
/// returns whether a path, relative to the project's root, names a file or folder.
fn broken(sources: &[Source], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let markdown = sources.iter().filter(|source| source.language == Language::Markdown);
    let pages: HashMap<&str, Page> =
        markdown.map(|source| (source.path.as_str(), Page::parse(&source.text))).collect();

    let mut broken = Vec::new();
    for Source { path, language, text } in sources {
        if let Some(page) = pages.get(path.as_str()) {
            for link in &page.links {
                if let Err(why) = follow(path, &link.target, &pages, &exists) {
                    broken.push(format!("{path}:{}: {}: {why}", link.line, link.target));
                }
            }
        }
        for citation in language.passages(text).iter().flat_map(citations::all) {
            let cited = pages.get(citation.page.as_str());
            if !cited.is_some_and(|page| page.headings.contains(&citation.heading)) {
                let citations::Citation { line, page, heading } = citation;
                broken.push(format!("{path}:{line}: {page} has no heading \"{heading}\""));
            }
        }
    }
    broken
}

/// Follows a link of the page at `path`.
///
/// # Errors
/// Why the link is broken.
fn follow(
    path: &str,
    target: &str,
    pages: &HashMap<&str, Page>,
    exists: impl Fn(&Path) -> bool,
) -> Result<(), &'static str> {
    if has_scheme(target) {
        return Ok(());
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let file = match file {
        "" => PathBuf::from(path),
        _ => resolve(Path::new(path).parent().unwrap_or(Path::new("")), Path::new(file))
            .ok_or("outside of the project")?,
    };
    if !exists(&file) {
        return Err("no such file");
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let page = file.to_str().and_then(|file| pages.get(file)).ok_or("no page with headings")?;
    match page.anchors.contains(anchor) {
        true => Ok(()),
        false => Err("no such heading"),
    }
}

/// Whether a target begins with a scheme, such as `https:`.
pub fn has_scheme(target: &str) -> bool {
    let scheme = target.split_once(':').map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// A path relative to the project's root. `None` if it leads out of the project.
pub fn resolve(folder: &Path, target: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in folder.join(target).components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !resolved.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), language: Language::Markdown, text: text.to_owned() }
    }

    /// The broken links of a page `docs/a.md` beside a page `docs/b.md` with a heading "Head" and a
    /// file `src/lib.rs`.
    fn broken_in(text: &str) -> Vec<String> {
        let sources = [page("docs/a.md", text), page("docs/b.md", "# Head\n")];
        let files = ["docs/a.md", "docs/b.md", "src", "src/lib.rs"].map(Path::new);
        broken(&sources, |path| files.contains(&path))
    }

    #[test]
    fn links_to_files_folders_and_headings_hold() {
        let text = "# Top\n[a](b.md), [b](b.md#head), [c](#top), [d](../src), [e](../src/lib.rs)\n";
        assert_eq!(broken_in(text), [""; 0]);
    }

    #[test]
    fn links_with_a_scheme_are_not_followed() {
        assert_eq!(broken_in("[a](https://example.org/b.md#c) <mailto:a@b.c>\n"), [""; 0]);
    }

    #[test]
    fn a_link_to_a_missing_file_is_broken() {
        assert_eq!(broken_in("text\n[a](c.md)\n"), ["docs/a.md:2: c.md: no such file"]);
    }

    #[test]
    fn a_picture_of_a_missing_file_is_broken() {
        assert_eq!(broken_in("![a](a.svg)\n"), ["docs/a.md:1: a.svg: no such file"]);
    }

    #[test]
    fn a_link_to_a_missing_heading_is_broken() {
        assert_eq!(broken_in("[a](b.md#tail)\n"), ["docs/a.md:1: b.md#tail: no such heading"]);
        assert_eq!(broken_in("[a](#head)\n"), ["docs/a.md:1: #head: no such heading"]);
    }

    #[test]
    fn an_anchor_of_a_file_without_headings_is_broken() {
        let expected = "docs/a.md:1: ../src/lib.rs#l1: no page with headings";
        assert_eq!(broken_in("[a](../src/lib.rs#l1)\n"), [expected]);
    }

    #[test]
    fn a_link_out_of_the_project_is_broken() {
        let expected = "docs/a.md:1: ../../x: outside of the project";
        assert_eq!(broken_in("[a](../../x)\n"), [expected]);
        assert_eq!(broken_in("[a](/x)\n"), ["docs/a.md:1: /x: outside of the project"]);
    }

    #[test]
    fn a_citation_of_a_missing_heading_is_broken() {
        assert_eq!(broken_in("See docs/b.md, \"Head\".\n"), [""; 0]);
        let expected = "docs/a.md:1: docs/b.md has no heading \"Tail\"";
        assert_eq!(broken_in("See docs/b.md, \"Tail\".\n"), [expected]);
        let expected = "docs/a.md:1: docs/c.md has no heading \"Head\"";
        assert_eq!(broken_in("See docs/c.md, \"Head\".\n"), [expected]);
    }

    #[test]
    fn a_citation_in_a_comment_is_checked() {
        let text = "// Short (docs/b.md,\n// \"Tail\").\n".to_owned();
        let source = Source { path: "src/lib.rs".to_owned(), language: Language::Rust, text };
        let sources = [source, page("docs/b.md", "# Head\n")];
        let expected = "src/lib.rs:1: docs/b.md has no heading \"Tail\"";
        assert_eq!(broken(&sources, |_| true), [expected]);
    }
}
