//! Rules that the compiler enforces.

/// Compared with the errors of one compiler, since those of others differ.
#[rustversion::since(1.95)]
#[test]
fn foreign_types_and_keyvals_are_accepted_only_where_they_belong() {
    trybuild::TestCases::new().compile_fail("tests/compiler/*.rs");
}
