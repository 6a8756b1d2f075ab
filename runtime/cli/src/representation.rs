//! Data representations, as they are named on the command line.

use longshore_benches::case::{architecture, of_rank};

/// Several, by names between commas, or one by its descriptor; each is good for [`architecture`].
#[derive(Clone)]
pub struct Representations(pub Vec<String>);

impl Representations {
    /// The names in a text.
    ///
    /// # Errors
    /// The names that there are; what is wrong with a descriptor.
    pub fn parse(text: &str) -> Result<Representations, String> {
        // A descriptor's own fields are joined by commas.
        let names: Vec<_> =
            if text.starts_with("e=") { vec![text] } else { text.split(',').collect() };
        for name in &names {
            architecture(name)?;
        }
        Ok(Representations(names.into_iter().map(str::to_owned).collect()))
    }

    /// The names in a text, each of a representation that ranks can have.
    ///
    /// # Errors
    /// As [`parse`](Representations::parse); what the others are good for.
    pub fn of_ranks(text: &str) -> Result<Representations, String> {
        let all = Representations::parse(text)?;
        all.0.iter().try_for_each(|name| of_rank(name))?;
        Ok(all)
    }
}
