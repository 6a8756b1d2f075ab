//! Subarrays, and the shares of distributed arrays.

use super::check::Call;
use super::{Datatype, Node};
use crate::contents::DISTRIBUTE_DFLT_DARG;
use crate::error::{Class, Result};

/// How an array's elements follow each other in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last dimension is the fastest.
    C,
    /// The first dimension is the fastest.
    Fortran,
}

/// How a dimension of an array is dealt out to processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// One run of the argument's length to each; by default as equal as can be.
    Block,
    /// Runs of the argument's length in turn; by default of one.
    Cyclic,
    /// Not at all: the grid has one process here.
    None,
}

/// The indices of one dimension that one process owns: runs of `block` from `first` on, `period`
/// apart, below `size`. `first` equals `size` where it owns none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The first index.
    pub first: i64,
    /// The length of each run but the last, which `size` may cut.
    pub block: i64,
    /// From the start of a run to that of the next.
    pub period: i64,
    /// The dimension's size.
    pub size: i64,
}

impl Share {
    /// The number of runs.
    pub fn runs(&self) -> i64 {
        let room = self.size - self.first;
        room / self.period + i64::from(room % self.period != 0)
    }

    /// The length of the last run; 0 where there is none.
    pub fn last_run(&self) -> i64 {
        match self.runs() {
            0 => 0,
            runs => self.block.min(self.size - self.first - (runs - 1) * self.period),
        }
    }

    /// The number of indices.
    pub fn count(&self) -> i64 {
        match self.runs() {
            0 => 0,
            runs => (runs - 1) * self.block + self.last_run(),
        }
    }

    /// The last index; none where the process owns none.
    pub fn last(&self) -> Option<i64> {
        match self.runs() {
            0 => None,
            runs => Some(self.first + (runs - 1) * self.period + self.last_run() - 1),
        }
    }
}

impl Node {
    /// What the process of a darray owns in each dimension, in the order of the dimensions; none
    /// for other constructors.
    pub fn shares(&self) -> Option<Vec<Share>> {
        let Node::Darray { size, rank, gsizes, distribs, dargs, psizes, .. } = self else {
            return None;
        };
        let (mut processes, mut rank) = (*size, *rank);
        let dimensions = gsizes.iter().zip(distribs).zip(dargs).zip(psizes);
        let shares = dimensions.map(|(((&gsize, &distribution), &darg), &psize)| {
            // The grid is in row-major order, whatever the order of the array.
            processes /= psize;
            let coordinate = rank / processes;
            rank %= processes;
            share(gsize, distribution, darg, psize, coordinate)
        });
        Some(shares.collect())
    }
}

fn share(
    gsize: i64,
    distribution: Distribution,
    darg: Option<i64>,
    psize: i64,
    coordinate: i64,
) -> Share {
    let block = match distribution {
        Distribution::Block => darg.unwrap_or((gsize - 1) / psize + 1),
        Distribution::Cyclic => darg.unwrap_or(1),
        Distribution::None => gsize,
    };
    // What saturates here lies past `size`, where nothing is.
    Share {
        first: coordinate.saturating_mul(block).min(gsize),
        block,
        period: psize.saturating_mul(block),
        size: gsize,
    }
}

