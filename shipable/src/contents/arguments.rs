//! The table of combiners and arguments, written by [`Writer`] and read by [`Reader`].
//!
//! A row lists the arguments in the order of the constructor, each with its kind: integer, count,
//! address or datatype. The kind and the version of the calls decide the array: a count is an
//! integer or a large count, an address is an address or a large count.

use super::{
    Contents, Counts, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG, DISTRIBUTE_NONE,
    Envelope, ORDER_C, ORDER_FORTRAN, UNDEFINED,
};
use crate::basic::Leaf;
use crate::datatype::{Combiner, Datatype, Distribution, Node, Order};
use crate::error::{Class, Error, Result};

pub(super) struct Writer {
    counts: Counts,
    /// Whether to keep the arguments, or only to count them.
    keep: bool,
    pub envelope: Envelope,
    pub contents: Contents,
}

impl Writer {
    pub fn counting(combiner: Combiner, counts: Counts) -> Writer {
        Writer {
            counts,
            keep: false,
            envelope: Envelope {
                combiner,
                integers: 0,
                addresses: 0,
                large_counts: 0,
                datatypes: 0,
            },
            contents: Contents {
                combiner,
                integers: Vec::new(),
                addresses: Vec::new(),
                large_counts: Vec::new(),
                datatypes: Vec::new(),
            },
        }
    }

    pub fn keeping(combiner: Combiner, counts: Counts) -> Writer {
        Writer { keep: true, ..Writer::counting(combiner, counts) }
    }

    pub fn arguments(&mut self, datatype: &Datatype) -> Result<()> {
        match datatype.node() {
            Node::Leaf(leaf) => self.kind(*leaf)?,
            Node::Dup { .. } => {}
            Node::Contiguous { count, .. } => self.count("count", *count)?,
            Node::Vector { count, blocklength, stride, .. } => {
                self.count("count", *count)?;
                self.count("blocklength", *blocklength)?;
                self.count("stride", *stride)?;
            }
            Node::Hvector { count, blocklength, stride, .. } => {
                self.count("count", *count)?;
                self.count("blocklength", *blocklength)?;
                self.address(*stride);
            }
            Node::Indexed { blocklengths, displacements, .. } => {
                self.length(blocklengths)?;
                self.each_count("blocklengths", blocklengths)?;
                self.each_count("displacements", displacements)?;
            }
            Node::Hindexed { blocklengths, displacements, .. }
            | Node::Struct { blocklengths, displacements, .. } => {
                self.length(blocklengths)?;
                self.each_count("blocklengths", blocklengths)?;
                self.each_address(displacements);
            }
            Node::IndexedBlock { blocklength, displacements, .. } => {
                self.length(displacements)?;
                self.count("blocklength", *blocklength)?;
                self.each_count("displacements", displacements)?;
            }
            Node::HindexedBlock { blocklength, displacements, .. } => {
                self.length(displacements)?;
                self.count("blocklength", *blocklength)?;
                self.each_address(displacements);
            }
            Node::SimpleStruct { blocklengths, .. } => {
                self.length(blocklengths)?;
                self.each_count("blocklengths", blocklengths)?;
            }
            Node::Subarray { sizes, subsizes, starts, order, .. } => {
                self.integer("ndims", sizes.len() as i64)?;
                self.each_count("sizes", sizes)?;
                self.each_count("subsizes", subsizes)?;
                self.each_count("starts", starts)?;
                self.integer("order", order_to_int(*order))?;
            }
            Node::Darray { size, rank, gsizes, distribs, dargs, psizes, order, .. } => {
                self.integer("size", *size)?;
                self.integer("rank", *rank)?;
                self.integer("ndims", gsizes.len() as i64)?;
                self.each_count("gsizes", gsizes)?;
                for distribution in distribs {
                    self.integer("distribs", distribution_to_int(*distribution))?;
                }
                for darg in dargs {
                    self.integer("dargs", darg.unwrap_or(DISTRIBUTE_DFLT_DARG.into()))?;
                }
                for psize in psizes {
                    self.integer("psizes", *psize)?;
                }
                self.integer("order", order_to_int(*order))?;
            }
            Node::Resized { lb, extent, .. } => {
                self.address(*lb);
                self.address(*extent);
            }
            Node::ValueIndex { value, index } => {
                self.datatype(&(*value).into());
                self.datatype(&(*index).into());
            }
        }
        for child in datatype.node().children() {
            self.datatype(child);
        }
        Ok(())
    }

