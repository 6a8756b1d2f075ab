//! Links libfabric, if the feature `linked-libfabric` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "linked-libfabric")]
    pkg_config::Config::new().atleast_version("1.20").probe("libfabric").expect("libfabric");
}
