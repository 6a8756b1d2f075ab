//! The constructors other than those of arrays, with MPI's checks of their arguments.
//!
//! Like MPI's large-count calls, every constructor takes its numbers as 64-bit integers.
//! Displacements and strides are in extents of the child, or in bytes if the name starts with `h`.
//! A constructor doesn't check that the bounds fit 64 bits, because bounds depend on the
//! architecture; [`Datatype::bounds`] does.
//!
//! Every constructor returns VALUE_TOO_LARGE if the number of basic items doesn't fit 64 bits, and
//! TYPE if the tree is deeper than [`Datatype::MAX_DEPTH`].

use super::check::Call;
use super::{Datatype, List, Node};
use crate::basic::{Basic, Leaf, Makeup};
use crate::error::{Class, Result};
use crate::excerpt::excerpt;

impl Datatype {
    /// `count` elements, each one extent after the last (`MPI_Type_contiguous`).
    ///
    /// # Errors
    /// COUNT for a negative count; VALUE_TOO_LARGE if the number of basic items doesn't fit 64
    /// bits; TYPE if the tree is deeper than [`Datatype::MAX_DEPTH`]. All constructors return the
    /// last two.
    #[doc(alias = "MPI_Type_contiguous")]
    pub fn contiguous(count: i64, child: &Datatype) -> Result<Datatype> {
        let call = Call("contiguous");
        call.count(count)?;
        let node = || Node::Contiguous { count, child: child.clone() };
        Datatype::of_one(call.0, child, Some(count as u64), node)
    }

    /// `count` blocks of `blocklength` elements (`MPI_Type_vector`). The stride, from the start of
    /// a block to the start of the next, is in extents of the child.
    ///
    /// # Errors
    /// COUNT for a negative count, ARG for a negative blocklength.
    #[doc(alias = "MPI_Type_vector")]
    pub fn vector(count: i64, blocklength: i64, stride: i64, child: &Datatype) -> Result<Datatype> {
        let call = Call("vector");
        call.count(count)?;
        call.blocklength(blocklength)?;
        let node = || Node::Vector { count, blocklength, stride, child: child.clone() };
        Datatype::of_one(call.0, child, (count as u64).checked_mul(blocklength as u64), node)
    }

    /// `count` blocks of `blocklength` elements (`MPI_Type_create_hvector`). The stride, from the
    /// start of a block to the start of the next, is in bytes.
    ///
    /// # Errors
    /// COUNT for a negative count, ARG for a negative blocklength.
    #[doc(alias = "MPI_Type_create_hvector")]
    pub fn hvector(
        count: i64,
        blocklength: i64,
        stride: i64,
        child: &Datatype,
    ) -> Result<Datatype> {
        Self::any_hvector("hvector", count, blocklength, stride, child, false)
    }

    /// MPI-1's `MPI_TYPE_HVECTOR`: [`Datatype::hvector`] with a stride that is a Fortran INTEGER.
    ///
    /// # Errors
    /// COUNT for a negative count, ARG for a negative blocklength.
    pub fn hvector_integer(
        count: i64,
        blocklength: i64,
        stride: i64,
        child: &Datatype,
    ) -> Result<Datatype> {
        Self::any_hvector("hvector_integer", count, blocklength, stride, child, true)
    }

    fn any_hvector(
        call: &'static str,
        count: i64,
        blocklength: i64,
        stride: i64,
        child: &Datatype,
        integer: bool,
    ) -> Result<Datatype> {
        Call(call).count(count)?;
        Call(call).blocklength(blocklength)?;
        let node = || Node::Hvector { count, blocklength, stride, child: child.clone(), integer };
        Datatype::of_one(call, child, (count as u64).checked_mul(blocklength as u64), node)
    }

