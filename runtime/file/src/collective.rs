//! Collective accesses (MPI-5.0 sections 14.4.2 to 14.4.5), and the choice of their algorithm.
//!
//! Each rank says where its access lies and how it is scattered. From that, every rank chooses the
//! same [`Algorithm`]. The ranks carry it out, and agree on errors.

use std::ops::Range;
use std::sync::PoisonError;

use longshore::{Destination, Origin};

use crate::agreement::agree;
use crate::core::Split;
use crate::error::{Error, Result};
use crate::exchange::Domains;
use crate::file::File;
use crate::individual::Moved;
use crate::info::Choice;
use crate::staged::Stage;
use crate::status::Status;
use crate::transfer::{Access, At, Data};

/// Runs of the file that are on average at least as long are accessed by their own ranks: the
/// system takes longer for the bytes than for the calls. With runs of 4 KiB, both ways took about
/// as long for two ranks on tmpfs, and aggregators less with shorter ones.
const LONG_RUN: i64 = 4 << 10;

/// The most bytes of the file, for each byte that it wants, that a rank reads by itself.
const SIEVED: i64 = 2;

/// Aggregators go through all bytes from the first to the last one, piece by piece. With so many
/// bytes for each one that is accessed, most pieces would hold next to nothing.
const SPARSE: i64 = 1024;

/// The most runs of an access that are looked at for their average length.
const LOOKED_AT: u64 = 64;

/// The shape of a rank's access, as it tells the other ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Claim {
    /// The bytes of the file between the first and the last one of the access; empty for none.
    start: i64,
    end: i64,
    /// The bytes of the access.
    bytes: i64,
    /// The average length of its first runs.
    run: i64,
    /// Whether ranges of the file are ranges of its stream.
    ascends: bool,
    /// Whether the rank may read the gaps between its runs.
    sieves: bool,
    /// Whether the rank has an error instead.
    failed: bool,
    /// The hints of the rank. Those of the first rank count.
    cb_nodes: i64,
    cb_buffer_size: i64,
    buffering: i64,
}

impl Claim {
    const NUMBERS: usize = 8;

    fn of(access: &Access) -> Result<Claim> {
        let (layout, part, info) = (&access.view.layout, &access.part, &access.info);
        // In atomic mode accesses take place one after the other, each as a whole.
        let buffering = match access.writes {
            _ if access.core.atomicity().is_some() => Choice::Disable,
            true => info.cb_write,
            false => info.cb_read,
        };
        let hints = Claim {
            cb_nodes: info.cb_nodes.into(),
            cb_buffer_size: info.cb_buffer_size as i64,
            buffering: buffering as i64,
            sieves: !access.writes && info.ds_read != Choice::Disable,
            ascends: true,
            ..Claim::default()
        };
        if part.is_empty() {
            return Ok(hints);
        }
        let bounds = layout.bounds(part.clone())?;
        let (mut runs, mut bytes) = (0, 0);
        layout.runs(part.clone(), |_, len| {
            (runs, bytes) = (runs + 1, bytes + len);
            runs < LOOKED_AT
        })?;
        Ok(Claim {
            start: bounds.start as i64,
            end: bounds.end as i64,
            bytes: (part.end - part.start) as i64,
            run: (bytes / runs) as i64,
            ascends: layout.ascends(),
            ..hints
        })
    }

    fn numbers(self) -> [i64; Claim::NUMBERS] {
        let flags = [self.ascends, self.failed, self.sieves];
        let flags = flags.iter().rev().fold(0, |all, flag| all << 1 | i64::from(*flag));
        let Claim { start, end, bytes, run, cb_nodes, cb_buffer_size, buffering, .. } = self;
        [start, end, bytes, run, flags, cb_nodes, cb_buffer_size, buffering]
    }

