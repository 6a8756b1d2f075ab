//! The MPI error class of each kind of error.

use shipable::Class;

use super::kind::ErrorKind;

impl ErrorKind {
    pub(super) fn class(&self) -> Class {
        match self {
            ErrorKind::NotInitialized
            | ErrorKind::Finalized
            | ErrorKind::Job(_)
            | ErrorKind::Callback { .. }
            | ErrorKind::Found(_)
            | ErrorKind::Other(_)
            | ErrorKind::GivenUp { .. }
            | ErrorKind::Link(_) => Class::Other,
            ErrorKind::Keyval(_) => Class::Keyval,
            ErrorKind::Segment(_) | ErrorKind::NoMemory(_) => Class::NoMem,
            ErrorKind::Datatype(error) => error.class(),
            ErrorKind::Rank { .. } | ErrorKind::RankTwice(_) | ErrorKind::TypeOfNull => Class::Rank,
            ErrorKind::Stride | ErrorKind::Color(_) | ErrorKind::Counter { .. } => Class::Arg,
            ErrorKind::Group(_) | ErrorKind::Outside { .. } => Class::Group,
            ErrorKind::Root { .. } => Class::Root,
            ErrorKind::Blocks { .. } | ErrorKind::Ranges(_) => Class::Count,
            ErrorKind::Edges { .. } => Class::Topology,
            ErrorKind::InPlace => Class::Buffer,
            ErrorKind::NotReducible { .. } => Class::Type,
            ErrorKind::NotReducing | ErrorKind::UserOperands { .. } => Class::Op,
            ErrorKind::Collective => Class::Intern,
            ErrorKind::PackArguments(_) => Class::Arg,
            ErrorKind::Unrecognised => Class::UnsupportedDatarep,
            ErrorKind::CommunicatorHandle(_) => Class::Comm,
            ErrorKind::Numbers => Class::Comm,
            ErrorKind::Count(_) => Class::Count,
            ErrorKind::TooLarge { .. } => Class::ValueTooLarge,
            ErrorKind::Tag(_) => Class::Tag,
            ErrorKind::LocaleTarget { .. }
            | ErrorKind::ForeignTarget { .. }
            | ErrorKind::UnknownTag(_)
            | ErrorKind::TypeHandle(_)
            | ErrorKind::Signature { .. }
            | ErrorKind::Overlap { .. }
            | ErrorKind::MixedTypes { .. }
            | ErrorKind::OtherType { .. }
            | ErrorKind::NotPredefined { .. }
            | ErrorKind::Form { .. } => Class::Type,
            ErrorKind::NoOp | ErrorKind::UnknownOperation(_) => Class::Op,
            ErrorKind::Request(_) => Class::Request,
            ErrorKind::Displacement(_) => Class::Disp,
            ErrorKind::Range { .. } | ErrorKind::Address { .. } | ErrorKind::NotAttached { .. } => {
                Class::RmaRange
            }
            ErrorKind::Buffer { .. } | ErrorKind::Padding { .. } | ErrorKind::Emulated { .. } => {
                Class::Buffer
            }
            ErrorKind::Epoch(_)
            | ErrorKind::LockedWindow { .. }
            | ErrorKind::OutOfOrder(_)
            | ErrorKind::Mismatch { .. }
            | ErrorKind::Circle(_) => Class::RmaSync,
            ErrorKind::Assert { .. } => Class::Assert,
            ErrorKind::LockType(_) => Class::Locktype,
            ErrorKind::WindowFreed | ErrorKind::WindowPoisoned { .. } => Class::Win,
            ErrorKind::Flavor { .. } => Class::RmaFlavor,
            ErrorKind::NotShared(_) => Class::RmaShared,
            ErrorKind::AttachedTwice { .. } | ErrorKind::NoAddress { .. } | ErrorKind::Detached => {
                Class::RmaAttach
            }
            ErrorKind::WindowArgument { class, .. }
            | ErrorKind::Refused { class, .. }
            | ErrorKind::Elsewhere { class, .. }
            | ErrorKind::Partition { class, .. }
            | ErrorKind::Interface { class, .. } => *class,
            ErrorKind::Info { .. } => Class::InfoValue,
            ErrorKind::Conversion(_) => Class::Conversion,
            ErrorKind::Truncate { .. } => Class::Truncate,
            ErrorKind::Gone { .. } | ErrorKind::Aborting { .. } => Class::ProcAborted,
            ErrorKind::Failed { .. } | ErrorKind::Unacknowledged { .. } => Class::ProcFailed,
            ErrorKind::Revoked => Class::Revoked,
            ErrorKind::Protocol { .. } => Class::Intern,
            ErrorKind::Port(_) => Class::Port,
            ErrorKind::Name(_) => Class::Name,
            ErrorKind::Service { .. } => Class::Service,
            ErrorKind::Spawn(_) => Class::Spawn,
            ErrorKind::SpawnArgument(_) => Class::Arg,
            ErrorKind::NoLauncher => Class::UnsupportedOperation,
        }
    }
}
