//! The circles of small crates, each in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::graph::Imports;
use super::modules::Crate;
use super::{c_files, imports};

/// A folder for temporary files, which is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("longshore-checks-{}-{number}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        for (path, text) in files {
            let path = folder.0.join(path);
            fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
            fs::write(&path, text).expect("a file");
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files of each circle as one line of names without folder and extension.
fn names(imports: &Imports) -> Vec<String> {
    let name = |path: &PathBuf| {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let folder = path.parent().and_then(Path::file_name).expect("a folder");
        if stem == "mod" { folder.to_string_lossy().into_owned() } else { stem }
    };
    let circles = imports.circles();
    circles.iter().map(|files| files.iter().map(name).collect::<Vec<_>>().join(" ")).collect()
}

fn imports_of(files: &[(&str, &str)]) -> Imports {
    let folder = Folder::with(files);
    let krate = Crate::read(&folder.0.join("lib.rs")).expect("a crate that can be read");
    let mut found = Imports::default();
    imports::of_crate(&krate, &mut found);
    found
}

fn circles(files: &[(&str, &str)]) -> Vec<String> {
    names(&imports_of(files))
}

const TWO: (&str, &str) = ("lib.rs", "mod a; mod b;");
const A_USES_B: (&str, &str) = ("a.rs", "use crate::b::B; pub struct A(B);");

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let b = ("b.rs", "pub struct B; pub fn f(_: super::a::A) {}");
    assert_eq!(circles(&[TWO, A_USES_B, b]), ["a b"]);
}

#[test]
fn imports_in_one_direction_are_no_circle() {
    let found = imports_of(&[TWO, A_USES_B, ("b.rs", "pub struct B;")]);
    assert_eq!((names(&found), found.len()), (vec![], 1));
}

#[test]
fn two_circles_without_a_common_file_are_reported_apart() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        A_USES_B,
        ("b.rs", "pub struct B(crate::a::A, crate::c::C);"),
        ("c.rs", "pub struct C(crate::d::D);"),
        ("d.rs", "pub struct D(crate::c::C);"),
    ]);
    assert_eq!(found, ["a b", "c d"]);
}

#[test]
fn a_circle_of_three_files_is_found() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        A_USES_B,
        ("b.rs", "pub struct B(crate::c::C);"),
        ("c.rs", "pub struct C(crate::a::A);"),
    ]);
    assert_eq!(found, ["a b c"]);
}

#[test]
fn a_re_export_leads_to_the_file_that_defines_the_item() {
    let found = circles(&[
        ("lib.rs", "mod group; mod other;"),
        ("group/mod.rs", "mod inner; pub use inner::Inner as Renamed;"),
        ("group/inner.rs", "pub struct Inner; fn f(_: crate::other::Other) {}"),
        ("other.rs", "use crate::group::Renamed; pub struct Other(Renamed);"),
    ]);
    assert_eq!(found, ["inner other"]);
}

#[test]
fn a_glob_leads_to_the_file_that_defines_the_item() {
    let found = circles(&[
        ("lib.rs", "mod group; mod other; pub use group::*;"),
        ("group/mod.rs", "mod inner; pub use inner::*;"),
        ("group/inner.rs", "pub struct Inner; fn f(_: crate::other::Other) {}"),
        ("other.rs", "use super::*; pub struct Other(Inner);"),
    ]);
    assert_eq!(found, ["inner other"]);
}

#[test]
fn a_glob_of_which_no_name_is_used_is_no_import() {
    let b = ("b.rs", "use super::a::*; pub struct B;");
    assert_eq!(circles(&[TWO, A_USES_B, b]), [""; 0]);
}

#[test]
fn an_item_of_another_crate_belongs_to_the_file_that_re_exports_it() {
    let a = ("a.rs", "pub use std::fmt::Debug; pub use std; pub struct A(crate::b::B);");
    for name in ["Debug", "std"] {
        let b = format!("use crate::a::{name}; pub struct B;");
        assert_eq!(circles(&[TWO, a, ("b.rs", &b)]), ["a b"], "{name}");
    }
}

#[test]
fn re_exports_that_lead_to_each_other_end() {
    let a = ("a.rs", "pub use crate::b::*; pub use crate::b::lost; pub struct A;");
    let b = ("b.rs", "pub use crate::a::*; pub use crate::a::lost; pub struct B(A);");
    assert_eq!(imports_of(&[TWO, a, b]).len(), 1);
}

