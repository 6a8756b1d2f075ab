//! The constructors of subarrays and of distributed arrays.

use super::check::Call;
use super::distribution::{DISTRIBUTE_DFLT_DARG, Distribution, Order, Share};
use super::{Datatype, List, Node};
use crate::error::{Class, Result};

impl Node {
    /// The indices that the process of a distributed array owns: one [`Share`] for each dimension,
    /// in order. `None` for other constructors.
    pub fn shares(&self) -> Option<Vec<Share>> {
        let Node::Darray { size, rank, gsizes, distribs, dargs, psizes, .. } = self else {
            return None;
        };
        let (mut processes, mut rank) = (*size, *rank);
        let dimensions = gsizes.iter().zip(distribs).zip(dargs).zip(psizes);
        let shares = dimensions.map(|(((&gsize, &distribution), &darg), &psize)| {
            // The process grid is in row-major order, independent of the array's storage order.
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
    // A saturated product lies beyond `size`, so it adds no index.
    Share {
        first: coordinate.saturating_mul(block).min(gsize),
        block,
        period: psize.saturating_mul(block),
        size: gsize,
    }
}

impl Datatype {
    /// A rectangular part of an array (`MPI_Type_create_subarray`). Its extent is the extent of the
    /// whole array.
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
    /// DIMS for no dimension; ARG for lists of different lengths, or for a part that is empty or
    /// reaches outside of the array.
    #[doc(alias = "MPI_Type_create_subarray")]
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
        let copies = subsizes.iter().try_fold(1u64, |n, &size| n.checked_mul(size as u64));
        Datatype::of_one(call.0, child, copies, || Node::Subarray {
            sizes: List::from_slice(sizes),
            subsizes: List::from_slice(subsizes),
            starts: List::from_slice(starts),
            order,
            child: child.clone(),
        })
    }

    /// The part of a distributed array that one process owns (`MPI_Type_create_darray`). Its extent
    /// is the extent of the whole array.
    ///
    /// The process is `rank` of `size` in a grid of `psizes` processes. A distribution argument of
    /// `None` is `MPI_DISTRIBUTE_DFLT_DARG`. A dimension that isn't distributed ignores its
    /// argument.
    ///
    /// # Errors
    /// DIMS for no dimension; RANK for a rank outside the grid; ARG for lists of different lengths,
    /// a `size` that isn't the product of `psizes`, sizes or arguments below 1, blocks too small
    /// for the array, or several processes in a dimension that isn't distributed.
    #[allow(clippy::too_many_arguments)] // the arguments of MPI's call
    #[doc(alias = "MPI_Type_create_darray")]
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
                // An explicit `MPI_DISTRIBUTE_DFLT_DARG` means the default.
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
