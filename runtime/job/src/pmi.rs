//! A client of PMI-1, the text protocol with which most launchers serve the processes of a job.
//!
//! A request is one line of `key=value` words, and so is a reply. Names of ports and orders for
//! processes go to `longshore run` in lines of its own: see [`joining`].

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use zeroize::Zeroizing;

use super::inherited;
use super::joining::{self, Order, Started};
#[doc(hidden)]
pub use super::line::word;
use super::secret::Secret;

/// The request to `longshore run` for the job's parts on this host, which isn't part of PMI-1.
#[doc(hidden)]
pub const JOIN: &str = "cmd=longshore_join";

/// The reason of a server that refuses a second `init` over one connection.
#[doc(hidden)]
pub const ALREADY: &str = "initialized_already";

/// The key-value store of `longshore run`, by which a client knows it.
#[doc(hidden)]
pub const STORE: &str = "longshore";

/// The longest line with which a client puts a value. PMI-1 limits a value to 1024 bytes, but
/// Slurm's plugin for PMI-2 needs room for the whole line in 1024 bytes, and otherwise loses the
/// value without an error.
const PUT_LIMIT: usize = 960;

/// The longest key: a name of this crate with two numbers.
const KEY_LIMIT: usize = 48;

/// The longest line that a client accepts: a value of 1024 bytes and the other words of a reply.
const LINE_LIMIT: usize = 2048;

/// The reply to [`JOIN`]. Two or three descriptors come with it: the segment, the
/// lifeline, and the journal if the rank is to record anything.
#[doc(hidden)]
pub fn joined(secret: &Secret) -> Zeroizing<String> {
    with_secret("cmd=longshore_joined rc=0 secret=", &secret.to_hex())
}

/// A line of PMI-1 that ends with a value, which may be the secret: no copy of it is left behind by
/// the line's growth.
fn with_secret(start: &str, value: &str) -> Zeroizing<String> {
    let mut line = Zeroizing::new(String::with_capacity(start.len() + value.len() + 1));
    line.extend([start, value, "\n"]);
    line
}

/// The parts of the job on this host that `longshore run` passes to a rank.
pub(super) struct Joined {
    pub(super) segment: OwnedFd,
    /// A pipe that ends when the launcher of this host ends.
    pub(super) lifeline: OwnedFd,
    pub(super) secret: Secret,
    /// Where the rank records what the launcher asks for.
    pub(super) journal: Option<OwnedFd>,
}

/// A connection to the launcher.
#[derive(Debug)]
pub struct Client {
    stream: Lines,
    store: String,
}

impl Client {
    /// Makes a client of the server at the other end of `socket`.
    pub fn open(socket: OwnedFd) -> io::Result<Client> {
        let mut client = Client::new(socket);
        client.initialize()?;
        Ok(client)
    }

    /// Connects to the server at `address` (`host:port`) as process `id`. Returns the client, the
    /// process's rank and the job's size.
    pub fn connect(address: &str, id: &str) -> io::Result<(Client, u32, u32)> {
        Client::introduce(OwnedFd::from(TcpStream::connect(address)?), id)
    }

    fn introduce(socket: OwnedFd, id: &str) -> io::Result<(Client, u32, u32)> {
        let mut client = Client::new(socket);
        client.call(&format!("cmd=initack pmiid={id}"), "initack")?;
        let (mut rank, mut size) = (None, None);
        for _ in 0..3 {
            let line = client.reply("set")?; // one line each for size, rank and debug
            rank = rank.or_else(|| word(&line, "rank")?.parse().ok());
            size = size.or_else(|| word(&line, "size")?.parse().ok());
        }
        client.initialize()?;
        match (rank, size) {
            (Some(rank), Some(size)) => Ok((client, rank, size)),
            _ => Err(unexpected("neither rank nor size")),
        }
    }

    fn new(socket: OwnedFd) -> Client {
        let stream = Lines { socket: socket.into(), bytes: Zeroizing::new(Vec::new()) };
        Client { stream, store: String::new() }
    }

