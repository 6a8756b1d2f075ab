//! Where a rank listens.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::str::FromStr;
use std::{io, iter, process};

/// The number of ports to try that the system found free: another process may take one first.
const TRIES: usize = 16;

/// A range of ports, for hosts whose firewall lets only these through.
///
/// ```
/// # use longshore_transport::fabric::Ports;
/// let ports: Ports = "5000:5099".parse()?;
/// assert_eq!(ports.to_string(), "5000:5099");
/// assert!("5099:5000".parse::<Ports>().is_err());
/// # Ok::<(), longshore_transport::fabric::WrongPorts>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    low: u16,
    high: u16,
}

/// A text that isn't two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the lowest and the highest port, each from 1 to 65535, as in 5000:5099")]
pub struct WrongPorts;

impl FromStr for Ports {
    type Err = WrongPorts;

    fn from_str(text: &str) -> Result<Ports, WrongPorts> {
        let (low, high) = text.split_once(':').ok_or(WrongPorts)?;
        let port = |text: &str| text.parse().map_err(|_| WrongPorts);
        let (low, high) = (port(low)?, port(high)?);
        if low == 0 || low > high { Err(WrongPorts) } else { Ok(Ports { low, high }) }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.low, self.high)
    }
}

impl Ports {
    /// All ports of the range, in an order that differs between processes. Ranks that start
    /// together would otherwise all try the first one.
    fn all(self) -> impl Iterator<Item = u16> {
        let count = u32::from(self.high - self.low) + 1;
        let first = process::id() % count;
        // The sum is at most `high`, so it is a port.
        (0..count).map(move |at| self.low + ((first + at) % count) as u16)
    }
}

/// An interface, and the ports on it at which a rank may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The interface's address.
    pub interface: IpAddr,
    /// `None`: any port that the system finds free.
    pub ports: Option<Ports>,
}

impl From<IpAddr> for Place {
    fn from(interface: IpAddr) -> Place {
        Place { interface, ports: None }
    }
}

impl Place {
    /// The addresses to try, one after the other. Something may listen there.
    pub(super) fn addresses(self) -> Box<dyn Iterator<Item = io::Result<SocketAddr>>> {
        let Place { interface, ports } = self;
        match ports {
            Some(ports) => Box::new(ports.all().map(move |port| Ok((interface, port).into()))),
            None => {
                let free =
                    move || TcpListener::bind((interface, 0)).and_then(|found| found.local_addr());
                Box::new(iter::repeat_with(free).take(TRIES))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_written() {
        for text in ["5000:5099", "1:65535", "7:7"] {
            assert_eq!(text.parse::<Ports>().map(|read| read.to_string()), Ok(text.into()));
        }
        for wrong in ["", "5000", "5000-5099", "0:9", "9:8", "1:65536", ":", "5000:", "1:2:3"] {
            assert_eq!(wrong.parse::<Ports>(), Err(WrongPorts), "{wrong}");
        }
    }

    #[test]
    fn each_port_of_a_range_is_tried_once() {
        for (low, high) in [(5000, 5006), (65535, 65535), (1, 65535)] {
            let mut all: Vec<u16> = Ports { low, high }.all().collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(low..=high));
        }
    }
}
