//! Ports, by which ranks that were started apart meet (MPI-5.0 section 11.4).

use std::fmt;
use std::str::FromStr;

use crate::engine::Context;
use crate::error::{Error, ErrorKind};

/// The version of Longshore, which both sides of a port must have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The first word of a port's text.
const WORD: &str = "longshore";

/// A place at which a rank accepts others (MPI-5.0 section 11.4.2).
///
/// Its text, the port name of MPI, can be passed on by any means. It has a random key: only a rank
/// that has been given the text can connect.
///
/// ```
/// use longshore::Port;
///
/// let rank = longshore::init()?;
/// let port = rank.open_port()?;
/// assert_eq!(port.to_string().parse::<Port>()?, port);
/// assert!("elsewhere".parse::<Port>().is_err());
/// rank.close_port(&port)?;
/// rank.finalize()?;
/// # Ok::<(), longshore::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Port {
    /// The number of the segment that the job's ranks share.
    pub(crate) segment: u64,
    /// The rank that accepts there, by its number in the job.
    pub(crate) process: u32,
    /// The number that this rank has given the port.
    pub(crate) number: u32,
    pub(crate) key: u128,
}

/// A request to connect, which has come to a rank at one of its ports.
pub(crate) struct Asked {
    /// The rank that connects.
    pub peer: u32,
    /// The context of the communicator to be.
    pub context: Context,
    /// The number of the port.
    pub port: u32,
    /// The key that the rank has for it.
    pub key: u128,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Port { segment, process, number, key } = self;
        write!(f, "{WORD}/{VERSION}/{segment:x}/{process}/{number}/{key:032x}")
    }
}

/// Without the key, so that no log has it.
impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Port { segment, process, number, .. } = self;
        write!(f, "Port({segment:x}/{process}/{number})")
    }
}

/// # Errors
/// PORT for a text that no [`Port`] of this version has.
impl FromStr for Port {
    type Err = Error;

    fn from_str(text: &str) -> Result<Port, Error> {
        let mut words = text.trim().split('/');
        let (word, version) = (words.next(), words.next());
        if word == Some(WORD) && version.is_some_and(|version| version != VERSION) {
            let version = version.unwrap_or_default();
            let what = format!(
                "it was opened by Longshore {version}, and this rank has {VERSION}: run both \
                 programs with one version"
            );
            return Err(ErrorKind::Port(what).into());
        }
        let mut parse = || {
            let port = Port {
                segment: u64::from_str_radix(words.next()?, 16).ok()?,
                process: words.next()?.parse().ok()?,
                number: words.next()?.parse().ok().filter(|number| *number <= i32::MAX as u32)?,
                key: u128::from_str_radix(words.next()?, 16).ok()?,
            };
            words.next().is_none().then_some(port)
        };
        let port = if word == Some(WORD) { parse() } else { None };
        port.ok_or_else(|| {
            let what = "its text is none that opening a port gives: pass that on as it is";
            ErrorKind::Port(what.to_owned()).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_the_same_after_its_text() {
        let port = Port { segment: 0xabc, process: 3, number: 7, key: u128::MAX - 1 };
        assert_eq!(port.to_string().parse::<Port>().unwrap(), port);
        assert!(!format!("{port:?}").contains("ffff"));
    }

    #[test]
    fn texts_of_no_port_are_refused() {
        let refused = |text: &str| text.parse::<Port>().unwrap_err().to_string();
        let good = Port { segment: 1, process: 2, number: 3, key: 4 }.to_string();
        for text in ["", "longshore", &format!("{good}/"), &good.replace("/2/", "/x/")] {
            assert!(refused(text).contains("none that opening a port gives"), "{text}");
        }
        let older = good.replace(VERSION, "0.0.1");
        assert!(refused(&older).contains("Longshore 0.0.1, and this rank has"));
    }
}
