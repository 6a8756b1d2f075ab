//! The hints that a window is created with (MPI-5.0 section 12.2.1).

use std::fmt;

use serde::{Deserialize, Serialize};
use shipable::Class;

use crate::engine::Policy;
use crate::error::{Error, ErrorKind, Result};
use crate::pointer::fits;

/// Hints and assurances for a window. All ranks must give equal ones.
///
/// ```
/// let info = longshore::Info::default().set("target_types", "same_layout")?;
/// assert_eq!(info.get("accumulate_ordering").unwrap(), "rar,raw,war,waw");
/// assert_eq!(info.minimum_memory_alignment.bytes(), 64);
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// The types that may describe data in a target's window. Key `target_types`: `strict` or
    /// `same_layout`.
    pub target_types: Policy,
    /// The accumulates of one origin to one location that keep the order of its calls. Key
    /// `accumulate_ordering`: `none`, or a list of `rar`, `raw`, `war` and `waw`. All of them keep
    /// their order here with every value, since it costs nothing.
    pub accumulate_ordering: Ordering,
    /// The operations of concurrent accumulates to one location. Key `accumulate_ops`: `same_op` or
    /// `same_op_no_op`. Any mix of operations is atomic here, since all take the same lock.
    pub accumulate_ops: AccumulateOps,
    /// All ranks give the same size. Key `same_size`: `true` or `false`.
    pub same_size: bool,
    /// All ranks give the same displacement unit. Key `same_disp_unit`: `true` or `false`.
    pub same_disp_unit: bool,
    /// The ranks' parts of a shared window need not be contiguous, so that no page has two owners.
    /// Key `alloc_shared_noncontig`: `true` or `false`.
    pub alloc_shared_noncontig: bool,
    /// No rank locks the window: calls that lock are refused. Key `no_locks`: `true` or `false`.
    pub no_locks: bool,
    /// One thread copies directly between this rank's memory and the window, however long the
    /// transfer is. Otherwise idle cores help with long ones of irregular types. Key `no_threads`:
    /// `true` or `false`.
    pub no_threads: bool,
    /// The alignment of memory that the window allocates. Key `mpi_minimum_memory_alignment`: a
    /// power of two up to 4096.
    ///
    /// Up to 64, large memory begins at a different page offset at each rank, since arrays with
    /// equal page offsets evict each other from caches. In a shared window the alignment holds for
    /// the first part, and for all parts if they need not be contiguous.
    pub minimum_memory_alignment: Alignment,
    /// The number of notification counters that each rank has, which
    /// [notified operations](crate::Epoch::put_notify) raise. Each takes a cache line. Key
    /// `mpi_assert_max_num_notify`: 0 to 65535.
    pub max_num_notify: u16,
}

/// A power of two up to 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Alignment(u32);

impl Default for Alignment {
    fn default() -> Alignment {
        Alignment(64)
    }
}

impl Alignment {
    /// The size of a page on every host: mappings begin at one.
    const MAX: u32 = 4096;

    /// An alignment of `bytes` bytes, a power of two up to 4096.
    ///
    /// ```
    /// use longshore::{Alignment, Class, Info};
    ///
    /// let info = Info { minimum_memory_alignment: Alignment::new(4096)?, ..Info::default() };
    /// assert_eq!(info, Info::default().set("mpi_minimum_memory_alignment", "4096")?);
    /// assert_eq!(Alignment::new(48).unwrap_err().class(), Class::InfoValue);
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// INFO_VALUE for another number.
    pub fn new(bytes: u32) -> Result<Alignment> {
        match bytes.is_power_of_two() && bytes <= Alignment::MAX {
            true => Ok(Alignment(bytes)),
            false => Err(Alignment::wrong(bytes.to_string())),
        }
    }

    /// The alignment in bytes.
    pub fn bytes(self) -> u32 {
        self.0
    }

    fn parse(value: &str) -> Result<Alignment> {
        Alignment::new(value.parse().map_err(|_| Alignment::wrong(value.to_owned()))?)
    }

