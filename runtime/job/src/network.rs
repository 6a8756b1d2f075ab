//! The network between ranks on several hosts: each rank listens, publishes its addresses, and
//! reads the addresses of the others.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use std::{fmt, fs, io};

use longshore_transport::composed::Composed;
use longshore_transport::fabric::{LibraryError, Listener, OpenError, Place, Ports};
use longshore_transport::shm::ShmLink;
use longshore_transport::{Link, Segment};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use shipable::Architecture;

use super::Error;
use super::exchange::{Exchange, key};
use super::pmi::word;
use crate::endpoint::{self, Endpoint};
use crate::hosts::Hosts;
use crate::{env, optional, text};

/// The default provider. It works between any two machines.
const PROVIDER: &str = "tcp";

/// The name under which a rank publishes its addresses.
const ADDRESS: &str = "address";

/// Stands for the addresses of a rank that died before it published any.
const NOWHERE: &str = "-";

/// The most bytes of an address in a published value, with its comma.
const ADDRESS_BYTES: usize = 70;

/// The number of addresses in one published value. It is the same at all ranks.
fn addresses_per_value(launcher: &Exchange) -> usize {
    (launcher.room() / ADDRESS_BYTES).max(1)
}

/// The time without a sign of life after which another host is lost. Switches need less time to
/// find a new route.
const PATIENCE: Duration = Duration::from_secs(20);

/// The listener of this rank, and the addresses of its peers.
pub struct Network {
    listener: Listener,
    /// By rank. `None` for ranks on this host, and for ranks that died before they listened.
    addresses: Vec<Option<Addresses>>,
}

/// What a rank offers to peers on other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Frames, as they are.
    Frames,
    /// Also accesses to its memory.
    Memory,
    /// Encrypted frames, and nothing else.
    Encrypted,
}

/// The addresses of a rank: `10.0.0.1:4711`, or `10.0.0.1:4711/4712` with a port for its memory.
/// `10.0.0.1:4711/encrypted` is that of a rank that encrypts its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Addresses {
    frames: SocketAddr,
    /// The port on the same interface for accesses to the rank's memory, if it allows them.
    memory: Option<u16>,
    encrypts: bool,
}

/// Stands for the port for memory at a rank that encrypts its frames.
const ENCRYPTED: &str = "encrypted";

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.memory {
            _ if self.encrypts => write!(f, "{}/{ENCRYPTED}", self.frames),
            Some(port) => write!(f, "{}/{port}", self.frames),
            None => self.frames.fmt(f),
        }
    }
}

impl FromStr for Addresses {
    type Err = ();

    fn from_str(text: &str) -> Result<Addresses, ()> {
        let (frames, memory, encrypts) = match text.split_once('/') {
            Some((frames, ENCRYPTED)) => (frames, None, true),
            Some((frames, port)) => (frames, Some(port.parse().map_err(|_| ())?), false),
            None => (text, None, false),
        };
        Ok(Addresses { frames: frames.parse().map_err(|_| ())?, memory, encrypts })
    }
}

/// Where a rank listens for ranks on other hosts, in words, if `line` is the line of PMI-1 by which
/// the rank publishes it. A launcher that serves PMI-1 can show it to the user by that.
#[doc(hidden)]
pub fn listening(rank: u32, line: &str) -> Option<String> {
    if word(line, "cmd") != Some("put") || word(line, "key") != Some(&key(ADDRESS, rank)) {
        return None;
    }
    let Addresses { frames, memory, encrypts } = word(line, "value")?.parse().ok()?;
    let (host, port) = (frames.ip(), frames.port());
    Some(match memory {
        _ if encrypts => format!("listens on {host} at port {port}, for encrypted messages"),
        Some(memory) => {
            format!("listens on {host} at ports {port} for messages and {memory} for memory")
        }
        None => format!("listens on {host} at port {port} for messages"),
    })
}

/// Checks that all ranks on other hosts encrypt if this one does, and that none does otherwise.
///
/// # Errors
/// Names a rank of each kind, with their hosts.
fn agree(rank: u32, own: &Addresses, all: &[Option<Addresses>]) -> Result<(), Error> {
    let known = (0..).zip(all).filter_map(|(peer, of)| Some((peer, of.as_ref()?)));
    let mut unlike = known.filter(|(_, of)| of.encrypts != own.encrypts);
    let Some((peer, of)) = unlike.next() else { return Ok(()) };
    let [(does, there), (not, here)] = match own.encrypts {
        true => [(rank, own), (peer, of)],
        false => [(peer, of), (rank, own)],
    };
    let (there, here, name) = (there.frames.ip(), here.frames.ip(), env::ENCRYPT);
    Err(Error::Network(format!(
        "rank {does} on host {there} encrypts what it sends to other hosts, and rank {not} on host \
         {here} doesn't: give all ranks {name}=on, or none. longshore run --encrypt does so"
    )))
}

