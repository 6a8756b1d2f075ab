//! Exchanges with neighbours: the basis of neighbourhood collective calls (MPI-5.0 section 8.6).
//!
//! A topology gives each rank a list of sources and one of destinations. A call receives from each
//! source and sends to each destination. The lists are arguments here, since only MPI's interface
//! in C keeps them with a communicator.

use std::pin::pin;
use std::sync::Arc;

use super::Communicator;
use super::calls::{Call, Ongoing};
use super::message::Side;
use super::nonblocking::{Collective, sides};
use super::participants::finish;
use super::varying::lent;
use crate::bytes::Bytes;
use crate::error::{ErrorKind, Result};
use crate::given::Given;
use crate::job::Activity;
use crate::memory::Memory;
use crate::origin::{Destination, Origin};

/// The ranks with which a rank exchanges data.
#[derive(Clone, Copy, Debug)]
pub struct Neighbors<'a> {
    /// The rank from which each block is received.
    pub sources: &'a [i32],
    /// The rank to which each block is sent.
    pub destinations: &'a [i32],
}

impl Communicator {
    /// Sends a block to each of this rank's destinations, and receives one from each of its sources
    /// (MPI-5.0 section 8.6.2). Collective. Each block has a memory and a type of its own.
    ///
    /// A rank may be named several times: its blocks are received in the order in which it names
    /// this rank as a destination. Nothing is exchanged with [`PROC_NULL`](crate::PROC_NULL).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{Destination, Neighbors, Origin};
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// // A ring: the value moves to the next rank.
    /// let ring = Neighbors { sources: &[(me + size - 1) % size], destinations: &[(me + 1) % size] };
    /// let mut from = [-1];
    /// rank.world().neighbor_alltoallw(
    ///     ring,
    ///     [Origin::from(&[me])],
    ///     [Destination::from(&mut from)],
    /// )?;
    /// assert_eq!(from, ring.sources);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// RANK for a neighbour outside the communicator. COUNT if there isn't one block for each
    /// neighbour. TOPOLOGY if this rank isn't as often among its sources as among its destinations.
    /// Otherwise the errors of [`alltoallw`](Communicator::alltoallw).
    #[track_caller]
    #[doc(alias = "MPI_Neighbor_alltoallw")]
    pub fn neighbor_alltoallw<'a, 'b>(
        &self,
        neighbors: Neighbors<'_>,
        given: impl IntoIterator<Item = Origin<'a>>,
        taken: impl IntoIterator<Item = Destination<'b>>,
    ) -> Result<()> {
        let (given, taken) = (Vec::from_iter(given), Vec::from_iter(taken));
        self.collective(const { Call::new("neighbor_alltoallw") }, None, Activity::Alltoall, |at| {
            lent(given, taken, |given, taken| {
                finish(pin!(self.neighbor_steps(at, neighbors, given, taken)))
            })
        })
    }

    /// Starts to send a block to each of this rank's destinations, and to receive one from each of
    /// its sources. See [`neighbor_alltoallw`](Communicator::neighbor_alltoallw).
    ///
    /// ```
    /// # let rank = longshore::init()?;
    /// use longshore::{Given, Neighbors};
    ///
    /// let (me, size) = (rank.world().rank(), rank.world().size());
    /// let ring = Neighbors { sources: &[(me + size - 1) % size], destinations: &[(me + 1) % size] };
    /// let (given, taken) = ([Given::from(vec![me])], [Given::from(vec![-1])]);
    /// let exchange = rank.world().ineighbor_alltoallw(ring, given, taken)?;
    /// // Other work.
    /// assert_eq!(exchange.wait()?.1.concat(), ring.sources);
    /// # rank.finalize()?;
    /// # Ok::<(), longshore::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`neighbor_alltoallw`](Communicator::neighbor_alltoallw), when the call is waited
    /// for.
    #[track_caller]
    #[doc(alias = "MPI_Ineighbor_alltoallw")]
    pub fn ineighbor_alltoallw<M: Memory, N: Memory>(
        &self,
        neighbors: Neighbors<'_>,
        given: impl IntoIterator<Item = Given<M>>,
        taken: impl IntoIterator<Item = Given<N>>,
    ) -> Result<Collective<(Vec<M>, Vec<N>)>> {
        let call = ("ineighbor_alltoallw", const { Call::new("neighbor_alltoallw") });
        let (sources, destinations) = (neighbors.sources.to_vec(), neighbors.destinations.to_vec());
        self.start_all(call, given, taken, |own, at, given, taken| async move {
            let neighbors = Neighbors { sources: &sources, destinations: &destinations };
            own.neighbor_steps(at, neighbors, &sides(&given), &sides(&taken)).await
        })
    }

    async fn neighbor_steps(
        &self,
        at: Ongoing,
        neighbors: Neighbors<'_>,
        given: &[Side<'_>],
        taken: &[Side<'_>],
    ) -> Result<()> {
        self.intra()?;
        let destinations = neighbors.destinations;
        let (from, wrong) = match self.neighbor_members(neighbors, (given.len(), taken.len())) {
            Ok(from) => (from, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let (refusal, mut failed) = match wrong {
            Some(error) => self.seal(Err(error)),
            None => (Bytes::default(), None),
        };
        let is_wrong = failed.is_some();
        let mut sent = Vec::new();
        for (at, to) in destinations.iter().enumerate() {
            // The other neighbours get the error of this rank, which receives nothing then.
            if is_wrong && *to == self.rank() {
                continue;
            }
            let Ok(Some(to)) = self.member(*to) else { continue };
            let (bytes, error) = match is_wrong {
                true => (refusal.to_vec().into(), None),
                false => self.seal(self.packed_whole(given[at])),
            };
            failed = failed.or(error);
            sent.push((to, Arc::new(bytes)));
        }
        let from_ranks: Vec<u32> = from.iter().copied().flatten().collect();
        let heard = self.participants(at).exchange_all(sent.into_iter(), &from_ranks).await?;
        failed.map_or(Ok(()), Err)?;
        // All that can be unpacked is, as in other calls.
        let rooms = from.iter().zip(taken).filter(|(from, _)| from.is_some());
        let outcomes: Vec<_> =
            rooms.zip(&heard).map(|((_, room), bytes)| self.unpack_whole(*room, bytes)).collect();
        outcomes.into_iter().collect()
    }

    /// The processes of the sources, after all of the call's neighbours and blocks are checked.
    fn neighbor_members(
        &self,
        Neighbors { sources, destinations }: Neighbors<'_>,
        (given, taken): (usize, usize),
    ) -> Result<Vec<Option<u32>>> {
        let (to, from) = (destinations.len(), sources.len());
        if (given, taken) != (to, from) {
            let what =
                format!("{given} origins for {to} destinations, {taken} rooms for {from} sources");
            return Err(ErrorKind::Ranges(what).into());
        }
        destinations.iter().try_for_each(|rank| self.member(*rank).map(drop))?;
        // An edge is in the lists of both its ends. Of a rank's edges to itself this rank has both
        // lists. A source too many would wait for ever.
        let to_self = |ranks: &[i32]| ranks.iter().filter(|rank| **rank == self.rank()).count();
        let (to, from) = (to_self(destinations), to_self(sources));
        if to != from {
            return Err(ErrorKind::Edges { rank: self.rank(), to, from }.into());
        }
        sources.iter().map(|rank| self.member(*rank)).collect()
    }
}
