//! The steps of collective calls on intercommunicators (MPI-5.0 section 6.2.2).
//!
//! In a rooted call, the root and the ranks of the other group take part. In the others, each group
//! gets the data of the other one.

use std::ops::Range;

use super::super::Communicator;
use super::super::calls::Ongoing;
use super::super::message::Side;
use super::super::operator::Operator;
use super::super::reduction::Slicing;
use crate::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::group::{Group, PROC_NULL};
use crate::origin::What;
use crate::special::ROOT;

/// The part that a rank has in a rooted call.
#[derive(Clone, Copy)]
enum Role {
    Root,
    /// None: another rank of its group is the root.
    Idle,
    /// It communicates with this rank of the other group.
    With(u32),
}

impl Communicator {
    fn role(&self, root: i32) -> Result<Role> {
        match root {
            ROOT => Ok(Role::Root),
            PROC_NULL => Ok(Role::Idle),
            0.. if root < self.peers().size() => Ok(Role::With(root as u32)),
            _ => Err(ErrorKind::Root { root, size: self.peers().size() as u32 }.into()),
        }
    }

    /// Refuses a wrong root.
    pub(in super::super) fn check_root(&self, root: i32) -> Result<()> {
        match self.is_inter() {
            true => self.role(root).map(drop),
            false => self.root(root).map(drop),
        }
    }

    /// The root, and after it the group that communicates with it. Also the rank of this process
    /// there; `None` if it takes no part.
    fn rooted_group(&self, root: i32) -> Result<Option<(Group, u32)>> {
        let me = self.process().me().rank;
        let (first, others, rank) = match self.role(root)? {
            Role::Idle => return Ok(None),
            Role::Root => (me, self.peers(), 0),
            Role::With(root) => (self.peers().process(root), self.group(), 1 + self.rank() as u32),
        };
        Ok(Some((Group::new([&[first], others.processes()].concat(), me), rank)))
    }

    pub(in super::super) async fn inter_bcast(
        &self,
        at: Ongoing,
        data: Side<'_>,
        root: i32,
    ) -> Result<()> {
        let Some((group, rank)) = self.rooted_group(root)? else { return Ok(()) };
        let participants = self.among(at, &group, rank);
        if rank == 0 {
            let (bytes, failed) = self.seal(self.packed_whole(data));
            participants.broadcast(bytes).await?;
            return failed.map_or(Ok(()), Err);
        }
        let bytes = participants.broadcast(Bytes::default()).await?;
        self.unpack_whole(data, &bytes)
    }

    pub(in super::super) async fn inter_gather(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        root: i32,
    ) -> Result<()> {
        let Some((group, rank)) = self.rooted_group(root)? else { return Ok(()) };
        let (mine, failed) = match rank {
            0 => (Bytes::default(), None),
            _ => self.seal(self.packed_whole(data)),
        };
        let all = self.among(at, &group, rank).gather(mine).await?;
        failed.map_or(Ok(()), Err)?;
        all.map_or(Ok(()), |all| self.unpack_blocks(room, ranges, &all[1..]))
    }

    pub(in super::super) async fn inter_scatter(
        &self,
        at: Ongoing,
        data: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        room: Side<'_>,
        root: i32,
    ) -> Result<()> {
        let Some((group, rank)) = self.rooted_group(root)? else { return Ok(()) };
        let participants = self.among(at, &group, rank);
        if rank == 0 {
            let (mut blocks, failed) = self.seal_blocks(self.pack_blocks(data, ranges));
            blocks.insert(0, Bytes::default());
            participants.scatter(blocks).await?;
            return failed.map_or(Ok(()), Err);
        }
        let mine = participants.scatter(Vec::new()).await?;
        self.unpack_whole(room, &mine)
    }

    pub(in super::super) async fn inter_allgather(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
    ) -> Result<()> {
        let (mine, failed) = self.seal(self.packed_whole(data));
        let all = self.participants(at).allgather(mine).await?;
        failed.map_or(Ok(()), Err)?;
        self.unpack_blocks(room, ranges, &all[self.remote_range()])
    }

