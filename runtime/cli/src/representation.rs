//! Data representations on the command line: names or descriptors.

use longshore_benches::case::{architecture, of_rank};

/// Several names separated by commas, or one descriptor; [`architecture`] accepts each of them.
#[derive(Clone)]
pub struct Representations(pub Vec<String>);

impl Representations {
    /// Parses a list of names, or one descriptor.
    ///
    /// # Errors
    /// An unknown name, with the list of known ones; a malformed descriptor.
    pub fn parse(text: &str) -> Result<Representations, String> {
        Representations::checked(text, |name| architecture(name).map(drop))
    }

    /// Parses a list of representations that ranks can have.
    ///
    /// # Errors
    /// An unknown name, with the list of those that a rank can have; a malformed descriptor; a
    /// representation for files and buffers only.
    pub fn of_ranks(text: &str) -> Result<Representations, String> {
        Representations::checked(text, of_rank)
    }

    fn checked(
        text: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<Representations, String> {
        // A descriptor has commas between its own fields.
        let names: Vec<_> =
            if text.starts_with("e=") { vec![text] } else { text.split(',').collect() };
        names.iter().try_for_each(|name| check(name))?;
        Ok(Representations(names.into_iter().map(str::to_owned).collect()))
    }
}