/// Reads the addresses of the ranks on other hosts, after every rank has published its own.
/// Collective.
///
/// 1. The first rank of each host reads the addresses of its host and publishes several in one
///    value.
/// 2. After a barrier, all ranks read these values of the other hosts. A launcher answers
///    requests one at a time, so that one request for each pair of ranks would delay a large
///    job.
fn gather(rank: u32, hosts: &Hosts, launcher: &mut Exchange) -> io::Result<Vec<Option<Addresses>>> {
    let mut members: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for peer in 0..hosts.size() {
        members.entry(hosts.of(peer)).or_default().push(peer);
    }
    let own = members.remove(&hosts.of(rank)).unwrap_or_default();
    let each = addresses_per_value(launcher);
    if own.first() == Some(&rank) {
        for (number, peers) in own.chunks(each).enumerate() {
            let texts: io::Result<Vec<_>> =
                peers.iter().map(|&peer| find(launcher, peer)).collect();
            launcher.publish(&value_name(number), &texts?.join(","))?;
        }
    }
    launcher.barrier()?;
    let mut addresses = vec![None; hosts.size() as usize];
    for members in members.values() {
        for (number, peers) in members.chunks(each).enumerate() {
            let texts: Vec<_> = match launcher.find(members[0], &value_name(number))? {
                Some(value) => value.split(',').map(str::to_owned).collect(),
                // The first rank of that host died before it published the value.
                None => {
                    let texts = peers.iter().map(|&peer| find(launcher, peer));
                    texts.collect::<io::Result<Vec<_>>>()?
                }
            };
            let wrong = |message| io::Error::new(io::ErrorKind::InvalidData, message);
            if texts.len() != peers.len() {
                let (first, count, all) = (members[0], texts.len(), peers.len());
                return Err(wrong(format!(
                    "rank {first} published {count} addresses for the {all} ranks of its host"
                )));
            }
            for (&peer, text) in peers.iter().zip(texts) {
                let wrong =
                    |()| wrong(format!("rank {peer} published a malformed address, \"{text}\""));
                addresses[peer as usize] = match text.as_str() {
                    NOWHERE => None,
                    text => Some(text.parse().map_err(wrong)?),
                };
            }
        }
    }
    Ok(addresses)
}

/// The name of the `number`-th value with which the first rank of a host publishes the
/// addresses of its host.
fn value_name(number: usize) -> String {
    format!("{ADDRESS}-{number}")
}

/// The published addresses of a rank as text, or [`NOWHERE`].
fn find(launcher: &mut Exchange, rank: u32) -> io::Result<String> {
    Ok(launcher.find(rank, ADDRESS)?.unwrap_or_else(|| NOWHERE.to_owned()))
}

/// Opens access to this rank's memory, and for this rank to the memory of others. Returns the
/// port, or `None` if peers of the same architecture wouldn't use it or if it can't be opened.
///
/// # Errors
/// The rank's range of ports has none left.
fn memory(listener: &mut Listener, provider: &str) -> Result<Option<u16>, OpenError> {
    let (serves, why) = endpoint::choose(provider, &Architecture::NATIVE, &Architecture::NATIVE);
    if serves == Endpoint::Connected {
        tracing::debug!(provider, why, "no access to memory over the network");
        return Ok(None);
    }
    match listener.open_memory() {
        Ok(address) => Ok(Some(address.port())),
        // The job would be slower, and nothing would say why.
        Err(error @ OpenError::InUse { ports: Some(_), .. }) => Err(error),
        Err(error) => {
            tracing::debug!(provider, %error, "no access to memory over the network");
            Ok(None)
        }
    }
}

/// The error of a rank that can't listen.
fn cannot_listen(rank: u32, hosts: &Hosts, error: OpenError) -> Error {
    let host = hosts.of(rank);
    let own = (0..hosts.size()).filter(|&peer| hosts.of(peer) == host).count();
    match error {
        OpenError::Library(source) => no_library(rank, hosts, source),
        error @ OpenError::InUse { ports: Some(_), .. } => Error::Network(format!(
            "{error}. Each rank needs two ports, or one with --route message or --encrypt, and this host \
             has {own} of the job's ranks: set more in {}",
            env::PORTS
        )),
        error => Error::Network(error.to_string()),
    }
}