    fn from(numbers: &[i64]) -> Claim {
        let &[start, end, bytes, run, flags, cb_nodes, cb_buffer_size, buffering] = numbers else {
            return Claim::default();
        };
        let [ascends, failed, sieves] = [1, 2, 4].map(|flag| flags & flag != 0);
        Claim {
            start,
            end,
            bytes,
            run,
            ascends,
            sieves,
            failed,
            cb_nodes,
            cb_buffer_size,
            buffering,
        }
    }

    /// Whether the rank wants aggregators.
    fn choice(&self) -> Choice {
        let all = [Choice::Automatic, Choice::Enable, Choice::Disable];
        let own = all.into_iter().find(|choice| *choice as i64 == self.buffering);
        own.unwrap_or_default()
    }
}

/// How the ranks carry out a collective access.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Algorithm {
    /// Each rank accesses the file by itself.
    Independent,
    /// Aggregators access the file for all, each a part of these bytes.
    TwoPhase(Range<u64>),
}

/// Chooses the algorithm. All ranks have the same claims and hints, and come to the same result.
fn choose(claims: &[Claim], choice: Choice) -> Algorithm {
    let mut used: Vec<&Claim> = claims.iter().filter(|claim| claim.bytes > 0).collect();
    let (Some(start), Some(end)) =
        (used.iter().map(|it| it.start).min(), used.iter().map(|it| it.end).max())
    else {
        return Algorithm::Independent;
    };
    let two_phase = Algorithm::TwoPhase(start as u64..end as u64);
    let bytes = used.iter().fold(0i64, |sum, claim| sum.saturating_add(claim.bytes));
    let is_sparse = (end - start) / SPARSE > bytes;
    if claims.len() == 1 || is_sparse || used.iter().any(|claim| !claim.ascends) {
        return Algorithm::Independent;
    }
    match choice {
        Choice::Disable => return Algorithm::Independent,
        Choice::Enable => return two_phase,
        Choice::Automatic => {}
    }
    used.sort_unstable_by_key(|claim| claim.start);
    let are_apart = used.windows(2).all(|pair| pair[0].end <= pair[1].start);
    let are_whole = used.iter().all(|claim| claim.bytes == claim.end - claim.start);
    let are_long = used.iter().all(|claim| claim.run >= LONG_RUN);
    let are_dense =
        used.iter().all(|claim| claim.sieves && claim.end - claim.start <= SIEVED * claim.bytes);
    match are_apart && are_whole || are_long || are_dense {
        true => Algorithm::Independent,
        false => two_phase,
    }
}

impl File {
    /// An access of all ranks.
    pub(crate) fn collective(
        &self,
        call: &'static str,
        at: At,
        data: Result<Data<'_>>,
    ) -> Result<Status> {
        let pointer = self.core.state().pointer;
        let prepared = data.and_then(|data| {
            let access = self.prepare(call, at, &data)?;
            let claim = Claim::of(&access)?;
            Ok((access, data, claim))
        });
        let mine = prepared.as_ref().map(|(_, _, claim)| *claim);
        let mine = mine.unwrap_or(Claim { failed: true, ..Claim::default() });
        let all = self.comm.allgather(&mine.numbers())?;
        let claims: Vec<Claim> = all.chunks(Claim::NUMBERS).map(Claim::from).collect();
        let prepared = match claims.iter().any(|claim| claim.failed) {
            true => {
                // Nothing is accessed, so a pointer that has moved on goes back.
                self.core.state().pointer = pointer;
                agree(&self.comm, prepared)
            }
            false => prepared,
        };
        let (access, mut data, _) = prepared?;
        let moved = self.carry_out(&access, &mut data, &claims);
        let moved = agree(&self.comm, moved.and_then(failing))?;
        access.status(&data, moved)
    }