    /// Blocks of any lengths at any displacements, in extents of the child (`MPI_Type_indexed`).
    ///
    /// # Errors
    /// ARG for a negative blocklength, or lists of different lengths.
    #[doc(alias = "MPI_Type_indexed")]
    pub fn indexed(
        blocklengths: &[i64],
        displacements: &[i64],
        child: &Datatype,
    ) -> Result<Datatype> {
        let call = Call("indexed");
        call.blocks(blocklengths, displacements)?;
        Datatype::new(
            call.0,
            Node::Indexed {
                blocklengths: List::from_slice(blocklengths),
                displacements: List::from_slice(displacements),
                child: child.clone(),
            },
        )
    }

    /// Blocks of any lengths at any displacements, in bytes (`MPI_Type_create_hindexed`).
    ///
    /// # Errors
    /// ARG for a negative blocklength, or lists of different lengths.
    #[doc(alias = "MPI_Type_create_hindexed")]
    pub fn hindexed(
        blocklengths: &[i64],
        displacements: &[i64],
        child: &Datatype,
    ) -> Result<Datatype> {
        Self::any_hindexed("hindexed", blocklengths, displacements, child, false)
    }

    /// MPI-1's `MPI_TYPE_HINDEXED`: [`Datatype::hindexed`] with displacements that are Fortran
    /// INTEGERs.
    ///
    /// # Errors
    /// ARG for a negative blocklength, or lists of different lengths.
    pub fn hindexed_integer(
        blocklengths: &[i64],
        displacements: &[i64],
        child: &Datatype,
    ) -> Result<Datatype> {
        Self::any_hindexed("hindexed_integer", blocklengths, displacements, child, true)
    }

    fn any_hindexed(
        call: &'static str,
        blocklengths: &[i64],
        displacements: &[i64],
        child: &Datatype,
        integer: bool,
    ) -> Result<Datatype> {
        Call(call).blocks(blocklengths, displacements)?;
        Datatype::new(
            call,
            Node::Hindexed {
                blocklengths: List::from_slice(blocklengths),
                displacements: List::from_slice(displacements),
                child: child.clone(),
                integer,
            },
        )
    }

    /// Blocks of one length at any displacements, in extents of the child
    /// (`MPI_Type_create_indexed_block`).
    ///
    /// # Errors
    /// ARG for a negative blocklength.
    #[doc(alias = "MPI_Type_create_indexed_block")]
    pub fn indexed_block(
        blocklength: i64,
        displacements: &[i64],
        child: &Datatype,
    ) -> Result<Datatype> {
        let call = Call("indexed_block");
        call.blocklength(blocklength)?;
        let (displacements, child) = (List::from_slice(displacements), child.clone());
        Datatype::new(call.0, Node::IndexedBlock { blocklength, displacements, child })
    }

    /// Blocks of one length at any displacements, in bytes (`MPI_Type_create_hindexed_block`).
    ///
    /// # Errors
    /// ARG for a negative blocklength.
    #[doc(alias = "MPI_Type_create_hindexed_block")]
    pub fn hindexed_block(
        blocklength: i64,
        displacements: &[i64],
        child: &Datatype,
    ) -> Result<Datatype> {
        let call = Call("hindexed_block");
        call.blocklength(blocklength)?;
        let (displacements, child) = (List::from_slice(displacements), child.clone());
        Datatype::new(call.0, Node::HindexedBlock { blocklength, displacements, child })
    }

    /// Blocks of different types at any displacements, in bytes (`MPI_Type_create_struct`).
    ///
    /// # Errors
    /// ARG for a negative blocklength, or lists of different lengths.
    #[doc(alias = "MPI_Type_create_struct")]
    pub fn struct_(
        blocklengths: &[i64],
        displacements: &[i64],
        children: &[Datatype],
    ) -> Result<Datatype> {
        Self::any_struct("struct_", blocklengths, displacements, children, false)
    }

    /// MPI-1's `MPI_TYPE_STRUCT`: [`Datatype::struct_`] with displacements that are Fortran
    /// INTEGERs.
    ///
    /// # Errors
    /// ARG for a negative blocklength, or lists of different lengths.
    pub fn struct_integer(
        blocklengths: &[i64],
        displacements: &[i64],
        children: &[Datatype],
    ) -> Result<Datatype> {
        Self::any_struct("struct_integer", blocklengths, displacements, children, true)
    }