/// The error of a rank whose host has no libfabric.
fn no_library(rank: u32, hosts: &Hosts, source: LibraryError) -> Error {
    let other = (0..hosts.size()).find(|&other| !hosts.share(other, rank)).unwrap_or(0);
    let host = fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned());
    Error::NoLibrary { rank, other, host, source }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Network {
    /// Listens, publishes the addresses of this rank, and reads those of all others.
    /// Collective.
    ///
    /// Only for [`Kind::Memory`] does the rank open a port for accesses to its memory.
    ///
    /// # Errors
    /// The rank can't listen, or some ranks encrypt their frames and others don't.
    pub(crate) fn meet(
        rank: u32,
        hosts: &Hosts,
        kind: Kind,
        launcher: &mut Exchange,
    ) -> Result<Network, Error> {
        let provider = text(env::FABRIC).unwrap_or_else(|| PROVIDER.to_owned());
        let patience = optional::<NonZeroU32>(env::SILENCE, "seconds, from 1")?;
        let patience =
            patience.map_or(PATIENCE, |seconds| Duration::from_secs(seconds.get().into()));
        let interface = interface(text(env::INTERFACE).as_deref())?;
        let ports: Option<Ports> = optional(env::PORTS, "a range of ports such as 5000:5099")?;
        let place = Place { interface, ports };
        let refused = |error| cannot_listen(rank, hosts, error);
        let mut listener = Listener::open(&provider, place, patience).map_err(refused)?;
        let memory = match kind {
            Kind::Memory => memory(&mut listener, &provider).map_err(refused)?,
            Kind::Frames | Kind::Encrypted => None,
        };
        let encrypts = kind == Kind::Encrypted;
        if encrypts {
            listener.encrypt();
        }
        let own = Addresses { frames: listener.address(), memory, encrypts };
        launcher.publish(ADDRESS, &own.to_string()).map_err(Error::Launcher)?;
        launcher.barrier().map_err(Error::Launcher)?;
        let addresses = gather(rank, hosts, launcher).map_err(Error::Launcher)?;
        agree(rank, &own, &addresses)?;
        tracing::debug!(rank, provider, addresses = %own, "listens for ranks on other hosts");
        Ok(Network { listener, addresses })
    }

    /// Makes the link to all ranks: through the segment to ranks on this host, over the network
    /// to all others.
    pub fn join(
        self,
        segment: &Segment,
        near: ShmLink,
        hosts: &Hosts,
        secret: &[u8],
    ) -> Result<Box<dyn Link>, Error> {
        let Network { listener, addresses } = self;
        let (rank, size) = (near.rank(), near.size());
        let frames = addresses.iter().map(|of| of.map(|of| of.frames)).collect();
        let memory = |of: &Option<Addresses>| {
            let Addresses { mut frames, memory, .. } = (*of)?;
            frames.set_port(memory?);
            Some(frames)
        };
        let memories: Vec<_> = addresses.iter().map(memory).collect();
        let far = listener
            .link(segment.clone(), frames, &memories, secret)
            .map_err(|error| Error::Network(error.to_string()))?;
        let is_near = (0..size).map(|peer| hosts.share(peer, rank)).collect();
        Ok(Box::new(Composed::new(near, far, is_near)))
    }
}

/// The address of the interface with the address or name `wanted`; otherwise of the first
/// interface that isn't the loopback. Bridges of containers and virtual machines come last,
/// since other hosts don't reach them, or have one with the same address.
fn interface(wanted: Option<&str>) -> Result<IpAddr, Error> {
    if let Some(address) = wanted.and_then(|wanted| wanted.parse::<IpAddr>().ok()) {
        let nowhere = address.is_unspecified() || address.is_multicast();
        let message = format!(
            "{}={address}: peers can't reach a rank there: give an address of one interface",
            env::INTERFACE
        );
        return if nowhere { Err(Error::Network(message)) } else { Ok(address) };
    }
    let all = getifaddrs().map_err(|errno| Error::Network(format!("getifaddrs: {errno}")))?;
    let (bridges, others): (Vec<_>, Vec<_>) = all
        .filter(|one| match wanted {
            Some(name) => one.interface_name == name,
            None => {
                one.flags.contains(InterfaceFlags::IFF_UP)
                    && !one.flags.contains(InterfaceFlags::IFF_LOOPBACK)
            }
        })
        .filter_map(|one| Some((is_virtual_bridge(&one.interface_name), address(&one.address?)?)))
        .partition(|(is_bridge, _)| *is_bridge);
    let addresses = |all: Vec<(bool, IpAddr)>| all.into_iter().map(|(_, address)| address);
    let found = best(addresses(others)).or_else(|| best(addresses(bridges)));
    let none = || match wanted {
        Some(name) => {
            format!("{}={name}: no interface of this name has an address", env::INTERFACE)
        }
        None => {
            format!("no interface but the loopback has an address: name one in {}", env::INTERFACE)
        }
    };
    found.ok_or_else(|| Error::Network(none() + LINK_LOCAL))
}

