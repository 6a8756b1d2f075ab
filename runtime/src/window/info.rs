//! What a window is told at its creation (MPI-5.0 section 12.2.1).

use shipable::Class;

use crate::engine::Policy;
use crate::error::{Error, ErrorKind, Result};

/// Hints and assurances, the same at all ranks.
///
/// ```
/// let info = longshore::Info::default().set("target_types", "same_layout")?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Which types may describe data in a target's window; key `target_types`, `strict` or `same_layout`.
    pub target_types: Policy,
    /// All ranks give the same size; key `same_size`, `true` or `false`.
    pub same_size: bool,
    /// All ranks give the same displacement unit; key `same_disp_unit`, `true` or `false`.
    pub same_disp_unit: bool,
}

impl Info {
    /// Sets a key as MPI_Info_set does. Unknown keys do nothing.
    ///
    /// # Errors
    /// INFO_VALUE for a value that a known key doesn't take.
    pub fn set(mut self, key: &str, value: &str) -> Result<Info> {
        let wrong =
            |key, expected| Error::from(ErrorKind::Info { key, value: value.to_owned(), expected });
        let flag = |key| value.parse().map_err(|_| wrong(key, "true or false"));
        match key {
            "target_types" => {
                self.target_types = match value {
                    "strict" => Policy::Strict,
                    "same_layout" => Policy::SameLayout,
                    _ => return Err(wrong("target_types", "strict or same_layout")),
                }
            }
            "same_size" => self.same_size = flag("same_size")?,
            "same_disp_unit" => self.same_disp_unit = flag("same_disp_unit")?,
            _ => {}
        }
        Ok(self)
    }
}

/// Rule 26: the arguments of one rank.
pub(super) fn check(size: i64, unit: i64) -> Result<(u64, u32)> {
    let wrong = |class, problem| Err(ErrorKind::WindowArgument { class, problem }.into());
    let Ok(bytes) = u64::try_from(size) else {
        return wrong(Class::Size, format!("a window of {size} bytes: use 0 or more"));
    };
    match u32::try_from(unit) {
        Ok(unit) if unit > 0 => Ok((bytes, unit)),
        _ => wrong(
            Class::Disp,
            format!("a displacement unit of {unit} bytes: use 1 to {}", u32::MAX),
        ),
    }
}