    /// Where the remote ranks are among all.
    fn remote_range(&self) -> Range<usize> {
        let all = 0..self.group().size() as usize;
        self.shared.inter.as_ref().map_or(all, |inter| inter.remote_range())
    }

    /// Sends each rank that this one addresses its message, and returns theirs.
    pub(in super::super) async fn exchange_blocks(
        &self,
        at: Ongoing,
        blocks: Vec<Bytes>,
    ) -> Result<Vec<Bytes>> {
        let remote = self.remote_range();
        let mut all = Vec::new();
        all.resize_with(self.everyone().0.size() as usize, Bytes::default);
        all.splice(remote.clone(), blocks);
        let mut heard = self.participants(at).alltoall(all).await?;
        Ok(heard.drain(remote).collect())
    }

    /// The combination of the operands of this rank's group, at its rank 0; empty elsewhere.
    async fn own_total(
        &self,
        at: Ongoing,
        data: Side<'_>,
        op: Operator<'_>,
    ) -> Result<(Bytes, Option<Error>)> {
        let nowhere = Side { what: What::InPlace, ..data };
        let (combining, mine, failed) = self.operands(data, nowhere, op, Slicing::None);
        let combine = |held: Bytes, heard, _| self.combined(&combining, &held, heard);
        let own = self.among(at, self.group(), self.rank() as u32);
        Ok((own.fold(mine, combine).await?.unwrap_or_default(), failed))
    }

    pub(in super::super) async fn inter_reduce(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
        root: i32,
    ) -> Result<()> {
        let Some((group, rank)) = self.rooted_group(root)? else { return Ok(()) };
        let participants = self.among(at, &group, rank);
        if rank == 0 {
            let total = participants.pass(1, 0, Bytes::default()).await?;
            return self.unpack_whole(room, &total);
        }
        let (total, failed) = self.own_total(at, data, op).await?;
        participants.pass(1, 0, total).await?;
        failed.map_or(Ok(()), Err)
    }

    /// The combination of the other group's operands, at rank 0 of this one; empty elsewhere.
    async fn other_total(&self, at: Ongoing, total: Bytes) -> Result<Bytes> {
        if self.rank() != 0 {
            return Ok(Bytes::default());
        }
        let other = self.peers().process(0);
        self.participants(at).exchange(Some((other, total)), Some(other)).await
    }

    pub(in super::super) async fn inter_allreduce(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        op: Operator<'_>,
    ) -> Result<()> {
        let (total, failed) = self.own_total(at, data, op).await?;
        let total = self.other_total(at, total).await?;
        let own = self.among(at, self.group(), self.rank() as u32);
        let total = own.broadcast(total).await?;
        failed.map_or(Ok(()), Err)?;
        self.unpack_whole(room, &total)
    }

    pub(in super::super) async fn inter_reduce_scatter(
        &self,
        at: Ongoing,
        data: Side<'_>,
        room: Side<'_>,
        ranges: Option<&[Range<i64>]>,
        op: Operator<'_>,
    ) -> Result<()> {
        let (total, failed) = self.own_total(at, data, op).await?;
        let total = self.other_total(at, total).await?;
        let blocks = match self.rank() {
            0 => data
                .resolve(self)
                .and_then(|all| self.blocks_of_total(&total, &(all.datatype, all.count), ranges)),
            _ => Ok(Vec::new()),
        };
        let (blocks, failed_here) = match blocks {
            Ok(blocks) => (blocks, None),
            Err(error) => {
                let (bytes, failed) = self.seal(Err(error));
                ((0..self.size()).map(|_| bytes.to_vec().into()).collect(), failed)
            }
        };
        let own = self.among(at, self.group(), self.rank() as u32);
        let block = own.scatter(blocks).await?;
        failed.or(failed_here).map_or(Ok(()), Err)?;
        self.unpack_whole(room, &block)
    }
}