    fn wrong(value: String) -> Error {
        let (key, expected) = ("mpi_minimum_memory_alignment", "a power of two up to 4096");
        ErrorKind::Info { key, value, expected }.into()
    }
}

/// The pairs of accumulates of one origin to one location that are ordered (MPI-5.0 section
/// 12.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// The operations that concurrent accumulates to one location may have (MPI-5.0 section 12.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AccumulateOps {
    /// All have the same operation.
    SameOp,
    /// All have the same operation or MPI_NO_OP.
    #[default]
    SameOpNoOp,
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = [("rar", self.rar), ("raw", self.raw), ("war", self.war), ("waw", self.waw)];
        let set: Vec<_> = pairs.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
        match set.is_empty() {
            true => f.write_str("none"),
            false => f.write_str(&set.join(",")),
        }
    }
}

impl Info {
    /// The known keys.
    pub const KEYS: [&str; 10] = [
        "target_types",
        "accumulate_ordering",
        "accumulate_ops",
        "same_size",
        "same_disp_unit",
        "alloc_shared_noncontig",
        "no_locks",
        "no_threads",
        "mpi_minimum_memory_alignment",
        "mpi_assert_max_num_notify",
    ];

    /// The value of a key, in the format of MPI_Info_get_string; `None` for an unknown key.
    #[doc(alias = "MPI_Info_get_string")]
    pub fn get(&self, key: &str) -> Option<String> {
        Some(match key {
            "target_types" => match self.target_types {
                Policy::Strict => "strict".to_owned(),
                Policy::SameLayout => "same_layout".to_owned(),
            },
            "accumulate_ordering" => self.accumulate_ordering.to_string(),
            "accumulate_ops" => match self.accumulate_ops {
                AccumulateOps::SameOp => "same_op".to_owned(),
                AccumulateOps::SameOpNoOp => "same_op_no_op".to_owned(),
            },
            "same_size" => self.same_size.to_string(),
            "same_disp_unit" => self.same_disp_unit.to_string(),
            "alloc_shared_noncontig" => self.alloc_shared_noncontig.to_string(),
            "no_locks" => self.no_locks.to_string(),
            "no_threads" => self.no_threads.to_string(),
            "mpi_minimum_memory_alignment" => self.minimum_memory_alignment.0.to_string(),
            "mpi_assert_max_num_notify" => self.max_num_notify.to_string(),
            _ => return None,
        })
    }

    /// These hints, after [`set_info`](crate::Window::set_info) with other ones. What ranks learn
    /// of each other when they make the window stays.
    pub(super) fn changed_to(&self, to: &Info) -> Info {
        Info {
            target_types: self.target_types,
            no_threads: self.no_threads,
            minimum_memory_alignment: self.minimum_memory_alignment,
            max_num_notify: self.max_num_notify,
            ..*to
        }
    }

    /// The hints of all ranks together, where they may differ: what each rank may rely on with the
    /// hints of every other one. The number of counters is no promise, so it can't differ.
    fn common(infos: &[Info]) -> Info {
        infos.iter().copied().reduce(|one, other| one.and(&other)).unwrap_or_default()
    }

    fn and(&self, other: &Info) -> Info {
        let (one, two) = (self.accumulate_ordering, other.accumulate_ordering);
        let same_op = |info: &Info| info.accumulate_ops == AccumulateOps::SameOp;
        Info {
            target_types: match self.target_types == other.target_types {
                true => self.target_types,
                false => Policy::Strict,
            },
            accumulate_ordering: Ordering {
                rar: one.rar | two.rar,
                raw: one.raw | two.raw,
                war: one.war | two.war,
                waw: one.waw | two.waw,
            },
            accumulate_ops: match same_op(self) && same_op(other) {
                true => AccumulateOps::SameOp,
                false => AccumulateOps::SameOpNoOp,
            },
            same_size: self.same_size && other.same_size,
            same_disp_unit: self.same_disp_unit && other.same_disp_unit,
            alloc_shared_noncontig: self.alloc_shared_noncontig && other.alloc_shared_noncontig,
            no_locks: self.no_locks && other.no_locks,
            no_threads: self.no_threads || other.no_threads,
            minimum_memory_alignment: Alignment(
                self.minimum_memory_alignment.0.max(other.minimum_memory_alignment.0),
            ),
            max_num_notify: self.max_num_notify,
        }
    }

