//! Pages of files that are no pages: the lines of a file, or the names in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::read;
use crate::prose::sources;

/// The address of the page of a file or folder of the project. A name with a dot is a file's; the
/// file system decides about any other.
pub fn address(path: &Path) -> String {
    let has_lines = path.extension().is_some() || path.is_file();
    match has_lines {
        true => format!("{}.html", path.display()),
        false => format!("{}/index.html", path.display()),
    }
}

/// The pages of these files and folders, and of all files and folders in the latter, by their
/// addresses.
///
/// # Errors
/// A description of the first file that can't be read.
pub fn pages(root: &Path, linked: &BTreeSet<PathBuf>) -> Result<Vec<(String, String)>, String> {
    let mut files: BTreeSet<PathBuf> =
        linked.iter().filter(|path| path.is_file()).cloned().collect();
    let mut folders: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for source in sources::all(root)? {
        let path = PathBuf::from(source.path);
        let Some(top) = path.ancestors().skip(1).filter(|above| linked.contains(*above)).last()
        else {
            continue;
        };
        for entry in path.ancestors().take_while(|entry| *entry != top) {
            let folder = entry.parent().unwrap_or(top);
            folders.entry(folder.to_owned()).or_default().insert(entry.to_owned());
        }
        files.insert(path);
    }
    let mut pages = Vec::new();
    for file in files {
        pages.push((address(&file), page(&file, &lines(&read(&file)?))));
    }
    for (folder, entries) in folders {
        pages.push((address(&folder), page(&folder, &names(&folder, &entries))));
    }
    Ok(pages)
}

/// A page without the book's frame, which mdbook copies as it is.
fn page(path: &Path, body: &str) -> String {
    let path = path.display();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{path}</title>\n<style>\n\
         :root {{ color-scheme: light dark }}\n\
         body {{ font: 16px sans-serif; margin: 1em auto; max-width: 70em; padding: 0 1em }}\n\
         pre {{ font: 14px/1.4 monospace; overflow-x: auto }}\n\
         </style>\n<h1>{path}</h1>\n{body}</html>\n"
    )
}

fn lines(text: &str) -> String {
    format!("<pre>{}</pre>\n", escaped(text))
}

fn names(folder: &Path, entries: &BTreeSet<PathBuf>) -> String {
    let mut list = String::from("<ul>\n");
    for entry in entries {
        let name = entry.strip_prefix(folder).unwrap_or(entry);
        let target = address(entry);
        let target = target.strip_prefix(&format!("{}/", folder.display())).unwrap_or(&target);
        _ = writeln!(list, "<li><a href=\"{target}\">{}</a></li>", name.display());
    }
    list + "</ul>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_as_they_are() {
        assert_eq!(lines("a < b && c > d\n"), "<pre>a &lt; b &amp;&amp; c &gt; d\n</pre>\n");
    }

    #[test]
    fn a_folder_links_to_its_files_and_folders() {
        let entries = ["src/a.rs", "src/b"].map(PathBuf::from).into();
        let list = names(Path::new("src"), &entries);
        assert!(list.contains("<a href=\"a.rs.html\">a.rs</a>"), "{list}");
        assert!(list.contains("<a href=\"b/index.html\">b</a>"), "{list}");
    }
}