#[test]
fn a_name_may_be_a_module_and_a_re_export_of_an_item_in_it() {
    let found = circles(&[
        TWO,
        ("a/mod.rs", "mod lower; pub use lower::lower;"),
        ("a/lower.rs", "use crate::b::B; pub fn lower(_: B) {}"),
        ("b.rs", "pub struct B; fn f() { crate::a::lower(B); }"),
    ]);
    assert_eq!(found, ["lower b"]);
}

#[test]
fn a_parent_and_its_child_may_use_each_other() {
    let found = imports_of(&[
        ("lib.rs", "mod a;"),
        ("a/mod.rs", "mod child; pub struct A(child::Child);"),
        ("a/child.rs", "pub struct Child(super::A);"),
    ]);
    assert_eq!(found.len(), 0);
}

#[test]
fn a_grandparent_and_its_grandchild_are_a_circle() {
    let found = circles(&[
        ("lib.rs", "mod a; pub use a::child::Child; pub struct Root;"),
        ("a/mod.rs", "pub mod child;"),
        ("a/child.rs", "pub struct Child(crate::Root);"),
    ]);
    assert_eq!(found, ["child lib"]);
}

#[test]
fn two_children_of_one_parent_are_a_circle() {
    let found = circles(&[
        ("lib.rs", "mod group;"),
        ("group/mod.rs", "mod a; mod b; use a::A; use b::B;"),
        ("group/a.rs", "pub struct A(super::B);"),
        ("group/b.rs", "pub struct B(super::A);"),
    ]);
    assert_eq!(found, ["a b"]);
}

/// Circles of two files where the second names the first by some code, and where it does not.
fn is_circle(code: &str) -> bool {
    let a = ("a.rs", "use crate::b::B; pub struct A(B); pub trait T {} pub const C: u8 = 1;");
    let circles = circles(&[TWO, a, ("b.rs", &format!("pub struct B; {code}"))]);
    !circles.is_empty()
}

#[test]
fn a_use_within_a_function_counts() {
    assert!(is_circle("fn f() { use crate::a::A; }"));
    assert!(is_circle("fn f() { use crate::a; let _: a::A; }"));
}

#[test]
fn a_path_in_code_counts() {
    assert!(is_circle("fn f() -> Vec<crate::a::A> { Vec::new() }"));
    assert!(is_circle("use super::a; fn f() -> u8 { a::C + 1 }"));
    assert!(is_circle("impl crate::a::T for B {}"));
    assert!(is_circle("impl super::a::A { fn f() {} }"));
    assert!(is_circle("mod inner { use super::super::a::A; }"));
}

#[test]
fn a_path_in_a_macro_counts() {
    assert!(is_circle("fn f() { assert_eq!(1, crate::a::C); }"));
    assert!(is_circle("macro_rules! m { () => { $crate::a::C } }"));
    assert!(is_circle("macro_rules! m { ($x:ident) => { use crate::{a::{A, C}}; } }"));
}

#[test]
fn a_module_that_is_no_item_does_not_count() {
    assert!(!is_circle("use crate::a;"));
}

#[test]
fn names_that_only_look_like_the_other_file_do_not_count() {
    assert!(!is_circle("use ::a::A;"));
    assert!(!is_circle("/// See [`crate::a::A`].\nfn f() {}"));
    assert!(!is_circle("fn f(x: (u8, u8)) { g!(x.crate_a, \"crate::a::A\"); }"));
    assert!(!is_circle("fn f() { mod a { pub struct A; } }"));
    assert!(!is_circle("fn f() { struct A; let _: A = A; }"));
}

#[test]
fn tests_do_not_count() {
    assert!(!is_circle("#[cfg(test)] mod checks { use crate::a::A; }"));
    assert!(!is_circle("#[cfg(all(test, unix))] fn f(_: crate::a::A) {}"));
    assert!(!is_circle("mod tests { use crate::a::A; }"));
    assert!(!is_circle("#[test] fn f() { use crate::a::A; }"));
    assert!(!is_circle("struct S { #[cfg(test)] of: crate::a::A }"));
    assert!(!is_circle("fn f() { #[cfg(test)] g(crate::a::C); }"));
    assert!(!is_circle("m! { #[cfg(test)] const D: u8 = crate::a::C; }"));
}

#[test]
fn code_that_not_only_tests_see_counts() {
    assert!(is_circle("#[cfg(not(test))] fn f(_: crate::a::A) {}"));
    assert!(is_circle("#[cfg(any(test, unix))] fn f(_: crate::a::A) {}"));
    assert!(is_circle("m! { #[cfg(test)] const D: u8 = 1; const E: u8 = crate::a::C; }"));
}

