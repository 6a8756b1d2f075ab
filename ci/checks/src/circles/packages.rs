//! The crates of a workspace, as cargo lists them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The root files of all crates of a manifest's workspace except its integration tests. Paths are
/// relative to the working folder where they lie in it.
///
/// # Errors
/// The errors of cargo, and an answer that isn't JSON.
pub fn crate_roots(manifest: &Path) -> Result<Vec<PathBuf>, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(manifest)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata gave no JSON: {error}"))?;
    let here = env::current_dir().map_err(|error| format!("the working folder: {error}"))?;
    let mut roots = Vec::new();
    for target in list(&metadata["packages"]).flat_map(|package| list(&package["targets"])) {
        let is_test = list(&target["kind"]).any(|kind| kind == "test");
        if let (false, Some(path)) = (is_test, target["src_path"].as_str()) {
            let path = Path::new(path);
            roots.push(path.strip_prefix(&here).unwrap_or(path).to_owned());
        }
    }
    Ok(roots)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
