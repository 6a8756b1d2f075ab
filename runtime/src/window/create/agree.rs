//! The agreement of all ranks on a window.

use longshore_transport::Range;

use super::build::build;
use super::offer::{Extent, Offer, compare};
use super::reach::register;
use super::{Contribution, Ground};
use crate::barrier::Barrier;
use crate::check::{Caller, site};
use crate::communicator::{Communicator, told};
use crate::control::Control;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::memory::Registered;
use crate::program::Line;
use crate::window::core::Core;
use crate::window::info::Info;
use crate::window::promise::report;

/// Agrees on a window with the other ranks. The ranges that this rank allocated are added to
/// `ranges`; the window has them when it is made, and the caller frees them otherwise.
///
/// 1. Every rank sends all others its offer, which may be an error.
/// 2. All compare the same offers, so all come to the same end.
/// 3. Each maps the memory of the others, opens its own to them, and tells all whether it could.
///    Operations can arrive from there on.
pub(super) fn agree(
    communicator: &Communicator,
    flavor: Flavor,
    contribution: Result<Contribution>,
    ranges: &mut Vec<Range>,
    info: &Info,
    caller: Caller,
) -> Result<Core> {
    let (process, group) = (communicator.process(), communicator.group());
    let number = match communicator.rank() {
        0 => process.number_window(),
        _ => Ok(0),
    };
    let numbered = *number.as_ref().unwrap_or(&0);
    let mut offer = Offer::new(flavor, &contribution, info, numbered, process.excuses());
    if let Err(error) = &number {
        offer.error.get_or_insert(told(error));
    }
    let registered = match &contribution {
        Ok(Contribution { ground: Ground::Own(memory), .. }) => register(communicator, memory),
        _ => None,
    };
    offer.key = registered.as_ref().map(Registered::key);
    let is_first = group.first_beside(process.hosts(), process.me().rank);
    if is_first == communicator.rank() as u32 {
        match allocate_control(communicator, info, ranges) {
            Ok(control) => offer.control = Some(control),
            Err(error) => _ = offer.error.get_or_insert(told(&error)),
        }
    }
    let offers: Vec<Offer> = communicator.tell(&offer)?;
    let contribution = contribution?;
    let (info, broken) = compare(&offers, group)?;
    let window = offers.first().map_or(0, |offer| offer.number);
    for text in broken.iter().filter(|_| communicator.rank() == 0) {
        report(process, window, text, &site(Some(Line::of(caller))));
    }
    let built = build(communicator, window, contribution, registered, &offers, &info);
    // A large job's offers take more memory than its window. All ranks meet next.
    drop(offers);
    let failed = built.as_ref().err().map(told);
    let close = || process.engine().state().close_window(window);
    let failures = match communicator.tell(&failed) {
        Ok(failures) => failures,
        Err(error) => {
            // Other ranks may have learnt that all could, and use the memory in the segment: it
            // stays allocated.
            ranges.clear();
            close();
            return Err(error);
        }
    };
    let elsewhere = group.processes().iter().zip(failures).find_map(|(&by, failed)| {
        let (class, text) = failed?;
        Some(ErrorKind::elsewhere(by, class, text))
    });
    match (built, elsewhere) {
        (Ok(mut core), None) => {
            core.parts_mut().memory_mut().keep(std::mem::take(ranges));
            Ok(core)
        }
        (Ok(_), Some(elsewhere)) => {
            close();
            Err(elsewhere.into())
        }
        (Err(error), _) => {
            close();
            Err(error)
        }
    }
}

/// Allocates the control blocks of the ranks of this host, and the barrier of a window whose ranks
/// are all here.
fn allocate_control(
    communicator: &Communicator,
    info: &Info,
    ranges: &mut Vec<Range>,
) -> Result<(Extent, Option<Extent>)> {
    let (process, group) = (communicator.process(), communicator.group());
    let size = group.size() as u32;
    let mut allocate = |bytes| -> Result<Extent> {
        let range = process.segment().allocate_piece(bytes)?;
        ranges.push(range);
        Ok((range.offset, range.len))
    };
    let all_here = group.is_on_one(process.hosts());
    let barrier = all_here.then(|| allocate(Barrier::bytes(size))).transpose()?;
    Ok((allocate(Control::bytes(size, info.max_num_notify))?, barrier))
}
