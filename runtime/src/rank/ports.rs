//! The ports of a rank, their names, and the ranks that had it started (MPI-5.0 chapter 11).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use longshore_job::joining::NAME_LIMIT;
use nix::sys::socket::{MsgFlags, send};

use super::Rank;
use crate::communicator::Communicator;
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::port::Port;

/// The longest text of a port that a socket passes.
const LONGEST: usize = 256;

/// The time for which spawned ranks wait for those that had them started.
const PARENTS: Duration = Duration::from_secs(60);

impl Rank {
    /// Meets the ranks that had this rank's world started.
    pub(super) fn meet_parent(&mut self, port: &str) -> Result<()> {
        let parent = self.world.connect_within(&port.parse()?, 0, PARENTS)?;
        parent.set_name("MPI_COMM_PARENT");
        self.parent = Some(parent);
        Ok(())
    }

    /// The intercommunicator with the ranks that had this rank's world started by
    /// [`spawn`](Communicator::spawn) (MPI-5.0 section 11.3.3). `None` if the launcher started it.
    ///
    /// ```
    /// let rank = longshore::init()?;
    /// match rank.parent() {
    ///     Some(parent) => println!("{:?} had this rank started", parent.remote_group()),
    ///     None => println!("a launcher started this rank"),
    /// }
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_Comm_get_parent")]
    pub fn parent(&self) -> Option<&Communicator> {
        self.parent.as_ref()
    }

    /// The number of processes that the job can use at a time: its ranks, or the processors of this
    /// host if those are more (MPI-5.0 section 11.10.1). Ranks that others spawned count those
    /// others as well.
    ///
    /// ```
    /// let rank = longshore::init()?;
    /// assert!(rank.universe_size() >= rank.world().size());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_UNIVERSE_SIZE")]
    pub fn universe_size(&self) -> i32 {
        let processors = self.process.processors().and_then(|number| i32::try_from(number).ok());
        let parents = self.parent.as_ref().and_then(Communicator::remote_group);
        (self.world.size() + parents.map_or(0, Group::size)).max(processors.unwrap_or(0))
    }

    /// The number of this rank's program among those that were started together, from 0 (MPI-5.0
    /// section 11.10.3); `None` if the launcher doesn't say.
    ///
    /// ```
    /// let rank = longshore::init()?;
    /// assert!(rank.program_number().unwrap_or(0) < 1, "one program was started");
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    #[doc(alias = "MPI_APPNUM")]
    pub fn program_number(&self) -> Option<u32> {
        self.process.program_number()
    }

    /// Opens a port, at which ranks of this and of other worlds can connect to this rank (MPI-5.0
    /// section 11.4.2). See [`Communicator::accept`] for an example.
    ///
    /// # Errors
    /// OTHER after [`finalize`](Rank::finalize). PORT if this rank has opened 2^31 ports.
    #[doc(alias = "MPI_Open_port")]
    pub fn open_port(&self) -> Result<Port> {
        self.process.ready()?;
        self.process.open_port()
    }

    /// Closes a port of this rank (MPI-5.0 section 11.4.2). Ranks that connect to it later get an
    /// error once they have waited for the accept.
    ///
    /// ```
    /// let rank = longshore::init()?;
    /// let port = rank.open_port()?;
    /// rank.close_port(&port)?;
    /// assert!(rank.close_port(&port).is_err());
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// PORT if this rank hasn't opened the port, or has closed it.
    #[doc(alias = "MPI_Close_port")]
    pub fn close_port(&self, port: &Port) -> Result<()> {
        self.process.ready()?;
        match self.process.close_port(port) {
            // Roots that have asked to connect there hear that it is closed.
            true => self.alone.sort_requests(),
            false => {
                let what = "this rank hasn't opened it, or has closed it before";
                Err(ErrorKind::Port(what.to_owned()).into())
            }
        }
    }

    /// Publishes a port under a name, by which all ranks of the job's launcher find it (MPI-5.0
    /// section 11.4.4). The name is free again after [`unpublish_name`](Rank::unpublish_name), and
    /// when this rank has ended.
    ///
    /// ```no_run
    /// let rank = longshore::init()?;
    /// let port = rank.open_port()?;
    /// rank.publish_name("ocean", &port)?;
    /// let both = rank.world().accept(&port, 0)?;
    /// rank.unpublish_name("ocean")?;
    /// # both.disconnect()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// SERVICE if the name is taken, or is empty or longer than 255 bytes. UNSUPPORTED_OPERATION
    /// without a launcher. OTHER if the launcher isn't `longshore run`.
    #[doc(alias = "MPI_Publish_name")]
    pub fn publish_name(&self, name: &str, port: &Port) -> Result<()> {
        self.publish_text(name, &port.to_string())
    }

