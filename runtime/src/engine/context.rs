//! Contexts: the numbers that keep the messages of communicators and of their channels apart
//! (MPI-5.0 section 7.2.2).

/// Kinds of message that never match each other, in the low bits of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The user's data.
    Data,
    /// Datatypes that are sent.
    Types,
    /// Messages of this crate.
    Internal,
    /// Messages that make a communicator of some of the ranks, by a tag of the user's.
    Groups,
    /// Messages by which ranks agree about a window, by the window's number: threads may work on
    /// several windows at a time.
    Windows,
    /// Messages of collective calls. The tag is the call's number on the communicator, and the
    /// signature stands for the call.
    Calls,
    /// Messages of collective calls with requests, of which several are under way at a time. They
    /// are numbered apart.
    Started,
    /// The message that tells where the board of the communicator is.
    Board,
    /// What a sender of partitions tells their receiver, by the tag of the message.
    Offers,
    /// Partitions of messages, by numbers of the sender's.
    Parts,
}

/// A power of two, so that a context is taken apart by shifts.
const CHANNELS: u32 = 16;

/// A communicator's context: a number that none of its ranks uses for another communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Context(u32);

impl Context {
    /// The context of all ranks of the job.
    pub(crate) const WORLD: Context = Context(0);

    /// The context of a rank by itself.
    pub(crate) const SELF: Context = Context(1);

    /// The context on the wire of requests at the ports of a rank. They aren't messages of
    /// MPI_COMM_SELF, which has no other rank, so its revocation doesn't end them.
    pub(crate) const PORTS: u32 = Context::SELF.0 * CHANNELS + Channel::Groups as u32;

    /// The lowest number of other contexts.
    pub(crate) const FIRST: u32 = 2;

    /// The number above those of all contexts.
    pub(crate) const LIMIT: u32 = u32::MAX / CHANNELS;

    /// The context of this number; `None` if it is out of range.
    pub(crate) fn new(number: u32) -> Option<Context> {
        (number < Context::LIMIT).then_some(Context(number))
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The number of the communicator whose revocation ends messages of this context on the wire;
    /// `None` for those of windows and ports, which go on.
    pub(crate) fn revocable(context: u32) -> Option<u32> {
        let goes_on = context == Context::PORTS || context % CHANNELS == Channel::Windows as u32;
        (!goes_on).then_some(context / CHANNELS)
    }

    /// The number of the communicator of a context on the wire.
    pub(super) fn communicator(context: u32) -> u32 {
        context / CHANNELS
    }

    /// The number of one of its channels on the wire.
    pub(crate) fn of(self, channel: Channel) -> u32 {
        self.0 * CHANNELS + channel as u32
    }
}

/// Whether a context on the wire is one of users' data.
pub(super) fn is_data(context: u32) -> bool {
    context % CHANNELS == Channel::Data as u32
}