    fn carry_out(&self, access: &Access, data: &mut Data<'_>, claims: &[Claim]) -> Result<Moved> {
        let first = claims.first().copied().unwrap_or_default();
        let Algorithm::TwoPhase(range) = choose(claims, first.choice()) else {
            return access.carry_out(data);
        };
        let aggregators = self.hosts.aggregators(&self.comm, first.cb_nodes as u32)?;
        let size = first.cb_buffer_size as u64;
        let mut place = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = place.take_if(|stage| !stage.fits(&aggregators, size)) {
            other.free()?;
        }
        let stage = match &mut *place {
            Some(stage) => stage,
            none => none.insert(Stage::new(&self.comm, &aggregators, size)?),
        };
        let domains = Domains::new(range, aggregators, size);
        match data {
            Data::Write(source) => stage.write(&self.comm, access, source, &domains),
            Data::Read(sink) => stage.read(&self.comm, access, sink, &domains),
        }
    }

    /// Reads elements at an offset of the view, by all ranks (MPI-5.0 section 14.4.2). Collective.
    /// [`File`] has an example.
    ///
    /// # Errors
    /// Those of [`read_at`](File::read_at), at all ranks if one has an error.
    #[doc(alias = "MPI_File_read_at_all")]
    pub fn read_at_all<'a>(&self, offset: i64, room: impl Into<Destination<'a>>) -> Result<Status> {
        self.collective("read_at_all", At::Offset(offset), self.sink(room.into()))
    }

    /// Writes elements at an offset of the view, by all ranks (MPI-5.0 section 14.4.2). Collective.
    /// [`File`] has an example.
    ///
    /// # Errors
    /// Those of [`write_at`](File::write_at), at all ranks if one has an error. Data of
    /// other ranks are written all the same.
    #[doc(alias = "MPI_File_write_at_all")]
    pub fn write_at_all<'a>(&self, offset: i64, data: impl Into<Origin<'a>>) -> Result<Status> {
        self.collective("write_at_all", At::Offset(offset), self.source(data.into()))
    }

    /// Reads elements at the individual pointer, by all ranks (MPI-5.0 section 14.4.3). Collective.
    ///
    /// # Errors
    /// Those of [`read_at_all`](File::read_at_all).
    #[doc(alias = "MPI_File_read_all")]
    pub fn read_all<'a>(&self, room: impl Into<Destination<'a>>) -> Result<Status> {
        self.collective("read_all", At::Pointer, self.sink(room.into()))
    }

    /// Writes elements at the individual pointer, by all ranks (MPI-5.0 section 14.4.3).
    /// Collective.
    ///
    /// # Errors
    /// Those of [`write_at_all`](File::write_at_all).
    #[doc(alias = "MPI_File_write_all")]
    pub fn write_all<'a>(&self, data: impl Into<Origin<'a>>) -> Result<Status> {
        self.collective("write_all", At::Pointer, self.source(data.into()))
    }

    /// Begins a split collective read at an offset of the view (MPI-5.0 section 14.4.5).
    /// Collective. The elements are there when it returns.
    ///
    /// # Errors
    /// IO if a split collective call of the file has begun and hasn't ended. Others are returned by
    /// the end of the call.
    #[doc(alias = "MPI_File_read_at_all_begin")]
    pub fn read_at_all_begin<'a>(
        &self,
        offset: i64,
        room: impl Into<Destination<'a>>,
    ) -> Result<()> {
        self.begin("read_at_all", || self.read_at_all(offset, room))
    }

    /// Begins a split collective write at an offset of the view (MPI-5.0 section 14.4.5).
    /// Collective. The elements may be changed when it returns.
    ///
    /// ```
    /// # use longshore_file::{Amode, File, Info};
    /// # let rank = longshore::init()?;
    /// # let path = std::env::temp_dir().join(format!("longshore-{}-split", std::process::id()));
    /// # let amode = Amode::CREATE | Amode::RDWR | Amode::DELETE_ON_CLOSE;
    /// let file = File::open(rank.alone(), path.to_str().unwrap(), amode, &Info::default())?;
    /// file.write_at_all_begin(0, &[1u8, 2])?;
    /// assert!(file.read_all_begin(&mut [0u8]).is_err());
    /// assert_eq!(file.write_at_all_end()?.bytes, 2);
    /// # file.close()?;
    /// # rank.finalize()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`read_at_all_begin`](File::read_at_all_begin).
    #[doc(alias = "MPI_File_write_at_all_begin")]
    pub fn write_at_all_begin<'a>(&self, offset: i64, data: impl Into<Origin<'a>>) -> Result<()> {
        self.begin("write_at_all", || self.write_at_all(offset, data))
    }

    /// Begins a split collective read at the individual pointer (MPI-5.0 section 14.4.5).
    /// Collective.
    ///
    /// # Errors
    /// Those of [`read_at_all_begin`](File::read_at_all_begin).
    #[doc(alias = "MPI_File_read_all_begin")]
    pub fn read_all_begin<'a>(&self, room: impl Into<Destination<'a>>) -> Result<()> {
        self.begin("read_all", || self.read_all(room))
    }

    /// Begins a split collective write at the individual pointer (MPI-5.0 section 14.4.5).
    /// Collective.
    ///
    /// # Errors
    /// Those of [`read_at_all_begin`](File::read_at_all_begin).
    #[doc(alias = "MPI_File_write_all_begin")]
    pub fn write_all_begin<'a>(&self, data: impl Into<Origin<'a>>) -> Result<()> {
        self.begin("write_all", || self.write_all(data))
    }

    /// Begins a split collective read in the order of ranks (MPI-5.0 section 14.4.5). Collective.
    ///
    /// # Errors
    /// Those of [`read_at_all_begin`](File::read_at_all_begin).
    #[doc(alias = "MPI_File_read_ordered_begin")]
    pub fn read_ordered_begin<'a>(&self, room: impl Into<Destination<'a>>) -> Result<()> {
        self.begin("read_ordered", || self.read_ordered(room))
    }

    /// Begins a split collective write in the order of ranks (MPI-5.0 section 14.4.5). Collective.
    ///
    /// # Errors
    /// Those of [`read_at_all_begin`](File::read_at_all_begin).
    #[doc(alias = "MPI_File_write_ordered_begin")]
    pub fn write_ordered_begin<'a>(&self, data: impl Into<Origin<'a>>) -> Result<()> {
        self.begin("write_ordered", || self.write_ordered(data))
    }

    /// Carries out a split collective call. Its end returns the outcome.
    pub(crate) fn begin(
        &self,
        call: &'static str,
        access: impl FnOnce() -> Result<Status>,
    ) -> Result<()> {
        if let Some(split) = &self.core.state().split {
            let problem = format!(
                "{call}_begin follows {0}_begin, whose end hasn't been called: a file has one split \
                 collective call at a time",
                split.call
            );
            return Err(Error::argument(longshore::Class::Io, problem));
        }
        let outcome = access();
        self.core.state().split = Some(Split { call, outcome });
        Ok(())
    }

    /// The outcome of the split collective call that has begun; `None` if none has, or if it
    /// failed, which its end returns. An interface whose callers convert values looks at it.
    pub fn begun(&self) -> Option<Status> {
        let state = self.core.state();
        state.split.as_ref().and_then(|split| split.outcome.as_ref().ok().copied())
    }

    fn end(&self, call: &'static str) -> Result<Status> {
        let mut state = self.core.state();
        let begun = state.split.as_ref().map(|split| split.call);
        match state.split.take_if(|split| split.call == call) {
            Some(split) => split.outcome,
            None => {
                let problem = match begun {
                    Some(begun) => format!("{call}_end doesn't end {begun}_begin"),
                    None => format!("{call}_end has no {call}_begin before it"),
                };
                Err(Error::argument(longshore::Class::Io, problem))
            }
        }
    }
}