    fn any_struct(
        call: &'static str,
        blocklengths: &[i64],
        displacements: &[i64],
        children: &[Datatype],
        integer: bool,
    ) -> Result<Datatype> {
        Call(call).lengths([
            ("blocklengths", blocklengths.len()),
            ("displacements", displacements.len()),
            ("types", children.len()),
        ])?;
        Call(call).blocklengths(blocklengths)?;
        Datatype::of_members(call, blocklengths, children, || Node::Struct {
            blocklengths: List::from_slice(blocklengths),
            displacements: List::from_slice(displacements),
            children: List::new(),
            integer,
        })
    }

    /// A *simple struct*: blocks of different types at the displacements of a C struct with these
    /// members.
    ///
    /// It states no displacements; each architecture lays it out by its own rules. So it is
    /// portable if its members are.
    ///
    /// ```
    /// use shipable::{Architecture, Datatype};
    /// let record = Datatype::simple_struct(&[1, 1], &[Datatype::int(), Datatype::double()])?;
    /// assert_eq!(record.bounds(&Architecture::X86_64)?.extent(), 16);
    /// assert_eq!(record.bounds(&Architecture::I686)?.extent(), 12);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// ARG for a negative blocklength, or lists of different lengths.
    #[doc(alias = "MPIX_Type_create_simple_struct")]
    pub fn simple_struct(blocklengths: &[i64], children: &[Datatype]) -> Result<Datatype> {
        let call = Call("simple_struct");
        call.lengths([("blocklengths", blocklengths.len()), ("types", children.len())])?;
        call.blocklengths(blocklengths)?;
        Datatype::of_members(call.0, blocklengths, children, || Node::SimpleStruct {
            blocklengths: List::from_slice(blocklengths),
            children: List::new(),
        })
    }

    /// The child with another lower bound and extent, in bytes (`MPI_Type_create_resized`).
    ///
    /// # Errors
    /// ARG if the upper bound doesn't fit 64 bits.
    #[doc(alias = "MPI_Type_create_resized")]
    pub fn resized(lb: i64, extent: i64, child: &Datatype) -> Result<Datatype> {
        let call = Call("resized");
        if lb.checked_add(extent).is_none() {
            let problem = format!("lb {lb} and extent {extent} put the upper bound past 64 bits");
            return Err(call.refuse(Class::Arg, problem));
        }
        let node = || Node::Resized { lb, extent, child: child.clone() };
        Datatype::of_one(call.0, child, Some(1), node)
    }

    /// A new datatype that equals the child (`MPI_Type_dup`).
    ///
    /// Dups of dups nest [`Datatype::MAX_DUPS`] deep, or up to [`Datatype::MAX_DEPTH`] in all. A
    /// dup of the deepest one is a dup of its child. So a program can replace a type by its dup any
    /// number of times.
    ///
    /// ```
    /// use shipable::Datatype;
    /// let mut pair = Datatype::contiguous(2, &Datatype::int())?;
    /// for _ in 0..10_000 {
    ///     pair = Datatype::dup(&pair)?;
    /// }
    /// assert_eq!(pair.depth(), 2 + Datatype::MAX_DUPS);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE if the tree is deeper than [`Datatype::MAX_DEPTH`].
    #[doc(alias = "MPI_Type_dup")]
    pub fn dup(child: &Datatype) -> Result<Datatype> {
        let child = match child.node() {
            Node::Dup { child: inner }
                if child.is_deepest_dup() || child.depth() == Self::MAX_DEPTH =>
            {
                inner
            }
            _ => child,
        };
        Datatype::of_one("dup", child, Some(1), || Node::Dup { child: child.clone() })
    }

    /// Fortran's REAL with a decimal precision and exponent range (`MPI_Type_create_f90_real`).
    /// `None` is `MPI_UNDEFINED`.
    ///
    /// # Errors
    /// ARG if both are undefined, or if external32 has no such type: its widest has a precision of
    /// 33 digits and a range of 4931.
    #[doc(alias = "MPI_Type_create_f90_real")]
    pub fn f90_real(precision: Option<u32>, range: Option<u32>) -> Result<Datatype> {
        Call("f90_real").real_kind(precision, range)?;
        Ok(Datatype::leaf(Leaf::F90Real { precision, range }))
    }