    /// Publishes a text, which needn't be a port's: programs in C publish what they like.
    #[doc(hidden)]
    pub fn publish_text(&self, name: &str, text: &str) -> Result<()> {
        self.process.ready()?;
        check_name(name)?;
        if text.len() > NAME_LIMIT {
            let what =
                format!("its text has {} bytes: at most {NAME_LIMIT} can be published", text.len());
            return Err(ErrorKind::Port(what).into());
        }
        match self.process.ask_launcher(|launcher| launcher.publish(name, text))? {
            true => Ok(()),
            false => Err(service(name, "is taken: a port is published under it")),
        }
    }

    /// Takes the name of a port back (MPI-5.0 section 11.4.4).
    ///
    /// # Errors
    /// SERVICE if no port is published under the name. UNSUPPORTED_OPERATION without a launcher.
    /// OTHER if the launcher isn't `longshore run`.
    #[doc(alias = "MPI_Unpublish_name")]
    pub fn unpublish_name(&self, name: &str) -> Result<()> {
        self.process.ready()?;
        let is_name = check_name(name).is_ok();
        match is_name && self.process.ask_launcher(|launcher| launcher.unpublish(name))? {
            true => Ok(()),
            false => Err(service(name, "can't be taken back: no port is published under it")),
        }
    }

    /// The port that is published under a name (MPI-5.0 section 11.4.4).
    ///
    /// ```no_run
    /// let rank = longshore::init()?;
    /// let ocean = rank.world().connect(&rank.lookup_name("ocean")?, 0)?;
    /// # ocean.disconnect()?;
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// NAME if there is none. PORT if a program in C has published another text than a port's.
    /// UNSUPPORTED_OPERATION without a launcher. OTHER if the launcher isn't `longshore run`.
    #[doc(alias = "MPI_Lookup_name")]
    pub fn lookup_name(&self, name: &str) -> Result<Port> {
        self.lookup_text(name)?.parse()
    }

    /// The text that is published under a name.
    #[doc(hidden)]
    pub fn lookup_text(&self, name: &str) -> Result<String> {
        self.process.ready()?;
        let found = match check_name(name) {
            Ok(()) => self.process.ask_launcher(|launcher| launcher.look_up(name))?,
            // None can be published under it.
            Err(_) => None,
        };
        Ok(found.ok_or_else(|| ErrorKind::Name(name.to_owned()))?)
    }

    /// Makes an intercommunicator with the rank at the other end of a connected socket (MPI-5.0
    /// section 11.10.5). Both ranks call it. `None` if the other rank is of another job, which this
    /// one can't reach. The socket has nothing to read before and after the call, which reads and
    /// writes until it ends.
    ///
    /// ```
    /// use std::os::unix::net::UnixStream;
    ///
    /// let rank = longshore::init()?;
    /// let (ours, theirs) = UnixStream::pair()?;
    /// // The other end isn't a rank of the job.
    /// std::io::Write::write_all(&mut &theirs, b"\x09longshore")?;
    /// assert!(rank.join(&ours)?.is_none());
    /// rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// OTHER if the socket fails or ends. Otherwise the errors of [`Communicator::connect`].
    #[track_caller]
    #[doc(alias = "MPI_Comm_join")]
    pub fn join(&self, socket: impl AsFd) -> Result<Option<Communicator>> {
        let port = self.open_port()?;
        let joined = self.join_at(&port, socket);
        self.close_port(&port)?;
        joined
    }

    #[track_caller]
    fn join_at(&self, port: &Port, socket: impl AsFd) -> Result<Option<Communicator>> {
        let failed = |error: io::Error| ErrorKind::Other(Box::new(error));
        let socket = socket.as_fd().try_clone_to_owned().map_err(failed)?;
        let mut socket = File::from(socket);
        let text = port.to_string();
        let mut message = vec![text.len() as u8];
        message.extend(text.as_bytes());
        send_all(&socket, &message).map_err(failed)?;
        let mut room = [0; LONGEST];
        socket.read_exact(&mut room[..1]).map_err(failed)?;
        let length = usize::from(room[0]);
        let theirs = &mut room[..length];
        socket.read_exact(theirs).map_err(failed)?;
        let theirs: std::result::Result<Port, _> = String::from_utf8_lossy(theirs).parse();
        let Ok(theirs) = theirs else { return Ok(None) };
        if theirs.segment != port.segment || theirs.process == port.process {
            return Ok(None);
        }
        let both = match port.process < theirs.process {
            true => self.alone.accept(port, 0),
            false => self.alone.connect(&theirs, 0),
        };
        both.map(Some)
    }
}

/// Writes bytes to a socket. If its other end is closed, that is an error, and no signal.
fn send_all(socket: &File, bytes: &[u8]) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket.as_raw_fd(), &bytes[sent..], MsgFlags::MSG_NOSIGNAL) {
            Ok(more) => sent += more,
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn service(name: &str, what: &'static str) -> crate::Error {
    ErrorKind::Service { name: name.to_owned(), what }.into()
}

fn check_name(name: &str) -> Result<()> {
    match name.len() {
        1..=255 => Ok(()),
        _ => Err(service(name, "can't be published: use one of 1 to 255 bytes")),
    }
}
