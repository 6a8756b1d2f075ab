//! Under launchers other than `longshore run`, the ranks themselves set up a segment on each host
//! and the job's secret.
//!
//! 1. Every rank publishes its host's name: the identities of its kernel and its network namespace.
//! 2. After a barrier, rank 0 reads all names and publishes the host of every rank, many ranks in
//!    one value. A launcher answers requests one at a time, so that one request for each pair of
//!    ranks would delay a large job.
//! 3. After a barrier, all ranks read these values. The first rank of each host creates the host's
//!    segment and publishes the process and the descriptor that hold it. Rank 0 creates the secret.
//! 4. After a barrier, the other ranks open the segment of their host through /proc.
//! 5. After a barrier, the first ranks may close their descriptors.
//!
//! Two containers on one machine with separate network namespaces count as two hosts.
//!
//! Not supported: ranks in the same network namespace that can't see each other in /proc.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use longshore_transport::Segment;
use zeroize::Zeroizing;

use super::exchange::Exchange;
use super::{Error, Secret};
use crate::hosts::Hosts;

const HOST: &str = "host";
const SEGMENT: &str = "segment";
const SECRET: &str = "secret";

/// The most bytes of a rank's host in a published value: ten digits and a comma.
const HOST_BYTES: usize = 11;

/// The number of ranks whose hosts share one published value. It is the same at all ranks.
fn ranks_per_value(launcher: &Exchange) -> usize {
    (launcher.room() / HOST_BYTES).max(1)
}

/// Sets up and returns this host's segment, the job's secret and the host of each rank. Collective.
pub(super) fn share(
    rank: u32,
    size: u32,
    launcher: &mut Exchange,
) -> Result<(OwnedFd, Secret, Hosts), Error> {
    let host = host().map_err(Error::Segment)?;
    let hosts = find_hosts(rank, size, &host, launcher)?;
    let first = (0..size).find(|&other| hosts.share(other, rank)).unwrap_or(rank);
    let made = if first == rank {
        let segment =
            Segment::create(size).map_err(|error| Error::Segment(io::Error::other(error)))?;
        let descriptor = segment.as_fd().try_clone_to_owned().map_err(Error::Segment)?;
        let value = format!("{}/{}", std::process::id(), descriptor.as_raw_fd());
        launcher.publish(SEGMENT, &value).map_err(Error::Launcher)?;
        Some(descriptor)
    } else {
        None
    };
    if rank == 0 {
        let secret = Secret::generate().map_err(Error::Segment)?;
        launcher.publish(SECRET, &secret.to_hex()).map_err(Error::Launcher)?;
    }
    launcher.barrier().map_err(Error::Launcher)?;
    let secret = Zeroizing::new(launcher.get(0, SECRET).map_err(Error::Launcher)?);
    let secret = Secret::from_hex(&secret).ok_or_else(|| malformed(0, "no secret"))?;
    let descriptor = match made {
        Some(descriptor) => descriptor,
        None => open(rank, first, &launcher.get(first, SEGMENT).map_err(Error::Launcher)?)?,
    };
    launcher.barrier().map_err(Error::Launcher)?;
    Ok((descriptor, secret, hosts))
}

/// Finds the host of each rank. The number of a host is its first rank.
fn find_hosts(rank: u32, size: u32, host: &str, launcher: &mut Exchange) -> Result<Hosts, Error> {
    launcher.publish(HOST, host).map_err(Error::Launcher)?;
    launcher.barrier().map_err(Error::Launcher)?;
    if rank == 0 {
        let names = (0..size).map(|peer| launcher.get(peer, HOST));
        let names = names.collect::<io::Result<Vec<_>>>().map_err(Error::Launcher)?;
        let mut first_of = HashMap::new();
        let firsts: Vec<_> = (0u32..)
            .zip(&names)
            .map(|(peer, name)| *first_of.entry(name).or_insert(peer))
            .collect();
        for (number, firsts) in firsts.chunks(ranks_per_value(launcher)).enumerate() {
            let firsts: Vec<_> = firsts.iter().map(u32::to_string).collect();
            launcher.publish(&value_name(number), &firsts.join(",")).map_err(Error::Launcher)?;
        }
    }
    launcher.barrier().map_err(Error::Launcher)?;
    let mut hosts = Vec::new();
    let each = ranks_per_value(launcher);
    for number in 0..(size as usize).div_ceil(each) {
        let value = launcher.get(0, &value_name(number)).map_err(Error::Launcher)?;
        let expected = each.min(size as usize - hosts.len());
        read_hosts(&value, expected, &mut hosts).ok_or_else(|| malformed(0, &value))?;
    }
    Ok(Hosts::new(hosts))
}

/// The name of the `number`-th value with which rank 0 publishes hosts.
fn value_name(number: usize) -> String {
    format!("{HOST}-{number}")
}

/// Parses a published value and appends the hosts of the next `expected` ranks. Returns `None` if
/// it is malformed.
fn read_hosts(value: &str, expected: usize, hosts: &mut Vec<u32>) -> Option<()> {
    let before = hosts.len();
    for first in value.split(',') {
        let first = first.parse().ok()?;
        // The number of a host is its first rank, so that rank must have the number too.
        let is_known = hosts.get(first as usize) == Some(&first) || first as usize == hosts.len();
        hosts.push(Some(first).filter(|_| is_known)?);
    }
    (hosts.len() - before == expected).then_some(())
}