impl Datatype {
    /// A rectangular part of an array: its extent is that of the whole array
    /// (`MPI_Type_create_subarray`).
    ///
    /// ```
    /// use shipable::{Architecture, Datatype, Order};
    /// let inner = Datatype::subarray(&[4, 6], &[2, 3], &[1, 1], Order::C, &Datatype::float())?;
    /// let bounds = inner.bounds(&Architecture::X86_64)?;
    /// assert_eq!((bounds.size, bounds.extent(), bounds.true_lb), (24, 96, 28));
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// DIMS for no dimension, ARG for lists of different length, or a part that is empty or not
    /// inside the array.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        child: &Datatype,
    ) -> Result<Datatype> {
        let call = Call("subarray");
        call.lengths([
            ("sizes", sizes.len()),
            ("subsizes", subsizes.len()),
            ("starts", starts.len()),
        ])?;
        call.some_dimensions(sizes.len())?;
        for (at, ((&size, &subsize), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate()
        {
            call.positive("sizes", at, size)?;
            if !(1..=size).contains(&subsize) {
                let problem = format!("subsizes[{at}] is {subsize}: it lies between 1 and {size}");
                return Err(call.refuse(Class::Arg, problem));
            }
            if !(0..=size - subsize).contains(&start) {
                let most = size - subsize;
                let problem = format!("starts[{at}] is {start}: it lies between 0 and {most}");
                return Err(call.refuse(Class::Arg, problem));
            }
        }
        Datatype::new(
            call.0,
            Node::Subarray {
                sizes: sizes.into(),
                subsizes: subsizes.into(),
                starts: starts.into(),
                order,
                child: child.clone(),
            },
        )
    }

    /// What the process `rank` of `size` owns of an array that is dealt out over a grid of
    /// `psizes` processes; its extent is that of the whole array (`MPI_Type_create_darray`).
    /// A distribution argument of `None` is `MPI_DISTRIBUTE_DFLT_DARG`; that of a dimension that is not distributed is
    /// ignored, whatever it is.
    ///
    /// # Errors
    /// DIMS for no dimension; RANK for a rank outside the grid; ARG for lists of different length,
    /// a grid of another number of processes, sizes or arguments below 1, blocks too small for
    /// the array, or a dimension that is not distributed over several processes.
    #[allow(clippy::too_many_arguments)] // as MPI has it
    pub fn darray(
        size: i64,
        rank: i64,
        gsizes: &[i64],
        distribs: &[Distribution],
        dargs: &[Option<i64>],
        psizes: &[i64],
        order: Order,
        child: &Datatype,
    ) -> Result<Datatype> {
        let call = Call("darray");
        call.lengths([
            ("gsizes", gsizes.len()),
            ("distribs", distribs.len()),
            ("dargs", dargs.len()),
            ("psizes", psizes.len()),
        ])?;
        call.some_dimensions(gsizes.len())?;
        for (at, (&gsize, &psize)) in gsizes.iter().zip(psizes).enumerate() {
            call.positive("gsizes", at, gsize)?;
            call.positive("psizes", at, psize)?;
            call.distribution(at, gsize, distribs[at], dargs[at], psize)?;
        }
        let grid = psizes.iter().try_fold(1i64, |grid, &n| grid.checked_mul(n));
        if grid != Some(size) {
            let problem = format!("size is {size}, but psizes {psizes:?} make another grid");
            return Err(call.refuse(Class::Arg, problem));
        }
        if !(0..size).contains(&rank) {
            let problem = format!("rank is {rank}: the grid has the ranks 0 to {}", size - 1);
            return Err(call.refuse(Class::Rank, problem));
        }
        Datatype::new(
            call.0,
            Node::Darray {
                size,
                rank,
                gsizes: gsizes.into(),
                distribs: distribs.into(),
                // The default's number, where anything is taken, is the default.
                dargs: dargs
                    .iter()
                    .map(|darg| darg.filter(|&darg| darg != DISTRIBUTE_DFLT_DARG.into()))
                    .collect(),
                psizes: psizes.into(),
                order,
                child: child.clone(),
            },
        )
    }
}

impl Call {
    fn some_dimensions(self, dimensions: usize) -> Result<()> {
        match dimensions {
            0 => Err(self.refuse(Class::Dims, "no dimensions: an array has at least one".into())),
            _ => Ok(()),
        }
    }

    fn positive(self, name: &str, at: usize, n: i64) -> Result<()> {
        match n {
            1.. => Ok(()),
            _ => {
                Err(self.refuse(Class::Arg, format!("{name}[{at}] is {n}: it has to be 1 or more")))
            }
        }
    }

    fn distribution(
        self,
        at: usize,
        gsize: i64,
        distribution: Distribution,
        darg: Option<i64>,
        psize: i64,
    ) -> Result<()> {
        if let Some(darg) = darg.filter(|_| distribution != Distribution::None) {
            self.positive("dargs", at, darg)?;
        }
        let problem = match (distribution, darg) {
            (Distribution::None, _) if psize != 1 => format!(
                "psizes[{at}] is {psize}, but distribs[{at}] is none: the grid has one process there"
            ),
            (Distribution::Block, Some(darg)) if darg.saturating_mul(psize) < gsize => format!(
                "{psize} blocks of dargs[{at}] {darg} don't reach gsizes[{at}] {gsize}: make the \
                 blocks longer, or the distribution cyclic"
            ),
            _ => return Ok(()),
        };
        Err(self.refuse(Class::Arg, problem))
    }
}