    /// Begins the exchange with the server.
    ///
    /// # Errors
    /// `AlreadyExists` if another process has begun it over the same connection.
    fn initialize(&mut self) -> io::Result<()> {
        (&self.stream.socket).write_all(b"cmd=init pmi_version=1 pmi_subversion=1\n")?;
        let reply = self.stream.next()?;
        match word(&reply, "cmd") {
            Some("response_to_init") if word(&reply, "rc").is_none_or(|code| code == "0") => {}
            Some("response_to_init") if word(&reply, "msg") != Some(ALREADY) => {
                return Err(unexpected(&reply));
            }
            // The reply to a request of the other process, which runs now.
            Some(
                "response_to_init" | "my_kvsname" | "barrier_out" | "put_result" | "get_result",
            ) => {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, unexpected(&reply)));
            }
            _ => return Err(unexpected(&reply)),
        }
        let reply = self.call("cmd=get_my_kvsname", "my_kvsname")?;
        self.store = word(&reply, "kvsname").ok_or_else(|| unexpected(&reply))?.to_owned();
        Ok(())
    }

    /// Asks `longshore run` for the job's parts on this host. Returns `None` if the server is
    /// another launcher's.
    pub(super) fn join(&mut self) -> io::Result<Option<Joined>> {
        if self.store != STORE {
            return Ok(None);
        }
        let mut socket = &self.stream.socket;
        socket.write_all(format!("{JOIN}\n").as_bytes())?;
        let mut bytes = Zeroizing::new([0; LINE_LIMIT]);
        let (count, descriptors) = inherited::receive(socket, &mut bytes[..])?;
        let line = std::str::from_utf8(&bytes[..count]).ok().filter(|line| line.ends_with('\n'));
        // No message shows the line, because it may have the secret.
        let refused = || unexpected("without the job's secret");
        let secret = line.and_then(|line| Secret::from_hex(word(line, "secret")?));
        let secret = secret.ok_or_else(refused)?;
        let mut descriptors = descriptors.into_iter();
        let (Some(segment), Some(lifeline)) = (descriptors.next(), descriptors.next()) else {
            return Err(refused());
        };
        Ok(Some(Joined { segment, lifeline, secret, journal: descriptors.next() }))
    }

    /// The bytes of the longest value that can be put under a key of at most 48 bytes. It is the
    /// same for all processes of a job.
    pub fn room(&self) -> usize {
        PUT_LIMIT.saturating_sub(put(&self.store, "").len() + KEY_LIMIT + 1)
    }

    /// Publishes `value`, which has no blanks, under `key`.
    ///
    /// # Errors
    /// The line that puts it is longer than launchers take.
    pub fn put(&mut self, key: &str, value: &str) -> io::Result<()> {
        let start = put(&self.store, key);
        let (room, len) = (PUT_LIMIT.saturating_sub(start.len() + 1), value.len());
        if len > room {
            // No message shows the value, because it may be the secret.
            let message = format!(
                "the value of {key} has {len} bytes, and the launcher takes {room}: its lines have \
                 {PUT_LIMIT} bytes, and the name of its store has {}",
                self.store.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        (&self.stream.socket).write_all(with_secret(&start, value).as_bytes())?;
        self.reply("put_result").map(drop)
    }

    /// The value that a process put under `key` before the last barrier, if any did.
    pub fn find(&mut self, key: &str) -> io::Result<Option<String>> {
        let request = format!("cmd=get kvsname={} key={key}", self.store);
        (&self.stream.socket).write_all(format!("{request}\n").as_bytes())?;
        let reply = self.line("get_result")?;
        match word(&reply, "rc") {
            None | Some("0") => {
                Ok(Some(word(&reply, "value").ok_or_else(|| unexpected(&reply))?.to_owned()))
            }
            Some(_) => Ok(None),
        }
    }

    /// Waits until all processes of the job have called it.
    pub fn barrier(&mut self) -> io::Result<()> {
        self.call("cmd=barrier_in", "barrier_out").map(drop)
    }

    /// Notifies the launcher that this process has finalized, so that its exit is no failure.
    pub fn finalize(&mut self) -> io::Result<()> {
        self.call("cmd=finalize", "finalize_ack").map(drop)
    }

    /// Whether the server is `longshore run`.
    pub(super) fn is_ours(&self) -> bool {
        self.store == STORE
    }

    /// The number of this process's program among those that were started together.
    pub(super) fn program(&mut self) -> io::Result<Option<u32>> {
        if !self.is_ours() {
            return Ok(None);
        }
        let reply = self.call("cmd=get_appnum", "appnum")?;
        Ok(word(&reply, "appnum").and_then(|number| number.parse().ok()))
    }

    /// Asks `longshore run` to start processes.
    pub(super) fn order(&mut self, order: &Order) -> io::Result<Started> {
        let bytes = shipable::codec::encode(order, joining::ORDER_LIMIT);
        let bytes = bytes.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut pieces = bytes.chunks(joining::PIECE).peekable();
        while let Some(piece) = pieces.next() {
            let more = u32::from(pieces.peek().is_some());
            let line =
                format!("cmd=longshore_start more={more} order={}\n", joining::digits(piece));
            (&self.stream.socket).write_all(line.as_bytes())?;
        }
        let reply = self.line("longshore_started")?;
        Started::parse(&reply).ok_or_else(|| unexpected(&reply))
    }

    /// Has `longshore run` publish a port. Returns whether the name was free.
    pub(super) fn publish_port(&mut self, name: &str, port: &str) -> io::Result<bool> {
        let [name, port] = [name, port].map(|text| joining::digits(text.as_bytes()));
        let request = format!("cmd=longshore_publish name={name} port={port}\n");
        (&self.stream.socket).write_all(request.as_bytes())?;
        Ok(word(&self.line("longshore_published")?, "rc") == Some("0"))
    }

    /// Has `longshore run` forget a name. Returns whether it knew the name.
    pub(super) fn unpublish_port(&mut self, name: &str) -> io::Result<bool> {
        let request =
            format!("cmd=longshore_unpublish name={}\n", joining::digits(name.as_bytes()));
        (&self.stream.socket).write_all(request.as_bytes())?;
        Ok(word(&self.line("longshore_unpublished")?, "rc") == Some("0"))
    }

    /// The port that is published under a name.
    pub(super) fn look_up_port(&mut self, name: &str) -> io::Result<Option<String>> {
        let request = format!("cmd=longshore_lookup name={}\n", joining::digits(name.as_bytes()));
        (&self.stream.socket).write_all(request.as_bytes())?;
        let reply = self.line("longshore_found")?;
        match word(&reply, "rc") {
            Some("0") => {
                let port = word(&reply, "port").and_then(joining::text);
                port.map(Some).ok_or_else(|| unexpected(&reply))
            }
            _ => Ok(None),
        }
    }

    /// Asks the launcher to end the whole job with status `code`. The launcher then sends signals.
    pub fn abort(&mut self, code: i32) -> io::Result<()> {
        (&self.stream.socket).write_all(format!("cmd=abort exitcode={code}\n").as_bytes())
    }

    /// Whether the server, and with it the launcher, has ended. Doesn't block.
    pub fn hung_up(&self) -> bool {
        // Over TCP, a closed peer is only half of a hang-up: POLLHUP alone wouldn't report it.
        let closed = PollFlags::from_bits_retain(libc::POLLRDHUP);
        let mut polled = [PollFd::new(self.stream.socket.as_fd(), closed)];
        let polled = inherited::uninterrupted(|| poll(&mut polled, PollTimeout::ZERO));
        matches!(polled, Ok(1..))
    }

    fn call(&mut self, request: &str, expected: &str) -> io::Result<Zeroizing<String>> {
        (&self.stream.socket).write_all(format!("{request}\n").as_bytes())?;
        self.reply(expected)
    }

    /// Reads the next reply. A reply of failure is an error.
    fn reply(&mut self, expected: &str) -> io::Result<Zeroizing<String>> {
        let line = self.line(expected)?;
        match word(&line, "rc").is_some_and(|code| code != "0") {
            true => Err(unexpected(&line)),
            false => Ok(line),
        }
    }

    /// Reads the next reply. A reply to another command is an error.
    fn line(&mut self, expected: &str) -> io::Result<Zeroizing<String>> {
        let line = self.stream.next()?;
        // The reply to another process, which has begun at the same time.
        if word(&line, "msg") == Some(ALREADY) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, unexpected(&line)));
        }
        if word(&line, "cmd") != Some(expected) {
            return Err(unexpected(&line));
        }
        Ok(line)
    }
}

