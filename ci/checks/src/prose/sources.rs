//! The files that hold prose, and the language of each.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::comments;
use super::markdown;
use super::passage::Passage;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Rust,
    C,
    Shell,
    Markdown,
}

impl Language {
    /// The language of a file with prose, by its extension or its first line. `None` for others.
    fn of(path: &str, text: &str) -> Option<Language> {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("rs") => Some(Language::Rust),
            Some("c" | "h") => Some(Language::C),
            Some("md") => Some(Language::Markdown),
            Some("sh") => Some(Language::Shell),
            _ => text.starts_with("#!").then_some(Language::Shell),
        }
    }

    /// The comments of a text in this language, or the whole text if it is Markdown.
    pub fn passages(self, text: &str) -> Vec<Passage> {
        match self {
            Language::Rust => comments::of_rust(text),
            Language::C => comments::of_c(text),
            Language::Shell => comments::of_shell(text),
            Language::Markdown => vec![markdown::passage(text)],
        }
    }
}

pub struct Source {
    /// The path relative to the project's root.
    pub path: String,
    pub language: Language,
    pub text: String,
}

/// The files with prose in a folder: those that git tracks, or all files if the folder is no clone.
///
/// # Errors
/// A description of the first file or folder that can't be read.
pub fn all(folder: &Path) -> Result<Vec<Source>, String> {
    let paths = match tracked(folder) {
        Some(paths) => paths,
        None => {
            let mut paths = Vec::new();
            collect(folder, "", &mut paths)?;
            paths
        }
    };
    let mut sources = Vec::new();
    for path in paths {
        let file = folder.join(&path);
        // A tracked file may be deleted in the working tree, and a submodule has no text. A link
        // shows a file that is listed at its own place.
        if !file.is_file() || file.is_symlink() {
            continue;
        }
        let bytes = fs::read(&file).map_err(|error| format!("{path}: {error}"))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if let Some(language) = Language::of(&path, &text) {
            sources.push(Source { path, language, text });
        }
    }
    Ok(sources)
}

/// The files that git tracks. `None` if the folder isn't the root of a clone: an unpacked archive
/// may lie within the clone of something else.
fn tracked(folder: &Path) -> Option<Vec<String>> {
    if !folder.join(".git").exists() {
        return None;
    }
    let output = Command::new("git").current_dir(folder).args(["ls-files", "-z"]).output().ok()?;
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| {
        let names = names.split('\0').filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    })
}

fn collect(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<(), String> {
    let at = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(at)? {
        let entry = entry.map_err(at)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" {
            continue;
        }
        if entry.file_type().map_err(at)?.is_dir() {
            collect(&entry.path(), &format!("{prefix}{name}/"), paths)?;
        } else {
            paths.push(format!("{prefix}{name}"));
        }
    }
    paths.sort();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_follows_from_extension_or_first_line() {
        assert_eq!(Language::of("a/b.rs", ""), Some(Language::Rust));
        assert_eq!(Language::of("a/b.h", ""), Some(Language::C));
        assert_eq!(Language::of("README.md", ""), Some(Language::Markdown));
        assert_eq!(Language::of("ci/lib.sh", "# Sourced"), Some(Language::Shell));
        assert_eq!(Language::of("ci/steps/fmt", "#!/bin/bash\n"), Some(Language::Shell));
        assert_eq!(Language::of("ci/prose.base", "c463894"), None);
    }
}
