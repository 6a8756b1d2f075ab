//! Writes the exports and the constants, as the build script of longshore-abi does.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("exports.rs"), longshore_abi_table::exports())?;
    fs::write(out.join("constants.rs"), longshore_abi_table::numbers())
}
