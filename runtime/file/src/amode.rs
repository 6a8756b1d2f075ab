//! Modes of access (MPI-5.0 section 14.2.1).

use std::fmt;
use std::ops::BitOr;

use crate::error::{Error, Result};

/// How a file is opened: exactly one of [`RDONLY`](Amode::RDONLY), [`WRONLY`](Amode::WRONLY) and
/// [`RDWR`](Amode::RDWR), combined with others by `|`. The numbers are those of MPI's standard ABI.
///
/// ```
/// use longshore_file::Amode;
///
/// let amode = Amode::CREATE | Amode::WRONLY;
/// assert!(amode.contains(Amode::CREATE) && !amode.contains(Amode::EXCL));
/// assert_eq!(amode.to_string(), "CREATE|WRONLY");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Amode(i32);

impl Amode {
    /// All pointers are at the end of the file at first.
    pub const APPEND: Amode = Amode(1);
    /// The file is made, if it isn't there.
    pub const CREATE: Amode = Amode(2);
    /// The file is deleted when it is closed.
    pub const DELETE_ON_CLOSE: Amode = Amode(4);
    /// The file must not be there yet.
    pub const EXCL: Amode = Amode(8);
    /// The file is only read.
    pub const RDONLY: Amode = Amode(16);
    /// The file is read and written.
    pub const RDWR: Amode = Amode(32);
    /// The file is accessed in its order only, by the shared pointer.
    pub const SEQUENTIAL: Amode = Amode(64);
    /// The file isn't opened elsewhere.
    pub const UNIQUE_OPEN: Amode = Amode(128);
    /// The file is only written.
    pub const WRONLY: Amode = Amode(256);

    const NAMES: [(Amode, &'static str); 9] = [
        (Amode::APPEND, "APPEND"),
        (Amode::CREATE, "CREATE"),
        (Amode::DELETE_ON_CLOSE, "DELETE_ON_CLOSE"),
        (Amode::EXCL, "EXCL"),
        (Amode::RDONLY, "RDONLY"),
        (Amode::RDWR, "RDWR"),
        (Amode::SEQUENTIAL, "SEQUENTIAL"),
        (Amode::UNIQUE_OPEN, "UNIQUE_OPEN"),
        (Amode::WRONLY, "WRONLY"),
    ];

    /// The mode of MPI's number for it.
    ///
    /// ```
    /// use longshore_file::Amode;
    ///
    /// assert_eq!(Amode::from_bits(18), Amode::CREATE | Amode::RDONLY);
    /// ```
    ///
    /// [`File::open`](crate::File::open) refuses bits that have no meaning, at all ranks.
    pub fn from_bits(bits: i32) -> Amode {
        Amode(bits)
    }

    /// MPI's number.
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Whether it has all bits of another one.
    pub fn contains(self, other: Amode) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn may_read(self) -> bool {
        !self.contains(Amode::WRONLY)
    }

    pub(crate) fn may_write(self) -> bool {
        !self.contains(Amode::RDONLY)
    }

    /// Refuses modes that contradict each other.
    pub(crate) fn check(self) -> Result<()> {
        let ways = [Amode::RDONLY, Amode::WRONLY, Amode::RDWR];
        let ways = ways.iter().filter(|way| self.contains(**way)).count();
        let makes = self.contains(Amode::CREATE) || self.contains(Amode::EXCL);
        let known = Amode::NAMES.iter().fold(0, |all, (mode, _)| all | mode.0);
        let problem = match ways {
            _ if self.0 & !known != 0 => {
                let problem = "has unknown bits: combine the constants MPI_MODE_* of files by |";
                return Err(Error::Amode { amode: self.0.to_string(), problem });
            }
            0 => "says neither RDONLY, WRONLY nor RDWR: give one of them",
            2.. => "has several of RDONLY, WRONLY and RDWR: give one of them",
            _ if makes && self.contains(Amode::RDONLY) => {
                "makes a file that is only read: give WRONLY or RDWR, or leave out CREATE and EXCL"
            }
            _ if self.contains(Amode::SEQUENTIAL | Amode::RDWR) => {
                "reads and writes in the file's order: give RDONLY or WRONLY, or leave out \
                 SEQUENTIAL"
            }
            _ => return Ok(()),
        };
        Err(Error::Amode { amode: self.to_string(), problem })
    }
}

impl BitOr for Amode {
    type Output = Amode;

    fn bitor(self, other: Amode) -> Amode {
        Amode(self.0 | other.0)
    }
}

impl fmt::Display for Amode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Amode::NAMES.iter().filter(|(mode, _)| self.contains(*mode));
        let names: Vec<&str> = names.map(|(_, name)| *name).collect();
        match names.is_empty() {
            true => f.write_str("0"),
            false => f.write_str(&names.join("|")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_modes_are_refused_with_their_names() {
        for (amode, words) in [
            (Amode(1 << 20), "unknown bits"),
            (Amode::CREATE, "neither RDONLY"),
            (Amode::RDONLY | Amode::WRONLY, "several of"),
            (Amode::RDWR | Amode::WRONLY, "several of"),
            (Amode::RDONLY | Amode::CREATE, "only read"),
            (Amode::RDONLY | Amode::EXCL, "only read"),
            (Amode::RDWR | Amode::SEQUENTIAL, "file's order"),
        ] {
            let text = amode.check().unwrap_err().to_string();
            assert!(text.contains(words), "{text}");
        }
        for amode in [Amode::RDONLY, Amode::CREATE | Amode::EXCL | Amode::WRONLY, Amode::RDWR] {
            amode.check().unwrap();
        }
    }
}
