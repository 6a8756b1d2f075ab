//! What ranks share that another launcher started: a segment on each host, and the job's secret.
//!
//! 1. Every rank publishes its host: the kernel that it runs under, and the network that it sees there.
//! 2. After a barrier all know who shares a host with whom. The first rank of each makes the host's segment, and publishes its
//!    process and the segment's descriptor there; rank 0 makes the secret.
//! 3. After a barrier the others open their host's through /proc.
//! 4. After a barrier the first ranks may close it.
//!
//! Two containers on one host see each other's network, or they count as two hosts.
//!
//! Left out: ranks that see the same network but not each other in /proc.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use longshore_transport::Segment;

use super::exchange::Exchange;
use super::{Error, Secret};
use crate::hosts::Hosts;

const HOST: &str = "host";
const SEGMENT: &str = "segment";
const SECRET: &str = "secret";

/// This host's segment, the job's secret, and who is where. Collective.
pub(super) fn share(
    rank: u32,
    size: u32,
    launcher: &mut Exchange,
) -> Result<(OwnedFd, Secret, Hosts), Error> {
    let hosts = find_hosts(size, launcher)?;
    let first = (0..size).find(|&other| hosts.share(other, rank)).unwrap_or(rank);
    let made = if first == rank {
        let segment =
            Segment::create(size).map_err(|error| Error::Segment(io::Error::other(error)))?;
        let descriptor = segment.as_fd().try_clone_to_owned().map_err(Error::Segment)?;
        let place = format!("{}/{}", std::process::id(), descriptor.as_raw_fd());
        launcher.publish(SEGMENT, &place).map_err(Error::Launcher)?;
        Some(descriptor)
    } else {
        None
    };
    if rank == 0 {
        let secret = Secret::generate().map_err(Error::Segment)?;
        launcher.publish(SECRET, &secret.to_hex()).map_err(Error::Launcher)?;
    }
    launcher.barrier().map_err(Error::Launcher)?;
    let secret = launcher.get(0, SECRET).map_err(Error::Launcher)?;
    let secret = Secret::from_hex(&secret).ok_or_else(|| malformed(0, "no secret"))?;
    let descriptor = match made {
        Some(descriptor) => descriptor,
        None => open(rank, first, &launcher.get(first, SEGMENT).map_err(Error::Launcher)?)?,
    };
    launcher.barrier().map_err(Error::Launcher)?;
    Ok((descriptor, secret, hosts))
}

/// Who shares a host with whom. Hosts are named by their first rank.
fn find_hosts(size: u32, launcher: &mut Exchange) -> Result<Hosts, Error> {
    let host = host().map_err(Error::Segment)?;
    launcher.publish(HOST, &host).map_err(Error::Launcher)?;
    launcher.barrier().map_err(Error::Launcher)?;
    let mut names = Vec::new();
    for peer in 0..size {
        names.push(launcher.get(peer, HOST).map_err(Error::Launcher)?);
    }
    let first = |name: &String| names.iter().position(|other| other == name).unwrap_or(0) as u32;
    Ok(Hosts::new(names.iter().map(first).collect()))
}

/// Opens the descriptor at `place`, which the first rank of this host published.
fn open(rank: u32, first: u32, place: &str) -> Result<OwnedFd, Error> {
    let mut words = place.split('/');
    let (Some(process), Some(descriptor), None) = (words.next(), words.next(), words.next()) else {
        return Err(malformed(first, place));
    };
    let number = |word: &str| word.parse::<u32>().map_err(|_| malformed(first, place));
    let path = format!("/proc/{}/fd/{}", number(process)?, number(descriptor)?);
    let opened = File::options().read(true).write(true).open(&path);
    opened.map(OwnedFd::from).map_err(|error| {
        let message = format!("rank {rank} can't open rank {first}'s, {path}: {error}");
        Error::Segment(io::Error::new(error.kind(), message))
    })
}

/// What no two hosts share: the identity of the running kernel, and that of the network as seen from here.
fn host() -> io::Result<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let network = fs::read_link("/proc/self/ns/net").ok();
    let network =
        network.map(|name| name.to_string_lossy().replace(|c: char| !c.is_ascii_digit(), ""));
    Ok(format!("{}.{}", kernel.trim(), network.unwrap_or_default()))
}

fn malformed(rank: u32, value: &str) -> Error {
    let message = format!("rank {rank} published \"{value}\"");
    Error::Launcher(io::Error::new(io::ErrorKind::InvalidData, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_checked() {
        let segment = Segment::create(2).unwrap();
        let (process, descriptor) = (std::process::id(), segment.as_fd().as_raw_fd());
        let opened = open(1, 0, &format!("{process}/{descriptor}")).unwrap();
        assert_eq!(Segment::attach(opened, 1).unwrap().size(), 2);

        for malformed in ["", "1", "1/2/3", "1/../../etc/passwd", "-1/0"] {
            assert!(open(1, 0, malformed).is_err(), "{malformed}");
        }
        let error = open(1, 0, &format!("{process}/999999")).unwrap_err();
        assert!(error.to_string().contains("rank 1 can't open rank 0's"), "{error}");
    }

    #[test]
    fn this_host_has_one_name_without_blanks() {
        let name = host().unwrap();
        assert_eq!(host().unwrap(), name);
        assert!(name.len() > 30 && !name.contains([' ', '=', '\n']), "{name}");
    }
}
