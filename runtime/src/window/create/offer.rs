//! The offer that each rank makes to a window, and the comparison of all offers.

use serde::{Deserialize, Serialize};
use shipable::Class;

use super::{Contribution, Ground};
use crate::communicator::told;
use crate::error::{ErrorKind, Result};
use crate::flavor::Flavor;
use crate::group::Group;
use crate::window::info::Info;

/// The offset and length of a range in a host's segment.
pub(super) type Extent = (u64, u64);

/// A rank's offer to a window.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offer {
    pub flavor: Flavor,
    pub size: u64,
    pub unit: u32,
    pub info: Info,
    /// Whether the rank excuses broken promises.
    pub excuses: bool,
    /// Where its memory begins in the segment, if it lies there. From rank 0 of a shared window
    /// where all memory begins; from a rank of a dynamic window where its directory begins.
    pub offset: Option<u64>,
    /// The address of its memory in its process, if it doesn't lie in the segment.
    pub address: Option<u64>,
    /// From the first rank of each host: the control blocks of the ranks there, and the window's
    /// barrier if all ranks are on one host.
    pub control: Option<(Extent, Option<Extent>)>,
    /// The key of its memory for ranks of other hosts, if it is registered.
    pub key: Option<u64>,
    /// The window's number, from rank 0; 0 from others.
    pub number: u32,
    /// The class and text of what is wrong at this rank.
    pub error: Option<(u8, String)>,
}

impl Offer {
    pub(super) fn new(
        flavor: Flavor,
        contribution: &Result<Contribution>,
        info: &Info,
        number: u32,
        excuses: bool,
    ) -> Offer {
        let (info, offset, address) = (*info, None, None);
        let (control, key, error) = (None, None, None);
        let nothing = Offer {
            flavor,
            size: 0,
            unit: 1,
            info,
            excuses,
            offset,
            address,
            control,
            key,
            number,
            error,
        };
        match contribution {
            Ok(Contribution { ground, measures, part, .. }) => Offer {
                size: measures.size,
                unit: measures.unit,
                offset: part.map(|part| part.offset),
                address: match (ground, part) {
                    (Ground::Own(memory), None) => Some(memory.span().start().addr() as u64),
                    _ => None,
                },
                ..nothing
            },
            Err(error) => Offer { error: Some(told(error)), ..nothing },
        }
    }
}

/// Compares the offers of all ranks, which all do alike: the flavor and the hints are the same
/// everywhere, and the hints hold (rule 26). Returns the hints in effect. If all ranks excuse
/// broken promises, also returns the texts of those that are.
pub(super) fn compare(offers: &[Offer], group: &Group) -> Result<(Info, Vec<String>)> {
    let failed = |(by, offer): (&u32, &Offer)| Some((*by, offer.error.clone()?));
    if let Some((by, (class, text))) = group.processes().iter().zip(offers).find_map(failed) {
        return Err(ErrorKind::elsewhere(by, class, text).into());
    }
    let differ = |value: &dyn Fn(&Offer) -> u64| {
        let other = offers.iter().position(|offer| value(offer) != value(&offers[0]))?;
        Some((other, value(&offers[other]), value(&offers[0])))
    };
    let wrong = |problem| Err(ErrorKind::WindowArgument { class: Class::Arg, problem }.into());
    let excuses = offers.iter().all(|offer| offer.excuses);
    if let Some(rank) = offers.iter().position(|offer| offer.flavor != offers[0].flavor) {
        let (one, other) = (offers[0].flavor.call(), offers[rank].flavor.call());
        return wrong(format!(
            "rank 0 calls {one} and rank {rank} {other}: make a window by one call at all ranks"
        ));
    }
    let infos: Vec<_> = offers.iter().map(|offer| offer.info).collect();
    let (mut info, difference) = Info::agree(&infos, excuses)?;
    let mut broken: Vec<String> = difference.into_iter().collect();
    if info.same_size {
        if let Some((rank, there, here)) = differ(&|offer| offer.size) {
            info.same_size = false;
            broken.push(format!(
                "info same_size=true, but rank 0 gives {here} bytes and rank {rank} {there}"
            ));
        }
    }
    if info.same_disp_unit {
        if let Some((rank, there, here)) = differ(&|offer| offer.unit.into()) {
            info.same_disp_unit = false;
            broken.push(format!(
                "info same_disp_unit=true, but rank 0 gives {here} and rank {rank} {there}"
            ));
        }
    }
    match broken.is_empty() || excuses {
        true => Ok((info, broken)),
        false => wrong(broken.swap_remove(0)),
    }
}