/// The ends of split collective calls.
macro_rules! ends {
    ($($name:ident, $alias:literal, $call:literal, $begin:literal;)*) => {
        impl File {
            $(
                #[doc = concat!("Ends ", $begin, " (MPI-5.0 section 14.4.5). Collective.")]
                ///
                /// # Errors
                /// IO if no such call has begun. Otherwise those of the access.
                #[doc(alias = $alias)]
                pub fn $name(&self) -> Result<Status> {
                    self.end($call)
                }
            )*
        }
    };
}

ends! {
    read_at_all_end, "MPI_File_read_at_all_end", "read_at_all",
        "[`read_at_all_begin`](File::read_at_all_begin)";
    write_at_all_end, "MPI_File_write_at_all_end", "write_at_all",
        "[`write_at_all_begin`](File::write_at_all_begin)";
    read_all_end, "MPI_File_read_all_end", "read_all", "[`read_all_begin`](File::read_all_begin)";
    write_all_end, "MPI_File_write_all_end", "write_all",
        "[`write_all_begin`](File::write_all_begin)";
    read_ordered_end, "MPI_File_read_ordered_end", "read_ordered",
        "[`read_ordered_begin`](File::read_ordered_begin)";
    write_ordered_end, "MPI_File_write_ordered_end", "write_ordered",
        "[`write_ordered_begin`](File::write_ordered_begin)";
}