/// Opens the segment's descriptor. The first rank of this host published it as
/// `PROCESS/DESCRIPTOR`.
fn open(rank: u32, first: u32, published: &str) -> Result<OwnedFd, Error> {
    let mut words = published.split('/');
    let (Some(process), Some(descriptor), None) = (words.next(), words.next(), words.next()) else {
        return Err(malformed(first, published));
    };
    let number = |word: &str| word.parse::<u32>().map_err(|_| malformed(first, published));
    let path = format!("/proc/{}/fd/{}", number(process)?, number(descriptor)?);
    let opened = File::options().read(true).write(true).open(&path);
    opened.map(OwnedFd::from).map_err(|error| {
        let message = format!("rank {rank} can't open rank {first}'s segment, {path}: {error}");
        Error::Segment(io::Error::new(error.kind(), message))
    })
}

/// A name that no other host has: the identities of the running kernel and of the network
/// namespace.
fn host() -> io::Result<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let network = fs::read_link("/proc/self/ns/net").ok();
    let network =
        network.map(|name| name.to_string_lossy().replace(|c: char| !c.is_ascii_digit(), ""));
    Ok(format!("{}.{}", kernel.trim(), network.unwrap_or_default()))
}

fn malformed(rank: u32, value: &str) -> Error {
    let message = format!("rank {rank} published a malformed value, \"{value}\"");
    Error::Launcher(io::Error::new(io::ErrorKind::InvalidData, message))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, Mutex};
    use std::thread;

    use super::*;
    use crate::pmi::{Client, word};

    /// The state of a launcher that serves PMI-1.
    struct Launcher {
        /// The name of the store.
        name: String,
        store: Mutex<HashMap<String, String>>,
        barrier: Barrier,
        reads: AtomicUsize,
    }

    impl Launcher {
        fn new(size: u32, name: String) -> Launcher {
            let (store, reads) = (Mutex::default(), AtomicUsize::new(0));
            Launcher { name, store, barrier: Barrier::new(size as usize), reads }
        }

        fn serve(&self, rank: &UnixStream) {
            for line in BufReader::new(rank).lines() {
                let line = line.unwrap();
                let field = |key| word(&line, key).unwrap_or_default().to_owned();
                let reply = match field("cmd").as_str() {
                    "init" => "cmd=response_to_init rc=0".to_owned(),
                    "get_my_kvsname" => "cmd=my_kvsname kvsname=".to_owned() + &self.name,
                    "put" => {
                        assert!(field("key").len() <= 64 && line.len() < 960, "{line}");
                        self.store.lock().unwrap().insert(field("key"), field("value"));
                        "cmd=put_result rc=0".to_owned()
                    }
                    "get" => {
                        self.reads.fetch_add(1, Ordering::Relaxed);
                        match self.store.lock().unwrap().get(&field("key")) {
                            Some(value) => format!("cmd=get_result rc=0 value={value}"),
                            None => "cmd=get_result rc=-1 value=unknown".to_owned(),
                        }
                    }
                    "barrier_in" => {
                        self.barrier.wait();
                        "cmd=barrier_out".to_owned()
                    }
                    _ => panic!("{line}"),
                };
                { rank }.write_all(format!("{reply}\n").as_bytes()).unwrap();
            }
        }
    }

    #[test]
    fn all_ranks_find_their_hosts_with_few_requests() {
        let reads = find_hosts_of(150, "kvs".to_owned());
        assert!(reads <= 3 * 150, "{reads} requests of 150 ranks");
    }

    /// The launcher's lines are bounded as a whole.
    #[test]
    fn ranks_find_their_hosts_if_the_store_has_a_long_name() {
        find_hosts_of(30, "s".repeat(700));
    }

    /// Lets this many ranks find their hosts. Returns the number of their requests.
    fn find_hosts_of(size: u32, name: String) -> usize {
        let launcher = Launcher::new(size, name);
        let found: Vec<_> = thread::scope(|scope| {
            let play = |rank: u32| {
                let (ours, theirs) = UnixStream::pair().unwrap();
                let launcher = &launcher;
                scope.spawn(move || launcher.serve(&theirs));
                scope.spawn(move || {
                    let mut exchange = Exchange::Pmi(Client::open(ours.into()).unwrap(), rank);
                    find_hosts(rank, size, &format!("host{}", rank % 7), &mut exchange).unwrap()
                })
            };
            let ranks: Vec<_> = (0..size).map(play).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        let expected = Hosts::new((0..size).map(|rank| rank % 7).collect());
        assert!(found.iter().all(|hosts| *hosts == expected));
        launcher.reads.into_inner()
    }

    #[test]
    fn malformed_lists_of_hosts_are_refused() {
        let read = |value: &str| {
            let mut hosts = Vec::new();
            read_hosts(value, 4, &mut hosts).map(|()| hosts)
        };
        assert_eq!(read("0,1,0,3"), Some(vec![0, 1, 0, 3]));
        for wrong in
            ["", "0", "0,0,0", "0,0,0,0,0", "1,1,1,1", "0,0,1,0", "0,2,2,0", "0,-1,0,0", "0,0,0,x"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(["4294967295", ""].join(",").len(), HOST_BYTES);
    }

    #[test]
    fn malformed_segment_locations_are_refused() {
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
    fn the_host_name_is_stable_and_has_no_blanks() {
        let name = host().unwrap();
        assert_eq!(host().unwrap(), name);
        assert!(name.len() > 30 && !name.contains([' ', '=', '\n']), "{name}");
    }
}
