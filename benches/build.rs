//! Tells the benches which compiler builds them, and from which commit: figures of another one
//! differ.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let compiler = std::env::var_os("RUSTC").expect("cargo names the compiler");
    let output = Command::new(compiler).arg("--version").output().expect("a compiler that runs");
    println!(
        "cargo::rustc-env=LONGSHORE_COMPILER={}",
        String::from_utf8_lossy(&output.stdout).trim()
    );
    // What makes a commit dirty.
    for sources in ["src", "peers", "../runtime/src", "../shipable/src", "../transport/src"] {
        println!("cargo::rerun-if-changed={sources}");
    }
    // Sources from an archive may lie in someone else's clone.
    if git(&["ls-files", "--error-unmatch", "build.rs"]).is_none() {
        return;
    }
    if let Some(commit) = git(&["describe", "--always", "--dirty"]) {
        println!("cargo::rustc-env=LONGSHORE_COMMIT={commit}");
    }
    // A branch's own file may be packed away; the log grows with each commit.
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "logs/HEAD"].into_iter().chain(branch.as_deref()) {
        let path = git(&["rev-parse", "--git-path", name]);
        // Cargo takes what isn't there for changed.
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// What git prints, if it's there and knows.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