    fn kind(&mut self, leaf: Leaf) -> Result<()> {
        let or_undefined = |n: Option<u32>| n.map_or(UNDEFINED.into(), i64::from);
        match leaf {
            Leaf::Basic(_) => Ok(()),
            Leaf::F90Real { precision, range } | Leaf::F90Complex { precision, range } => {
                self.integer("precision", or_undefined(precision))?;
                self.integer("range", or_undefined(range))
            }
            Leaf::F90Integer { range } => self.integer("range", range.into()),
        }
    }

    fn integer(&mut self, name: &str, number: i64) -> Result<()> {
        let int = i32::try_from(number).map_err(|_| {
            let advice = match self.counts {
                Counts::Int => "ask for the version with large counts",
                Counts::Large => "no version of MPI's calls returns it",
            };
            Error::Argument {
                call: "contents",
                class: Class::Type,
                problem: format!("{name} is {number}, which doesn't fit an int: {advice}"),
            }
        })?;
        self.envelope.integers += 1;
        if self.keep {
            self.contents.integers.push(int);
        }
        Ok(())
    }

    fn count(&mut self, name: &str, number: i64) -> Result<()> {
        match self.counts {
            Counts::Int => self.integer(name, number)?,
            Counts::Large => self.large_count(number),
        }
        Ok(())
    }

    fn each_count(&mut self, name: &str, numbers: &[i64]) -> Result<()> {
        numbers.iter().try_for_each(|&number| self.count(name, number))
    }

    /// Writes the length of a list as a count. It precedes the list.
    fn length(&mut self, list: &[i64]) -> Result<()> {
        self.count("count", list.len() as i64)
    }

    fn address(&mut self, number: i64) {
        match self.counts {
            Counts::Int => {
                self.envelope.addresses += 1;
                if self.keep {
                    self.contents.addresses.push(number);
                }
            }
            Counts::Large => self.large_count(number),
        }
    }

    fn each_address(&mut self, numbers: &[i64]) {
        numbers.iter().for_each(|&number| self.address(number));
    }

    fn large_count(&mut self, number: i64) {
        self.envelope.large_counts += 1;
        if self.keep {
            self.contents.large_counts.push(number);
        }
    }

    fn datatype(&mut self, datatype: &Datatype) {
        self.envelope.datatypes += 1;
        if self.keep {
            self.contents.datatypes.push(datatype.clone());
        }
    }
}

type MakeStruct = fn(&[i64], &[i64], &[Datatype]) -> Result<Datatype>;

pub(super) struct Reader<'a> {
    combiner: Combiner,
    /// Whether counts and addresses are large counts.
    large: bool,
    integers: &'a [i32],
    addresses: &'a [i64],
    large_counts: &'a [i64],
    datatypes: &'a [Datatype],
}

