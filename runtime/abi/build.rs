//! Writes the exports and the constants, and names the library.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    // The static libfabric has versions of its symbols, which are none of this library's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,libfabric.a");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("exports.rs"), longshore_abi_table::exports())?;
    fs::write(out.join("constants.rs"), longshore_abi_table::numbers())
}
