//! Checks of constructor arguments, and the errors for invalid ones.

use crate::error::{Class, Error, Result};

/// The name of the call whose arguments are checked.
#[derive(Clone, Copy)]
pub(super) struct Call(pub &'static str);

impl Call {
    pub fn refuse(self, class: Class, problem: String) -> Error {
        Error::Argument { call: self.0, class, problem }
    }

    pub fn count(self, count: i64) -> Result<()> {
        match count {
            0.. => Ok(()),
            _ => {
                Err(self
                    .refuse(Class::Count, format!("count is {count}: counts are zero or greater")))
            }
        }
    }

    pub fn blocklength(self, blocklength: i64) -> Result<()> {
        match blocklength {
            0.. => Ok(()),
            _ => Err(self.refuse(
                Class::Arg,
                format!("blocklength is {blocklength}: blocklengths are zero or greater"),
            )),
        }
    }

    pub fn blocklengths(self, blocklengths: &[i64]) -> Result<()> {
        // The bits of all lengths together take vector instructions.
        if blocklengths.iter().fold(0, |bits, n| bits | n) >= 0 {
            return Ok(());
        }
        match blocklengths.iter().position(|&n| n < 0) {
            None => Ok(()),
            Some(at) => Err(self.refuse(
                Class::Arg,
                format!(
                    "blocklengths[{at}] is {}: blocklengths are zero or greater",
                    blocklengths[at]
                ),
            )),
        }
    }

    /// Requires all lists to have the length of the first.
    pub fn lengths<const N: usize>(self, lists: [(&str, usize); N]) -> Result<()> {
        let [(first, length), ..] = lists[..] else { return Ok(()) };
        match lists.iter().find(|(_, other)| *other != length) {
            None => Ok(()),
            Some((other, found)) => Err(self.refuse(
                Class::Arg,
                format!("{length} {first} but {found} {other}: give as many of each"),
            )),
        }
    }
}
