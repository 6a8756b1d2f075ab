//! What ranks ask `longshore run` for while the job runs: processes to start, and names of ports.
//!
//! None of it is part of PMI-1. Values of any bytes travel as hexadecimal digits, since words of a
//! line have no blanks. An [`Order`] may be longer than a line, so it travels in pieces.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// The longest encoded order, in bytes.
pub const ORDER_LIMIT: usize = 1 << 20;

/// The bytes of an order in one line.
pub const PIECE: usize = 1 << 10;

/// The longest name of a port, and the longest text of a port, in bytes.
pub const NAME_LIMIT: usize = 512;

/// The processes that a rank asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The port by which the new processes meet those that ask for them.
    pub port: String,
    /// The programs, whose processes together form one world.
    pub programs: Vec<Wanted>,
}

/// A program to start, with the number of its processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The program. If it contains no slash, it is looked up in `path`, and then in PATH.
    pub program: String,
    /// The program's arguments.
    pub arguments: Vec<String>,
    /// The acceptable numbers of processes, all above 0, in ascending order. The largest for which
    /// there is room is taken.
    pub counts: Vec<u32>,
    /// The host on which the processes run, if the rank names one.
    pub host: Option<String>,
    /// The working directory, if it isn't that of the job.
    pub folder: Option<String>,
    /// The folders in which to look for the program first, separated by colons.
    pub path: Option<String>,
    /// The data representation that the processes emulate.
    pub arch: Option<String>,
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Started {
    /// The processes run.
    Running {
        /// The number of the first process among all ranks of the job.
        first: u32,
        /// The number of processes of each program.
        counts: Vec<u32>,
    },
    /// No process runs.
    Refused(String),
}

/// The digits of bytes.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        // A String takes everything.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The bytes of digits; `None` for another text.
pub fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// The text of digits; `None` for digits of no text, and for another text.
pub fn text(digits: &str) -> Option<String> {
    String::from_utf8(bytes(digits)?).ok()
}

impl Started {
    /// The line that reports it.
    pub fn to_line(&self) -> String {
        match self {
            Started::Running { first, counts } => {
                let counts: Vec<_> = counts.iter().map(u32::to_string).collect();
                format!("cmd=longshore_started rc=0 first={first} counts={}", counts.join(","))
            }
            Started::Refused(why) => {
                let end =
                    (0..=why.len().min(NAME_LIMIT)).rev().find(|&it| why.is_char_boundary(it));
                let why = &why.as_bytes()[..end.unwrap_or(0)];
                format!("cmd=longshore_started rc=1 why={}", digits(why))
            }
        }
    }

    /// Reads what [`to_line`](Started::to_line) writes.
    pub fn parse(line: &str) -> Option<Started> {
        let word = |key| crate::line::word(line, key);
        match word("rc")? {
            "0" => {
                let counts = word("counts")?.split(',').map(|count| count.parse().ok());
                let counts: Option<Vec<u32>> = counts.collect();
                Some(Started::Running { first: word("first")?.parse().ok()?, counts: counts? })
            }
            _ => Some(Started::Refused(text(word("why")?)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_after_a_line() {
        for text in ["", "a b", "\u{0}ü\n"] {
            assert_eq!(super::text(&digits(text.as_bytes())).as_deref(), Some(text));
        }
        assert_eq!((bytes("0"), bytes("0g"), bytes("ff00")), (None, None, Some(vec![255, 0])));
    }

    #[test]
    fn what_became_of_an_order_is_the_same_after_a_line() {
        let running = Started::Running { first: 7, counts: vec![2, 1] };
        for started in [running, Started::Refused("no program ü".to_owned())] {
            assert_eq!(Started::parse(&started.to_line()), Some(started));
        }
        let long = Started::Refused("ü".repeat(NAME_LIMIT)).to_line();
        assert!(matches!(Started::parse(&long), Some(Started::Refused(why)) if why.len() == 512));
        assert_eq!(Started::parse("cmd=longshore_started rc=0 first=x counts=1"), None);
    }
}
