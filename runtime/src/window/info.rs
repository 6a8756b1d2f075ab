//! What a window is told at its creation (MPI-5.0 section 12.2.1).

use shipable::Class;

use crate::engine::{Policy, fits};
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
    /// How far the accumulates of one origin to one place keep the order of its calls; key `accumulate_ordering`, `none` or a
    /// list of `rar`, `raw`, `war` and `waw`. Whatever it is, they keep it: that costs nothing here.
    pub accumulate_ordering: Ordering,
    /// Which operations may meet at one place within an epoch; key `accumulate_ops`, `same_op` or `same_op_no_op`. All may:
    /// every one takes the same lock.
    pub accumulate_ops: AccumulateOps,
    /// All ranks give the same size; key `same_size`, `true` or `false`.
    pub same_size: bool,
    /// All ranks give the same displacement unit; key `same_disp_unit`, `true` or `false`.
    pub same_disp_unit: bool,
    /// The ranks' parts of a shared window need not follow each other, so that each begins on a page of its own; key
    /// `alloc_shared_noncontig`, `true` or `false`.
    pub alloc_shared_noncontig: bool,
}

/// Which pairs of accumulates of one origin to one place are ordered (MPI-5.0 section 12.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ordering {
    /// A read after a read.
    pub rar: bool,
    /// A read after a write.
    pub raw: bool,
    /// A write after a read.
    pub war: bool,
    /// A write after a write.
    pub waw: bool,
}

impl Default for Ordering {
    fn default() -> Ordering {
        Ordering { rar: true, raw: true, war: true, waw: true }
    }
}

impl Ordering {
    fn parse(value: &str) -> Option<Ordering> {
        let mut ordering = Ordering { rar: false, raw: false, war: false, waw: false };
        if value == "none" {
            return Some(ordering);
        }
        for pair in value.split(',') {
            match pair.trim() {
                "rar" => ordering.rar = true,
                "raw" => ordering.raw = true,
                "war" => ordering.war = true,
                "waw" => ordering.waw = true,
                _ => return None,
            }
        }
        Some(ordering)
    }
}

/// Which operations concurrent accumulates to one place may be (MPI-5.0 section 12.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccumulateOps {
    /// All the same.
    SameOp,
    /// All the same, or MPI_NO_OP.
    #[default]
    SameOpNoOp,
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
            "accumulate_ordering" => {
                let expected = "none, or a list of rar, raw, war and waw";
                let ordering = Ordering::parse(value);
                self.accumulate_ordering =
                    ordering.ok_or_else(|| wrong("accumulate_ordering", expected))?;
            }
            "accumulate_ops" => {
                self.accumulate_ops = match value {
                    "same_op" => AccumulateOps::SameOp,
                    "same_op_no_op" => AccumulateOps::SameOpNoOp,
                    _ => return Err(wrong("accumulate_ops", "same_op or same_op_no_op")),
                }
            }
            "same_size" => self.same_size = flag("same_size")?,
            "same_disp_unit" => self.same_disp_unit = flag("same_disp_unit")?,
            "alloc_shared_noncontig" => {
                self.alloc_shared_noncontig = flag("alloc_shared_noncontig")?;
            }
            _ => {}
        }
        Ok(self)
    }
}

/// Rule 26: the arguments of one rank, whose pointers have so many bytes.
pub(super) fn check(size: i64, unit: i64, pointer: u8) -> Result<(u64, u32)> {
    let wrong = |class, problem| Err(ErrorKind::WindowArgument { class, problem }.into());
    let Ok(bytes) = u64::try_from(size) else {
        return wrong(Class::Size, format!("a window of {size} bytes: use 0 or more"));
    };
    if !fits(bytes, pointer) {
        let problem = format!(
            "a window of {size} bytes, which this rank's pointers of {pointer} bytes can't reach: make it smaller"
        );
        return wrong(Class::Size, problem);
    }
    match u32::try_from(unit) {
        Ok(unit) if unit > 0 => Ok((bytes, unit)),
        _ => wrong(
            Class::Disp,
            format!("a displacement unit of {unit} bytes: use 1 to {}", u32::MAX),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_accumulates_are_checked() {
        let info = Info::default().set("accumulate_ordering", "rar, waw").unwrap();
        let Ordering { rar, raw, war, waw } = info.accumulate_ordering;
        assert_eq!([rar, raw, war, waw], [true, false, false, true]);
        assert_eq!(
            Info::default().accumulate_ordering,
            Ordering::parse("rar,raw,war,waw").unwrap()
        );
        let info = info.set("accumulate_ordering", "none").unwrap();
        assert!(!info.accumulate_ordering.rar);
        let info = info.set("accumulate_ops", "same_op").unwrap();
        assert_eq!(info.accumulate_ops, AccumulateOps::SameOp);
        for (key, value) in [
            ("accumulate_ordering", "rar,"),
            ("accumulate_ordering", "strict"),
            ("accumulate_ops", "any"),
        ] {
            let error = Info::default().set(key, value).unwrap_err();
            assert_eq!(error.class(), Class::InfoValue);
            assert!(
                error.to_string().contains(key) && error.to_string().contains(value),
                "{error}"
            );
        }
    }
}