/// The lines of the server. Their bytes are overwritten, because one may have the secret.
#[derive(Debug)]
struct Lines {
    socket: File,
    /// Received bytes that aren't taken yet.
    bytes: Zeroizing<Vec<u8>>,
}

impl Lines {
    /// Reads the next line, without its end.
    fn next(&mut self) -> io::Result<Zeroizing<String>> {
        let mut piece = Zeroizing::new([0; LINE_LIMIT]);
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let rest = Zeroizing::new(self.bytes[end + 1..].to_vec());
                let line = std::str::from_utf8(&self.bytes[..end]).map(str::to_owned);
                self.bytes = rest;
                let line = line.map_err(|_| unexpected("bytes that aren't text"))?;
                return Ok(Zeroizing::new(line));
            }
            if self.bytes.len() >= LINE_LIMIT {
                return Err(unexpected("a line that is too long"));
            }
            let count = match (&self.socket).read(&mut piece[..]) {
                Ok(0) => {
                    let why = "the launcher closed the connection";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let mut bytes = Zeroizing::new(Vec::with_capacity(self.bytes.len() + count));
            bytes.extend_from_slice(&self.bytes);
            bytes.extend_from_slice(&piece[..count]);
            self.bytes = bytes;
        }
    }
}

/// The beginning of the line that puts a value.
fn put(store: &str, key: &str) -> String {
    format!("cmd=put kvsname={store} key={key} value=")
}