    /// Rule 26: all ranks give equal hints. Returns the hints in effect. If other ones are
    /// excused, also returns the text of the difference.
    pub(super) fn agree(infos: &[Info], excuses: bool) -> Result<(Info, Option<String>)> {
        let Some(problem) = Info::differ(infos) else {
            return Ok((infos.first().copied().unwrap_or_default(), None));
        };
        let count_alike = infos.iter().all(|info| info.max_num_notify == infos[0].max_num_notify);
        match excuses && count_alike {
            true => Ok((Info::common(infos), Some(problem))),
            false => Err(ErrorKind::WindowArgument { class: Class::Arg, problem }.into()),
        }
    }

    /// The first difference between the ranks' hints.
    fn differ(infos: &[Info]) -> Option<String> {
        let rank = infos.iter().position(|info| *info != infos[0])?;
        let differs = |key: &&str| infos[rank].get(key) != infos[0].get(key);
        let key = Info::KEYS.into_iter().find(|key| differs(key)).unwrap_or_default();
        let values = [0, rank].map(|rank| infos[rank].get(key).unwrap_or_default());
        Some(format!(
            "info {key}={} at rank 0, and {} at rank {rank}: give the same at all ranks",
            values[0], values[1]
        ))
    }

    /// Sets a key as MPI_Info_set does. Unknown keys have no effect, as in MPI; a `tracing` event
    /// at level debug reports them. Fields can't be misspelt:
    ///
    /// ```
    /// use longshore::{Info, TargetTypes};
    ///
    /// let info = Info { target_types: TargetTypes::SameLayout, ..Info::default() };
    /// assert_eq!(info, Info::default().set("target_types", "same_layout")?);
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// INFO_VALUE for a value that a known key doesn't take.
    #[doc(alias = "MPI_Info_set")]
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
            "no_locks" => self.no_locks = flag("no_locks")?,
            "no_threads" => self.no_threads = flag("no_threads")?,
            "mpi_minimum_memory_alignment" => {
                self.minimum_memory_alignment = Alignment::parse(value)?;
            }
            "mpi_assert_max_num_notify" => {
                let number = value.parse();
                self.max_num_notify =
                    number.map_err(|_| wrong("mpi_assert_max_num_notify", "0 to 65535"))?;
            }
            _ => tracing::debug!(key, value, "unknown info key: ignored"),
        }
        Ok(self)
    }
}

/// Rule 26: checks the arguments of one rank, whose pointers have `pointer` bytes.
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
    fn get_returns_the_value_that_was_set() {
        let mut values = ["true"; Info::KEYS.len()];
        values[..3].copy_from_slice(&["same_layout", "raw,waw", "same_op"]);
        values[Info::KEYS.len() - 2..].copy_from_slice(&["4096", "16"]);
        let mut info = Info::default();
        for (key, value) in Info::KEYS.into_iter().zip(values) {
            assert_ne!(info.get(key).unwrap(), value);
            info = info.set(key, value).unwrap();
            assert_eq!(info.get(key).unwrap(), value);
            assert_eq!(info.set(key, "maybe").unwrap_err().class(), Class::InfoValue);
        }
        assert_eq!((info.minimum_memory_alignment.bytes(), info.max_num_notify), (4096, 16));
        assert!(info.set("mpi_assert_max_num_notify", "65536").is_err());
        for wrong in ["0", "3", "8192", "-8"] {
            let refused = info.set("mpi_minimum_memory_alignment", wrong).unwrap_err();
            assert!(refused.to_string().contains("a power of two up to 4096"), "{refused}");
        }
        assert_eq!((info.get("color"), info.set("color", "blue").unwrap()), (None, info));
    }

    #[test]
    fn accumulate_hints_refuse_unknown_values() {
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
