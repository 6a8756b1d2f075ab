//! The links of finished pages in HTML.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::read;
use crate::links::{has_scheme, resolve};

/// The folder with the documentation of the crates. rustdoc has checked its links.
const API: &str = "api";

/// The broken links of the pages in a folder, except those of the crates' documentation.
///
/// # Errors
/// A description of the first file that can't be read.
pub fn broken(folder: &Path) -> Result<Vec<String>, String> {
    let mut pages = HashMap::new();
    collect(folder, Path::new(""), &mut pages)?;
    let mut broken = Vec::new();
    for (path, text) in &pages {
        // It is shown in place of a page at any address.
        if path == Path::new("404.html") {
            continue;
        }
        for target in values(text, "href").chain(values(text, "src")) {
            if let Err(why) = follow(folder, path, target, &pages) {
                broken.push(format!("{}: {target}: {why}", path.display()));
            }
        }
    }
    broken.sort();
    broken.dedup();
    Ok(broken)
}

fn collect(
    folder: &Path,
    below: &Path,
    pages: &mut HashMap<PathBuf, String>,
) -> Result<(), String> {
    let here = folder.join(below);
    let entries = fs::read_dir(&here).map_err(|error| format!("{}: {error}", here.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", here.display()))?;
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            if path != Path::new(API) {
                collect(folder, &path, pages)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "html") {
            let text = read(&entry.path())?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

fn follow(
    folder: &Path,
    path: &Path,
    target: &str,
    pages: &HashMap<PathBuf, String>,
) -> Result<(), &'static str> {
    if target.is_empty() || has_scheme(target) {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match file {
        "" => path.to_owned(),
        _ => resolve(path.parent().unwrap_or(Path::new("")), Path::new(file))
            .ok_or("outside of the book")?,
    };
    if !folder.join(&file).is_file() {
        return Err("no such file");
    }
    let Some(page) = pages.get(&file).filter(|_| !anchor.is_empty()) else { return Ok(()) };
    let ids: HashSet<_> = values(page, "id").collect();
    match ids.contains(anchor) {
        true => Ok(()),
        false => Err("no such heading"),
    }
}

/// The values of an attribute in a page. In shown code quotes and angle brackets are escaped, or
/// no tag stands before them.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let mark = format!(" {attribute}=\"");
    text.split('<').skip(1).filter_map(move |tag| {
        let (tag, _) = tag.split_once('>').unwrap_or((tag, ""));
        let (_, value) = tag.split_once(&mark)?;
        Some(value.split_once('"')?.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_tags() {
        let text =
            "<a class=\"x\" href=\"b.html#c\">d href=\"no\"</a><code>&lt;a href=\"n\"</code>";
        assert_eq!(values(text, "href").collect::<Vec<_>>(), ["b.html#c"]);
    }

    #[test]
    fn links_to_missing_files_and_headings_are_broken() {
        let folder = std::env::temp_dir().join(format!("longshore-book-{}", std::process::id()));
        fs::create_dir_all(folder.join("docs")).unwrap();
        fs::write(folder.join("index.html"), "<h1 id=\"top\"></h1>").unwrap();
        let links = ["../index.html#top", "../index.html#tail", "b.html", "../../c.html"];
        let page: String = links.map(|link| format!("<a href=\"{link}\">")).concat();
        fs::write(folder.join("docs/a.html"), page).unwrap();
        let found = broken(&folder);
        fs::remove_dir_all(&folder).unwrap();
        let expected = [
            "docs/a.html: ../../c.html: outside of the book",
            "docs/a.html: ../index.html#tail: no such heading",
            "docs/a.html: b.html: no such file",
        ];
        assert_eq!(found.unwrap(), expected);
    }
}