/// Whether an interface is a bridge that leads to no device of this host.
fn is_virtual_bridge(name: &str) -> bool {
    let folder = Path::new("/sys/class/net").join(name);
    let ports = fs::read_dir(folder.join("brif"));
    let is_device = |port: fs::DirEntry| {
        Path::new("/sys/class/net").join(port.file_name()).join("device").exists()
    };
    ports.is_ok_and(|ports| !ports.flatten().any(is_device))
}

/// The end of the message if no address is usable.
const LINK_LOCAL: &str =
    " (IPv6 addresses that begin with fe80 don't count: they work on one link only)";

/// The first IPv4 address, or the first other address, that peers can use. Link-local addresses
/// are excluded, because peers would need to know their own interface for them.
fn best(addresses: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let is_local =
        |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let found: Vec<_> = addresses.filter(|address| !is_local(address)).collect();
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
}

fn address(of: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = of.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| of.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_written() {
        for text in ["10.1.2.3:4", "10.1.2.3:4/5", "[fe80::1%2]:4/5", "10.1.2.3:4/encrypted"] {
            assert_eq!(text.parse::<Addresses>().map(|read| read.to_string()), Ok(text.into()));
        }
        for wrong in ["", "10.1.2.3", "10.1.2.3:4/", "10.1.2.3:4/70000", "/5", "10.1.2.3:4/encrypt"]
        {
            assert_eq!(wrong.parse::<Addresses>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn the_longest_address_has_at_most_the_bytes_that_are_counted() {
        let longest = "[1111:2222:3333:4444:5555:6666:7777:8888%4294967295]:65535/encrypted";
        assert_eq!(longest.parse::<Addresses>().unwrap().to_string(), longest);
        assert!(longest.len() < ADDRESS_BYTES);
    }

    #[test]
    fn a_launcher_can_say_where_a_rank_listens() {
        let put = |value: &str| {
            format!("cmd=put kvsname=longshore key=longshore-address-3 value={value}")
        };
        for (value, says) in [
            ("10.1.2.3:4", "on 10.1.2.3 at port 4 for messages"),
            ("10.1.2.3:4/5", "on 10.1.2.3 at ports 4 for messages and 5 for memory"),
            ("[fd00::1]:4/encrypted", "on fd00::1 at port 4, for encrypted messages"),
        ] {
            assert_eq!(listening(3, &put(value)), Some(format!("listens {says}")));
            assert_eq!(listening(2, &put(value)), None);
        }
        for other in ["-", "10.1.2.3"] {
            assert_eq!(listening(3, &put(other)), None);
        }
        assert_eq!(listening(3, "cmd=get kvsname=longshore key=longshore-address-3"), None);
    }

    #[test]
    fn ranks_that_encrypt_and_ranks_that_do_not_are_named() {
        let read = |text: &str| text.parse::<Addresses>().unwrap();
        let (plain, encrypted) = (read("10.0.0.1:5/6"), read("10.0.0.2:5/encrypted"));
        let all = [None, Some(plain), None, Some(encrypted)];
        for (rank, own) in [(0, plain), (2, encrypted)] {
            assert!(agree(rank, &own, &[None, None, Some(own)]).is_ok());
            let error = agree(rank, &own, &all).unwrap_err().to_string();
            let (does, not) = if own == plain { (3, 0) } else { (2, 1) };
            let does = format!("rank {does} on host 10.0.0.2 encrypts");
            let not =
                format!("rank {not} on host 10.0.0.1 doesn't: give all ranks {}", env::ENCRYPT);
            assert!(error.contains(&does) && error.contains(&not), "{error}");
        }
    }

    #[test]
    fn interfaces_are_found_by_address_and_name() {
        assert_eq!(interface(Some("10.1.2.3")).unwrap(), IpAddr::from([10, 1, 2, 3]));
        assert_eq!(interface(Some("lo")).unwrap(), IpAddr::from([127, 0, 0, 1]));
        let error = interface(Some("nowhere0")).unwrap_err();
        assert!(error.to_string().contains("LONGSHORE_INTERFACE=nowhere0"), "{error}");
        for nowhere in ["0.0.0.0", "::", "224.0.0.1", "ff02::1"] {
            let error = interface(Some(nowhere)).unwrap_err();
            assert!(error.to_string().contains("peers can't reach"), "{error}");
        }
        assert!(!interface(None).is_ok_and(|address| address.is_loopback()));
    }

    #[test]
    fn the_chosen_address_is_one_that_peers_can_use() {
        let choose = |all: &[&str]| {
            best(all.iter().map(|text| text.parse().unwrap())).map(|found| found.to_string())
        };
        assert_eq!(choose(&["fe80::1", "fd00::1", "fd00::2"]).as_deref(), Some("fd00::1"));
        assert_eq!(choose(&["fd00::1", "10.1.2.3", "10.1.2.4"]).as_deref(), Some("10.1.2.3"));
        assert_eq!(choose(&["fe80::1"]), None);
    }
}
