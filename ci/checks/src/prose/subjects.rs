//! The subjects of commits.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Columns that a subject may take.
const MOST: usize = 72;

pub enum Subjects {
    /// The subjects that are too long, each after its commit's hash.
    Judged(Vec<String>),
    /// Why the commits aren't known.
    Unknown(String),
}

/// The subjects that are too long among those of the commits after the one that a file names.
///
/// # Errors
/// A description of the file that can't be read, or of the git command that fails.
pub fn since(folder: &Path, base: &Path) -> Result<Subjects, String> {
    let commit = fs::read_to_string(folder.join(base))
        .map_err(|error| format!("{}: {error}", base.display()))?;
    let commit = commit.trim();
    if !folder.join(".git").exists() {
        return Ok(Subjects::Unknown("this is no clone".to_owned()));
    }
    if git(folder, &["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
        return Ok(Subjects::Unknown("this clone is shallow".to_owned()));
    }
    if git(folder, &["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_err() {
        let why = format!("this clone has no commit {commit}, which {} names", base.display());
        return Ok(Subjects::Unknown(why));
    }
    let log = git(folder, &["log", "--format=%h %s", &format!("{commit}..HEAD")])?;
    Ok(Subjects::Judged(overlong(&log)))
}

/// The lines of a log whose subjects are too long. A line is a hash, a blank and a subject.
fn overlong(log: &str) -> Vec<String> {
    let is_overlong = |line: &&str| {
        let subject = line.split_once(' ').map_or("", |(_, subject)| subject);
        subject.chars().count() > MOST
    };
    log.lines().filter(is_overlong).map(str::to_owned).collect()
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").current_dir(folder).args(arguments).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git {}: {}", arguments.join(" "), error.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_of_73_columns_is_too_long() {
        let log = format!("1234567 {}\n89abcde {}\n", "ä".repeat(72), "ä".repeat(73));
        assert_eq!(overlong(&log), [format!("89abcde {}", "ä".repeat(73))]);
    }

    #[test]
    fn commits_are_unknown_without_a_clone() {
        let folder =
            std::env::temp_dir().join(format!("longshore-subjects-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("base"), "0123\n").expect("a file");
        let found = since(&folder, Path::new("base"));
        fs::remove_dir_all(&folder).expect("a folder that can be removed");
        assert!(matches!(found, Ok(Subjects::Unknown(why)) if why == "this is no clone"));
    }
}
