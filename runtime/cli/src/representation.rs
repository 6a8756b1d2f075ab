//! Data representations, as they are named on the command line.

use shipable::Architecture;

/// What a name stands for: the machine's own where it is `native`.
///
/// # Errors
/// The names that there are; what is wrong with a descriptor.
pub fn named(name: &str) -> Result<Architecture, String> {
    match name {
        "native" => Ok(Architecture::NATIVE),
        _ => Architecture::by_name(name).map_err(|error| error.to_string()),
    }
}

/// Several, by names between commas, or one by its descriptor; each is good for [`named`].
#[derive(Clone)]
pub struct Representations(pub Vec<String>);

impl Representations {
    /// The names in a text.
    ///
    /// # Errors
    /// As [`named`].
    pub fn parse(text: &str) -> Result<Representations, String> {
        // A descriptor's own fields are joined by commas.
        let names: Vec<_> =
            if text.starts_with("e=") { vec![text] } else { text.split(',').collect() };
        for name in &names {
            named(name)?;
        }
        Ok(Representations(names.into_iter().map(str::to_owned).collect()))
    }
}