/// The bytes that moved, or the error that ended the access.
fn failing(moved: Moved) -> Result<u64> {
    moved.error.map_or(Ok(moved.bytes), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(start: i64, end: i64, bytes: i64, run: i64) -> Claim {
        Claim { start, end, bytes, run, ascends: true, ..Claim::default() }
    }

    #[test]
    fn scattered_accesses_that_interleave_go_by_aggregators() {
        let both = [claim(0, 900, 500, 100), claim(100, 1000, 500, 100)];
        assert_eq!(choose(&both, Choice::Automatic), Algorithm::TwoPhase(0..1000));
        assert_eq!(choose(&both, Choice::Disable), Algorithm::Independent);
        assert_eq!(choose(&both[..1], Choice::Enable), Algorithm::Independent);
        let apart = [claim(0, 500, 500, 500), claim(500, 600, 100, 100), Claim::default()];
        assert_eq!(choose(&apart, Choice::Automatic), Algorithm::Independent);
        assert_eq!(choose(&apart, Choice::Enable), Algorithm::TwoPhase(0..600));
        let long =
            [claim(0, 9 << 20, 5 << 20, LONG_RUN), claim(1 << 20, 9 << 20, 4 << 20, 1 << 20)];
        assert_eq!(choose(&long, Choice::Automatic), Algorithm::Independent);
        // Reads that may include the gaps, if these are no more than the data.
        let sieved = [both[0], both[1]].map(|it| Claim { sieves: true, ..it });
        assert_eq!(choose(&sieved, Choice::Automatic), Algorithm::Independent);
        let sparse = sieved.map(|it| Claim { bytes: it.bytes / 2, ..it });
        assert_eq!(choose(&sparse, Choice::Automatic), Algorithm::TwoPhase(0..1000));
        // Records of 8 bytes at a distance of 1 TiB: aggregators would look through all between.
        let rare = [claim(0, 8 << 40, 64, 8), claim(8, (8 << 40) + 8, 64, 8)];
        assert_eq!(choose(&rare, Choice::Enable), Algorithm::Independent);
        let tangled = [both[0], Claim { ascends: false, ..both[1] }];
        assert_eq!(choose(&tangled, Choice::Enable), Algorithm::Independent);
        assert_eq!(choose(&[Claim::default(); 2], Choice::Enable), Algorithm::Independent);
    }

    #[test]
    fn claims_survive_their_encoding() {
        for claim in [
            claim(1, 9, 4, 2),
            Claim { failed: true, ..Claim::default() },
            Claim { sieves: true, cb_nodes: 3, ..claim(0, 0, 0, 0) },
        ] {
            assert_eq!(Claim::from(&claim.numbers()), claim);
        }
    }
}
