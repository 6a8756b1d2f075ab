//! The layout of memory that the ranks of a window share.

use longshore_transport::GRANULE;
use serde::{Deserialize, Serialize};
use shipable::Class;

use crate::communicator::{Communicator, told};
use crate::error::{ErrorKind, Result};
use crate::group::Group;
use crate::pointer::fits;
use crate::window::info::Info;
use crate::window::part::lead;

/// Where the parts of shared memory begin, by rank, and its length.
pub(super) struct Layout {
    /// Bytes from the beginning of the allocated range to the first part.
    pub lead: u64,
    pub starts: Vec<u64>,
    pub total: u64,
}

/// The part that a rank asks for.
#[derive(Debug, Serialize, Deserialize)]
struct Wish {
    size: u64,
    info: Info,
    /// Whether the rank excuses broken promises.
    excuses: bool,
    /// The class and text of what is wrong at this rank.
    error: Option<(u8, String)>,
}

impl Layout {
    /// Exchanges the sizes of all ranks, and lays out their parts. The outer error is the
    /// exchange's.
    pub(super) fn agree(
        communicator: &Communicator,
        checked: &Result<(u64, u32)>,
        info: &Info,
    ) -> Result<Result<Layout>> {
        let wish = Wish {
            size: checked.as_ref().map_or(0, |(size, _)| *size),
            info: *info,
            excuses: communicator.process().excuses(),
            error: checked.as_ref().err().map(told),
        };
        let wishes: Vec<Wish> = communicator.tell(&wish)?;
        Ok(Layout::new(&wishes, communicator.group()))
    }

    fn new(wishes: &[Wish], group: &Group) -> Result<Layout> {
        let failed = |(by, wish): (&u32, &Wish)| Some((*by, wish.error.clone()?));
        if let Some((by, (class, text))) = group.processes().iter().zip(wishes).find_map(failed) {
            return Err(ErrorKind::elsewhere(by, class, text).into());
        }
        let infos: Vec<_> = wishes.iter().map(|wish| wish.info).collect();
        // The offers report the difference.
        let (info, _) = Info::agree(&infos, wishes.iter().all(|wish| wish.excuses))?;
        let Info { alloc_shared_noncontig, minimum_memory_alignment: alignment, .. } = info;
        let place = |end: &mut u64, (rank, wish): (u32, &Wish)| -> Option<u64> {
            let lead = || lead(wish.size, rank, alignment);
            let start = match alloc_shared_noncontig {
                true => end.checked_next_multiple_of(GRANULE)?.checked_add(lead())?,
                false => *end,
            };
            *end = start.checked_add(wish.size)?;
            Some(start)
        };
        let (mut total, ranks) = (0, (0..).zip(wishes));
        let starts: Option<_> = ranks.map(|wish| place(&mut total, wish)).collect();
        let too_long = || {
            let problem = "the parts of all ranks together are longer than 2^64 bytes".to_owned();
            ErrorKind::WindowArgument { class: Class::Size, problem }
        };
        let lead = match alloc_shared_noncontig {
            true => 0,
            false => lead(total, 0, alignment),
        };
        Ok(Layout { lead, starts: starts.ok_or_else(too_long)?, total })
    }

    /// Rule 17, as far as every rank can tell: all ranks reach all of the memory.
    pub(super) fn check_shareable(&self, communicator: &Communicator) -> Result<()> {
        let hosts = communicator.process().hosts();
        let processes = communicator.group().processes();
        if let Some(away) = processes.iter().find(|&&peer| !hosts.share(peer, processes[0])) {
            let what = format!(
                "rank {away} runs on another host than rank {}: split the communicator by SHARED first",
                processes[0]
            );
            return Err(ErrorKind::NotShared(what).into());
        }
        let mut engine = communicator.process().engine();
        for &peer in processes {
            let pointer =
                engine.state().representation(peer).map_or(0, |(of, _)| of.pointer().size);
            if !fits(self.total, pointer) {
                let what = format!(
                    "rank {peer}'s pointers of {pointer} bytes can't reach the {} bytes that are shared",
                    self.total
                );
                return Err(ErrorKind::NotShared(what).into());
            }
        }
        Ok(())
    }
}
