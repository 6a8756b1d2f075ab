//! Persistent messages (MPI-5.0 section 3.9).

use std::ffi::c_int;
use std::sync::Arc;

use longshore::{Class, Communicator};

use crate::communicator::Comm;
use crate::communicator::promise::{Length, look_at_wildcards};
use crate::datatype::{Type, of_message};
use crate::edge::arg::Room;
use crate::edge::constants::{ANY_SOURCE, ANY_TAG, PROC_NULL};
use crate::edge::elements::Elements;
use crate::edge::fault::{Fault, Raiser, Result};
use crate::edge::handle::{Handle, find, find_optional};
use crate::edge::status::Status;
use crate::message::{buffered, p2p::sending};
use crate::request::{self, Operation, Request};

/// The mode of a message.
#[derive(Clone, Copy)]
pub enum Mode {
    /// Also of a ready send, for which a receive is no condition here.
    Standard,
    Synchronous,
    Buffered,
    Receive,
}

impl Mode {
    /// Checks the rank and the tag of a message when its request is made: a later start would
    /// raise their error far from the call that is wrong.
    fn check(self, peer: c_int, tag: c_int, comm: &Comm) -> Result<()> {
        let is_receive = matches!(self, Mode::Receive);
        let is_any = is_receive && peer == ANY_SOURCE;
        if !(0..comm.peers()).contains(&peer) && peer != PROC_NULL && !is_any {
            return Err(comm.no_rank(peer));
        }
        if tag < 0 && !(is_receive && tag == ANY_TAG) {
            return Err(Fault::new(Class::Tag, format!("the tag is {tag}: tags aren't negative")));
        }
        Ok(())
    }
}

/// The message that a persistent request starts each time.
struct Message {
    mode: Mode,
    data: Elements<Option<Arc<Type>>>,
    peer: c_int,
    tag: c_int,
    comm: Arc<Comm>,
    /// The communicator, which the program may free.
    kept: Communicator,
}

impl Message {
    /// Starts the message.
    fn start(&self) -> Result<Operation> {
        let &Message { mode, peer, tag, .. } = self;
        let data = of_message(self.data.as_deref(), peer)?;
        if let Mode::Buffered = mode {
            buffered::bsend_by(data, (peer, tag), &self.comm, &self.kept)?;
            return Ok(Operation::complete(Status::EMPTY));
        }
        Ok(match mode {
            Mode::Receive => {
                let length = Length::promised(&self.comm, data.count, data.datatype);
                Operation::Receive(self.kept.irecv_promised(data.promised()?, peer, tag)?, length)
            }
            Mode::Synchronous => Operation::Send(self.kept.issend(data.given()?, peer, tag)?),
            _ => match sending(&self.kept, data, (peer, tag))? {
                None => Operation::complete(Status::EMPTY),
                Some(sending) => Operation::Send(sending),
            },
        })
    }
}

macro_rules! inits {
    ($($name:ident $mode:ident;)*) => {
        $(
            pub fn $name(
                data: Elements,
                peer: c_int,
                tag: c_int,
                comm: Handle,
            ) -> Result<Handle> {
                let data = data.of(find_optional::<Type>(data.datatype)?);
                let found = find::<Comm>(comm)?;
                of_message(data.as_deref(), peer)?.check()?;
                let (mode, raiser) = (Mode::$mode, Raiser::Comm(comm));
                mode.check(peer, tag, &found)?;
                if let Mode::Receive = mode {
                    look_at_wildcards(&found, peer, tag);
                }
                let (comm, kept) = (found.clone(), found.inner().keep());
                let message = Message { mode, data, peer, tag, comm, kept };
                request::persistent(Box::new(move || message.start()), raiser, found)
            }
        )*
    };
}

inits! {
    bsend_init Buffered;
    recv_init Receive;
    rsend_init Standard;
    send_init Standard;
    ssend_init Synchronous;
}

pub fn start(handle: &mut Handle) -> Result<()> {
    find::<Request>(*handle)?.start()
}

/// Starts the requests of an array in order. An error leaves those after it inactive.
pub fn startall(count: usize, requests: Room<Handle>) -> Result<()> {
    let handles = requests.slice(count, "array_of_requests")?;
    handles.iter().try_for_each(|handle| find::<Request>(*handle)?.start())
}
