//! Paths of source files.

use std::path::Path;

/// The path of a source file as seen from the current folder, if it is in there.
pub fn shortened(file: &str) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    let path = Path::new(file).strip_prefix(folder).unwrap_or(Path::new(file));
    path.to_string_lossy().into_owned()
}