impl<'a> Reader<'a> {
    pub fn new(contents: &'a Contents) -> Reader<'a> {
        Reader {
            combiner: contents.combiner,
            large: !contents.large_counts.is_empty(),
            integers: &contents.integers,
            addresses: &contents.addresses,
            large_counts: &contents.large_counts,
            datatypes: &contents.datatypes,
        }
    }

    pub fn rebuild(mut self) -> Result<Datatype> {
        let made = match self.combiner {
            Combiner::Named => Err(Error::Argument {
                call: "rebuild",
                class: Class::Type,
                problem: "a named type has no constructor".to_string(),
            }),
            Combiner::Dup => Datatype::dup(self.datatype()?),
            Combiner::Contiguous => Datatype::contiguous(self.count()?, self.datatype()?),
            Combiner::Vector => {
                let [count, blocklength, stride] = [self.count()?, self.count()?, self.count()?];
                Datatype::vector(count, blocklength, stride, self.datatype()?)
            }
            Combiner::Hvector => self.hvector(Datatype::hvector),
            Combiner::HvectorInteger => self.hvector(Datatype::hvector_integer),
            Combiner::Indexed => {
                let length = self.count()?;
                let (lengths, displacements) = (self.counts(length)?, self.counts(length)?);
                Datatype::indexed(&lengths, &displacements, self.datatype()?)
            }
            Combiner::Hindexed => self.hindexed(Datatype::hindexed),
            Combiner::HindexedInteger => self.hindexed(Datatype::hindexed_integer),
            Combiner::IndexedBlock => {
                let (length, blocklength) = (self.count()?, self.count()?);
                let displacements = self.counts(length)?;
                Datatype::indexed_block(blocklength, &displacements, self.datatype()?)
            }
            Combiner::HindexedBlock => {
                let (length, blocklength) = (self.count()?, self.count()?);
                let displacements = self.addresses(length)?;
                Datatype::hindexed_block(blocklength, &displacements, self.datatype()?)
            }
            Combiner::Struct => self.structure(Datatype::struct_),
            Combiner::StructInteger => self.structure(Datatype::struct_integer),
            Combiner::SimpleStruct => {
                let length = self.count()?;
                let lengths = self.counts(length)?;
                Datatype::simple_struct(&lengths, self.datatypes(length)?)
            }
            Combiner::Subarray => {
                let ndims = self.integer()?.into();
                let (sizes, subsizes) = (self.counts(ndims)?, self.counts(ndims)?);
                let (starts, order) = (self.counts(ndims)?, order_from_int(self.integer()?)?);
                Datatype::subarray(&sizes, &subsizes, &starts, order, self.datatype()?)
            }
            Combiner::Darray => self.darray(),
            Combiner::F90Real => Datatype::f90_real(self.kind()?, self.kind()?),
            Combiner::F90Complex => Datatype::f90_complex(self.kind()?, self.kind()?),
            Combiner::F90Integer => match self.kind()? {
                Some(range) => Datatype::f90_integer(range),
                None => Err(wrong("range is undefined".to_string())),
            },
            Combiner::Resized => {
                Datatype::resized(self.address()?, self.address()?, self.datatype()?)
            }
            Combiner::ValueIndex => Datatype::value_index(self.datatype()?, self.datatype()?),
        }?;
        let left = [
            ("integers", self.integers.len()),
            ("addresses", self.addresses.len()),
            ("large counts", self.large_counts.len()),
            ("datatypes", self.datatypes.len()),
        ];
        match left.iter().find(|(_, left)| *left > 0) {
            None => Ok(made),
            Some((kind, left)) => {
                Err(wrong(format!("{left} {kind} more than {} has", self.combiner.mpi_name())))
            }
        }
    }

    fn hvector(
        &mut self,
        make: fn(i64, i64, i64, &Datatype) -> Result<Datatype>,
    ) -> Result<Datatype> {
        let (count, blocklength, stride) = (self.count()?, self.count()?, self.address()?);
        make(count, blocklength, stride, self.datatype()?)
    }

    fn hindexed(
        &mut self,
        make: fn(&[i64], &[i64], &Datatype) -> Result<Datatype>,
    ) -> Result<Datatype> {
        let length = self.count()?;
        let (lengths, displacements) = (self.counts(length)?, self.addresses(length)?);
        make(&lengths, &displacements, self.datatype()?)
    }

    fn structure(&mut self, make: MakeStruct) -> Result<Datatype> {
        let length = self.count()?;
        let (lengths, displacements) = (self.counts(length)?, self.addresses(length)?);
        make(&lengths, &displacements, self.datatypes(length)?)
    }

    fn darray(&mut self) -> Result<Datatype> {
        let (size, rank, ndims) = (self.integer()?, self.integer()?, self.integer()?.into());
        let gsizes = self.counts(ndims)?;
        let mut each = || self.take_integers(ndims);
        let (distribs, dargs, psizes) = (each()?, each()?, each()?);
        let distribs: Vec<_> =
            distribs.iter().map(|&int| distribution_from_int(int)).collect::<Result<_>>()?;
        let dargs: Vec<_> = dargs
            .iter()
            .map(|&darg| (darg != DISTRIBUTE_DFLT_DARG).then_some(darg.into()))
            .collect();
        let psizes: Vec<_> = psizes.iter().map(|&psize| psize.into()).collect();
        let (order, child) = (order_from_int(self.integer()?)?, self.datatype()?);
        let (size, rank) = (size.into(), rank.into());
        Datatype::darray(size, rank, &gsizes, &distribs, &dargs, &psizes, order, child)
    }

    fn kind(&mut self) -> Result<Option<u32>> {
        match self.integer()? {
            UNDEFINED => Ok(None),
            number => match u32::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(wrong(format!("a precision or range of {number}"))),
            },
        }
    }

