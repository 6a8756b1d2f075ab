//! Tells the benches which compiler builds them: figures of another one differ.

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
}
