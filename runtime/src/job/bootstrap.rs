//! Sharing a segment among ranks that another launcher started.
//!
//! 1. Rank 0 makes the segment and the secret, and publishes where to find them: the kernel that it runs
//!    under, its process, and the segment's descriptor there.
//! 2. A barrier; then the others open that descriptor through /proc.
//! 3. A barrier; from here on rank 0 may close it.
//!
//! Left out: several hosts, and ranks of one host that don't see each other in /proc (containers).

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use longshore_transport::Segment;

use super::pmi::Client;
use super::{Error, Secret};

const PLACE: &str = "longshore-segment";
const SECRET: &str = "longshore-secret";

/// The segment and the secret, the same for all ranks. Collective.
pub(super) fn share(
    rank: u32,
    size: u32,
    launcher: &mut Client,
) -> Result<(OwnedFd, Secret), Error> {
    let kernel = kernel().map_err(Error::Segment)?;
    let shared = if rank == 0 {
        let segment =
            Segment::create(size).map_err(|error| Error::Segment(io::Error::other(error)))?;
        let descriptor = segment.as_fd().try_clone_to_owned().map_err(Error::Segment)?;
        let secret = Secret::generate().map_err(Error::Segment)?;
        let place = format!("{kernel}/{}/{}", std::process::id(), descriptor.as_raw_fd());
        launcher.put(PLACE, &place).map_err(Error::Launcher)?;
        launcher.put(SECRET, &secret.to_hex()).map_err(Error::Launcher)?;
        launcher.barrier().map_err(Error::Launcher)?;
        (descriptor, secret)
    } else {
        launcher.barrier().map_err(Error::Launcher)?;
        let place = launcher.get(PLACE).map_err(Error::Launcher)?;
        let secret = launcher.get(SECRET).map_err(Error::Launcher)?;
        let secret = Secret::from_hex(&secret).ok_or_else(|| malformed(&secret))?;
        (open(rank, &kernel, &place)?, secret)
    };
    launcher.barrier().map_err(Error::Launcher)?;
    Ok(shared)
}

/// Opens the descriptor at `place`, which rank 0 published.
fn open(rank: u32, kernel: &str, place: &str) -> Result<OwnedFd, Error> {
    let mut words = place.split('/');
    let (Some(theirs), Some(process), Some(descriptor), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(malformed(place));
    };
    if theirs != kernel {
        return Err(Error::SeveralHosts { rank });
    }
    let number = |word: &str| word.parse::<u32>().map_err(|_| malformed(place));
    let path = format!("/proc/{}/fd/{}", number(process)?, number(descriptor)?);
    let opened = File::options().read(true).write(true).open(&path);
    opened.map(OwnedFd::from).map_err(|error| {
        let message = format!("rank {rank} can't open rank 0's, {path}: {error}");
        Error::Segment(io::Error::new(error.kind(), message))
    })
}

/// The identity of the running kernel, which no two hosts share.
fn kernel() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

fn malformed(value: &str) -> Error {
    let message = format!("rank 0 published \"{value}\"");
    Error::Launcher(io::Error::new(io::ErrorKind::InvalidData, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_checked() {
        let segment = Segment::create(2).unwrap();
        let (process, descriptor) = (std::process::id(), segment.as_fd().as_raw_fd());
        let place = format!("here/{process}/{descriptor}");
        let opened = open(1, "here", &place).unwrap();
        assert_eq!(Segment::attach(opened, 1).unwrap().size(), 2);

        let error = open(1, "there", &place).unwrap_err();
        assert!(
            error.to_string().starts_with("rank 1 and rank 0 run on different hosts"),
            "{error}"
        );
        for malformed in ["", "here/1", "here/1/2/3", "here/1/../../etc/passwd", "here/-1/0"] {
            assert!(open(1, "here", malformed).is_err(), "{malformed}");
        }
        let error = open(1, "here", &format!("here/{process}/999999")).unwrap_err();
        assert!(error.to_string().contains("rank 1 can't open rank 0's"), "{error}");
    }
}