#[test]
fn an_item_that_a_macro_defines_belongs_to_the_file_of_the_call() {
    let found = circles(&[
        ("lib.rs", "#[macro_use] mod maker; mod a; mod b;"),
        ("maker.rs", "macro_rules! make { ($n:ident) => { struct $n; enum Other {} } }"),
        ("a.rs", "make! { Made } fn f(_: crate::b::B) {}"),
        ("b.rs", "pub struct B(crate::a::Made); pub use crate::a::Other;"),
    ]);
    assert_eq!(found, ["a b"]);
}

#[test]
fn a_macro_counts_by_its_path() {
    let a = ("a.rs", "macro_rules! m { () => {} } pub(crate) use m; use crate::b::B;");
    let b = ("b.rs", "pub struct B; fn f() { crate::a::m!() }");
    assert_eq!(circles(&[TWO, a, b]), ["a b"]);
}

#[test]
fn a_file_may_stand_elsewhere_by_its_path() {
    let lib = ("lib.rs", "#[path = \"x/y.rs\"] mod a; mod b;");
    let b = ("b.rs", "pub struct B(crate::a::A);");
    assert_eq!(circles(&[lib, ("x/y.rs", A_USES_B.1), b]), ["b y"]);
}

#[test]
fn the_report_names_files_lines_and_names() {
    let found = imports_of(&[TWO, A_USES_B, ("b.rs", "pub struct B;\nuse super::a::A;")]);
    let text = found.describe(&found.circles()[0], "files");
    assert!(text.starts_with("A circle of 2 files:\n"), "{text}");
    assert!(text.contains("b.rs:2 -> ") && text.trim_end().ends_with("a.rs: A"), "{text}");
}

/// The rings of folders' parts, as lines of their names.
fn rings(files: &[(&str, &str)]) -> Vec<String> {
    names(&imports_of(files).between_parts())
}

#[test]
fn folders_whose_files_import_each_other_are_a_ring() {
    let files = [
        TWO,
        ("a/mod.rs", "mod one; pub mod two;"),
        ("a/one.rs", "use crate::b::B; pub struct A(B);"),
        ("a/two.rs", "pub struct C;"),
        ("b.rs", "pub struct B; mod d;"),
        ("b/d.rs", "use crate::a::two::C; struct D(C);"),
    ];
    assert_eq!(circles(&files), [""; 0]);
    assert_eq!(rings(&files), ["a b"]);
    let text = {
        let parts = imports_of(&files).between_parts();
        parts.describe(&parts.circles()[0], "parts of a folder")
    };
    assert!(text.contains("/a -> ") && text.contains("B (one.rs:1)"), "{text}");
    assert!(text.contains("C (d.rs:1)"), "{text}");
}

#[test]
fn files_within_one_part_and_the_folder_s_own_file_are_no_ring() {
    let files = [
        ("lib.rs", "mod a; mod b; pub struct Z; fn f(_: b::B) {}"),
        ("a/mod.rs", "mod one; pub struct A(one::One);"),
        ("a/one.rs", "use crate::b::B; pub struct One(super::A, B);"),
        ("b.rs", "pub struct B(crate::Z);"),
    ];
    assert_eq!(rings(&files), [""; 0]);
}

#[test]
fn c_files_that_call_each_other_are_a_circle() {
    let a = "#include \"p.h\"\nint f(int x) { return g(x); }\nstatic int own(void) { return 1; }";
    let b = "int g(int x) {\n    return x ? f(x) : 0;\n}";
    let c = "/* f() */ int h(void) { return own() + g(1) + f(2); }\nstatic int own(void);";
    let folder = Folder::with(&[("a.c", a), ("b.c", b), ("c.c", c)]);
    let mut found = Imports::default();
    c_files::imports(&folder.0, &mut found).expect("a folder that can be read");
    assert_eq!((names(&found), found.len()), (vec!["a b".to_owned()], 4));
}

#[test]
fn a_macro_in_c_does_not_hide_the_function_after_it() {
    let a = "#define TWICE(x) \\\n    ((x) + g(x))\nint f(int x) { return TWICE(x); }";
    let folder = Folder::with(&[("a.c", a), ("b.c", "int g(int x) { return f(x); }")]);
    let mut found = Imports::default();
    c_files::imports(&folder.0, &mut found).expect("a folder that can be read");
    assert_eq!(names(&found), ["a b"]);
}