fn unexpected(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the launcher answered \"{line}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Starts a server and returns the client's end. The server sends one of `replies` for each
    /// line that it reads, and then hangs up.
    fn server(replies: &'static [&'static str]) -> io::Result<OwnedFd> {
        let (ours, theirs) = UnixStream::pair()?;
        thread::spawn(move || {
            let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
            for reply in replies {
                lines.next();
                (&theirs).write_all(reply.as_bytes()).unwrap();
            }
            lines.next(); // the hang-up is the answer to this request
        });
        Ok(ours.into())
    }

    fn client(replies: &'static [&'static str]) -> io::Result<Client> {
        Client::open(server(replies)?)
    }

    const INIT: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    const STORE: &str = "cmd=my_kvsname kvsname=kvs_0\n";

    #[test]
    fn values_are_read_by_key() {
        let mut client =
            client(&[INIT, STORE, "cmd=get_result rc=0 msg=success value=a=b\n"]).unwrap();
        assert_eq!(client.find("key").unwrap().as_deref(), Some("a=b"));
    }

    #[test]
    fn a_line_that_puts_a_value_has_at_most_960_bytes() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(format!("{INIT}{STORE}cmd=put_result rc=0\n").as_bytes()).unwrap();
        let mut client = Client::open(ours.into()).unwrap();
        let (key, value) = ("k".repeat(KEY_LIMIT), "v".repeat(client.room()));
        client.put(&key, &value).unwrap();
        let lines = BufReader::new(&theirs).lines().take(3);
        assert_eq!(lines.last().unwrap().unwrap().len() + 1, 960);
        let error = client.put(&key, &(value + "v")).unwrap_err().to_string();
        assert!(
            error.ends_with("its lines have 960 bytes, and the name of its store has 5"),
            "{error}"
        );
    }

    #[test]
    fn a_value_that_was_never_put_is_not_found() {
        const NONE: &str = "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
        let mut client = client(&[INIT, STORE, NONE]).unwrap();
        assert_eq!(client.find("key").unwrap(), None);
    }

    #[test]
    fn a_server_by_address_provides_rank_and_size() {
        let introduce = |replies| Client::introduce(server(replies).unwrap(), "2");
        const ACK: &str = "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n";
        let (_, rank, size) = introduce(&[ACK, INIT, STORE]).unwrap();
        assert_eq!((rank, size), (2, 4));
        const SHORT: &str = "cmd=initack rc=0\ncmd=set size=4\ncmd=set rank=x\ncmd=set debug=0\n";
        assert!(introduce(&[SHORT, INIT, STORE]).is_err());
    }

    #[test]
    fn refusals_wrong_replies_and_hang_ups_are_errors() {
        assert!(client(&["cmd=response_to_init rc=-1\n"]).is_err());
        assert!(client(&["cmd=barrier_out\n"]).is_err());
        assert!(client(&["\u{0}\n"]).is_err());
        let error = client(&[INIT]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_second_process_of_a_rank_is_refused_as_such() {
        const AGAIN: &str = "cmd=response_to_init pmi_version=1 rc=-1 msg=initialized_already\n";
        for reply in [AGAIN, STORE, &format!("{INIT}{AGAIN}")] {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (&theirs).write_all(reply.as_bytes()).unwrap();
            let error = Client::open(ours.into()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{reply}");
        }
        let error = client(&["cmd=response_to_init rc=-1 msg=version\n"]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn an_endless_line_is_cut_off() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let flood = thread::spawn(move || while (&theirs).write_all(&[b'x'; 512]).is_ok() {});
        assert!(Client::open(ours.into()).is_err());
        flood.join().unwrap();
    }

    #[test]
    fn a_hang_up_is_seen_without_blocking() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(format!("{INIT}{STORE}").as_bytes()).unwrap();
        let client = Client::open(ours.into()).unwrap();
        assert!(!client.hung_up());
        drop(theirs);
        assert!(client.hung_up());
    }

    #[test]
    fn a_hang_up_by_tcp_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        (&theirs).write_all(format!("{INIT}{STORE}").as_bytes()).unwrap();
        let client = Client::open(ours.into()).unwrap();
        assert!(!client.hung_up());
        // Read the requests first: closing a socket with unread bytes resets the connection.
        assert_eq!(BufReader::new(&theirs).lines().take(2).count(), 2);
        drop(theirs);
        let start = Instant::now();
        while !client.hung_up() {
            assert!(start.elapsed() < Duration::from_secs(20), "the hang-up isn't seen");
            thread::yield_now();
        }
    }
}
