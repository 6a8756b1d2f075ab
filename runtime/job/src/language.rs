//! The language of the program, in which errors and reports of this process speak.

use std::sync::OnceLock;

/// The language of the program's calls, in which errors and reports speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// The crate's own calls.
    #[default]
    Rust,
    /// MPI's calls in C, which Python makes too.
    C,
}

static LANGUAGE: OnceLock<Language> = OnceLock::new();

/// Lets the errors of this process speak a language. The first call counts.
pub fn speak(language: Language) {
    let _ = LANGUAGE.set(language); // a later one changes nothing
}

/// The language of the program.
pub fn language() -> Language {
    LANGUAGE.get().copied().unwrap_or_default()
}