    fn integer(&mut self) -> Result<i32> {
        Ok(self.take_integers(1)?[0])
    }

    fn count(&mut self) -> Result<i64> {
        Ok(self.counts(1)?[0])
    }

    fn counts(&mut self, length: i64) -> Result<Vec<i64>> {
        match self.large {
            true => Ok(take(&mut self.large_counts, length, "large counts")?.to_vec()),
            false => Ok(self.take_integers(length)?.iter().map(|&int| int.into()).collect()),
        }
    }

    fn address(&mut self) -> Result<i64> {
        Ok(self.addresses(1)?[0])
    }

    fn addresses(&mut self, length: i64) -> Result<Vec<i64>> {
        match self.large {
            true => Ok(take(&mut self.large_counts, length, "large counts")?.to_vec()),
            false => Ok(take(&mut self.addresses, length, "addresses")?.to_vec()),
        }
    }

    fn datatype(&mut self) -> Result<&'a Datatype> {
        Ok(&self.datatypes(1)?[0])
    }

    fn datatypes(&mut self, length: i64) -> Result<&'a [Datatype]> {
        take(&mut self.datatypes, length, "datatypes")
    }

    fn take_integers(&mut self, length: i64) -> Result<&'a [i32]> {
        take(&mut self.integers, length, "integers")
    }
}

/// Splits the first `length` items from a list.
fn take<'a, T>(list: &mut &'a [T], length: i64, kind: &str) -> Result<&'a [T]> {
    let here = list.len();
    match usize::try_from(length).ok().and_then(|length| list.split_at_checked(length)) {
        Some((first, rest)) => {
            *list = rest;
            Ok(first)
        }
        None => Err(wrong(format!("{length} {kind} are needed, but {here} are left"))),
    }
}

fn wrong(problem: String) -> Error {
    Error::Argument { call: "rebuild", class: Class::Arg, problem }
}

fn order_to_int(order: Order) -> i64 {
    match order {
        Order::C => ORDER_C.into(),
        Order::Fortran => ORDER_FORTRAN.into(),
    }
}

fn order_from_int(int: i32) -> Result<Order> {
    match int {
        ORDER_C => Ok(Order::C),
        ORDER_FORTRAN => Ok(Order::Fortran),
        _ => Err(wrong(format!("order {int}: it is {ORDER_C} for C, {ORDER_FORTRAN} for Fortran"))),
    }
}

fn distribution_to_int(distribution: Distribution) -> i64 {
    match distribution {
        Distribution::Block => DISTRIBUTE_BLOCK.into(),
        Distribution::Cyclic => DISTRIBUTE_CYCLIC.into(),
        Distribution::None => DISTRIBUTE_NONE.into(),
    }
}

fn distribution_from_int(int: i32) -> Result<Distribution> {
    match int {
        DISTRIBUTE_BLOCK => Ok(Distribution::Block),
        DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic),
        DISTRIBUTE_NONE => Ok(Distribution::None),
        _ => Err(wrong(format!(
            "distribution {int}: it is {DISTRIBUTE_BLOCK} for block, {DISTRIBUTE_CYCLIC} for \
             cyclic, {DISTRIBUTE_NONE} for none"
        ))),
    }
}
