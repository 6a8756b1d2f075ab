//! Programs that a test makes and then runs.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes an executable file.
///
/// Another process writes it. A file that is open for writing can't be executed, and what this
/// process opens stays open in the children that other tests are starting at that moment.
pub fn write_program(path: &Path, contents: &[u8]) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat >\"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(contents).unwrap();
    assert!(writer.wait().unwrap().success());
}