    /// Fortran's COMPLEX with a decimal precision and exponent range
    /// (`MPI_Type_create_f90_complex`). `None` is `MPI_UNDEFINED`.
    ///
    /// # Errors
    /// ARG if both are undefined, or if external32 has no such type.
    #[doc(alias = "MPI_Type_create_f90_complex")]
    pub fn f90_complex(precision: Option<u32>, range: Option<u32>) -> Result<Datatype> {
        Call("f90_complex").real_kind(precision, range)?;
        Ok(Datatype::leaf(Leaf::F90Complex { precision, range }))
    }

    /// Fortran's INTEGER with a decimal exponent range (`MPI_Type_create_f90_integer`).
    ///
    /// # Errors
    /// ARG for a range above 38, the widest of external32.
    #[doc(alias = "MPI_Type_create_f90_integer")]
    pub fn f90_integer(range: u32) -> Result<Datatype> {
        match range {
            0..=38 => Ok(Datatype::leaf(Leaf::F90Integer { range })),
            _ => Err(Call("f90_integer")
                .refuse(Class::Arg, format!("range is {range}: the widest INTEGER has 38"))),
        }
    }

    /// A pair of a value and an index, as for MINLOC and MAXLOC (`MPI_Type_get_value_index`).
    ///
    /// If MPI names the pair, this is the named type. Otherwise it is an unnamed pair, laid out as
    /// a C struct: no operation of [`reduce`](crate::reduce) accepts it, and its form is
    /// locale-specific.
    ///
    /// ```
    /// use shipable::Datatype;
    /// let pair = Datatype::value_index(&Datatype::double(), &Datatype::int())?;
    /// assert!(pair.is(&Datatype::double_int()));
    /// let unnamed = Datatype::value_index(&Datatype::double(), &Datatype::long())?;
    /// assert_eq!(unnamed.to_string(), "U1(VI:d:l)");
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    /// TYPE if the value isn't a predefined integer or real type, or the index isn't a predefined
    /// integer type.
    #[doc(alias = "MPI_Type_get_value_index")]
    pub fn value_index(value: &Datatype, index: &Datatype) -> Result<Datatype> {
        let call = Call("value_index");
        let basics = value.as_basic().zip(index.as_basic());
        let named = basics.and_then(|(value, index)| {
            let pair = Makeup::Pair(value, index);
            Basic::ALL.iter().find(|named| named.makeup() == pair)
        });
        match (named, basics) {
            (Some(&named), _) => Ok(Datatype::basic(named)),
            (None, Some((value, index)))
                if (value.is_integer() || value.is_real()) && index.is_integer() =>
            {
                Datatype::new(call.0, Node::ValueIndex { value, index })
            }
            _ => Err(call.refuse(
                Class::Type,
                format!(
                    "{} and {} make no pair: the value is a predefined integer or real type, the \
                     index a predefined integer type",
                    excerpt(value, 40),
                    excerpt(index, 40)
                ),
            )),
        }
    }
}

impl Call {
    fn blocks(self, blocklengths: &[i64], displacements: &[i64]) -> Result<()> {
        self.lengths([
            ("blocklengths", blocklengths.len()),
            ("displacements", displacements.len()),
        ])?;
        self.blocklengths(blocklengths)
    }

    fn real_kind(self, precision: Option<u32>, range: Option<u32>) -> Result<()> {
        let problem = match (precision, range) {
            (None, None) => "precision and range are both undefined: give at least one".into(),
            (Some(digits @ 34..), _) => {
                format!("precision is {digits}: the widest real type has 33 digits")
            }
            (_, Some(range @ 4932..)) => {
                format!("range is {range}: the widest real type has 4931")
            }
            _ => return Ok(()),
        };
        Err(self.refuse(Class::Arg, problem))
    }
}
