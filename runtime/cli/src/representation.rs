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
        // A descriptor has commas between its own fields.
        let names: Vec<_> =
            if text.starts_with("e=") { vec![text] } else { text.split(',').collect() };
        for name in &names {
            architecture(name)?;
        }
        Ok(Representations(names.into_iter().map(str::to_owned).collect()))
    }

    /// Parses a list of representations that ranks can have.
    ///
    /// # Errors
    /// The errors of [`parse`](Representations::parse); a representation for files and buffers
    /// only.
    pub fn of_ranks(text: &str) -> Result<Representations, String> {
        let all = Representations::parse(text)?;
        all.0.iter().try_for_each(|name| of_rank(name))?;
        Ok(all)
    }
}
