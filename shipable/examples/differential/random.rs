//! Random types that MPI libraries can build.
//!
//! The oracle's types use constructors and predefined types that libraries lack: simple structs,
//! MPI-1's markers, optional types. They are replaced by others with the same layout, so that the
//! types around them keep their meaning.
//!
//! Where a library computes wrong bounds (`known.rs`), `MPI_Type_create_resized` states the right
//! ones, so that everything else can be compared exactly.

use std::collections::BTreeSet;
use std::error::Error;

use shipable::contents::Counts;
use shipable::datatype::Node;
use shipable::oracle::{self, Item, Options, Random};
use shipable::{Architecture, Basic, Bounds, Datatype, Leaf, Result};

use crate::case::Case;
use crate::ours;
use crate::peer::Library;
use crate::quirks::{self, Quirks};

/// The memory limit of a case. Longer memory finds no further errors.
const MEMORY: usize = 8 << 10;

/// A generator of cases. Equal seeds and libraries give equal cases.
pub struct Cases {
    random: Random,
    absent: Vec<Basic>,
    quirks: Quirks,
    large: bool,
}

impl Cases {
    pub fn new(seed: u64, library: &Library) -> Cases {
        Cases {
            random: Random::new(seed, Options { items: 60, ..Options::default() }),
            absent: quirks::absent(library),
            quirks: quirks::of(library),
            large: library.standard >= (4, 0),
        }
    }

    /// The next case.
    pub fn next(&mut self) -> std::result::Result<Case, Box<dyn Error>> {
        loop {
            // A third of the types may overlap. They are only packed, not unpacked.
            self.random.options.disjoint = !self.random.chance(3);
            let datatype = self.random.datatype();
            // Printing and parsing replaces MPI-1's constructors, which libraries no longer have.
            let datatype: Datatype = self.rebuild(&datatype)?.to_string().parse()?;
            let large = self.large && self.random.chance(2);
            let (count, seed) = (1 + self.random.below(3), self.random.number());
            let bounds = native(&datatype)?;
            let reach = bounds.true_lb.abs().max(bounds.true_ub.abs()) + 3 * bounds.extent().abs();
            if usize::try_from(reach).is_ok_and(|reach| reach <= MEMORY) {
                let case = Case::new(datatype, count, large, seed)?;
                return Ok(Case { x87: self.quirks.sixteen_bytes_as_x87, ..case });
            }
        }
    }

    /// An equivalent type that the library can build, with bounds that it computes correctly.
    pub fn rebuild(&self, datatype: &Datatype) -> Result<Datatype> {
        let before = native(datatype)?;
        let made = match datatype.node() {
            Node::Leaf(leaf) => return self.leaf(*leaf),
            _ if before.size == 0 => return Datatype::struct_(&[], &[], &[]),
            // No library has unnamed pairs yet, which MPI-5.0 section 6.9.4 leaves optional.
            Node::ValueIndex { value, index } => {
                c_struct(&[1, 1], &[self.leaf((*value).into())?, self.leaf((*index).into())?])?
            }
            Node::SimpleStruct { blocklengths, children } => {
                let children: Result<Vec<_>> = children.iter().map(|c| self.rebuild(c)).collect();
                c_struct(blocklengths, &children?)?
            }
            Node::Struct { blocklengths, displacements, children, .. } => {
                let (mut lengths, mut starts, mut members) = (vec![], vec![], vec![]);
                for ((&length, &displacement), member) in
                    blocklengths.iter().zip(displacements).zip(children)
                {
                    if native(member)?.size > 0 {
                        lengths.push(length);
                        starts.push(displacement);
                        members.push(self.rebuild(member)?);
                    }
                }
                Datatype::struct_(&lengths, &starts, &members)?
            }
            Node::Vector { count, blocklength, stride: -1, child }
                if self.quirks.bytes_upwards && native(child)?.extent() == 1 =>
            {
                self.downwards(*count, *blocklength, child)?
            }
            Node::Hvector { count, blocklength, stride: -1, child, .. }
                if self.quirks.bytes_upwards =>
            {
                self.downwards(*count, *blocklength, child)?
            }
            // MPI-3 removed MPI-1's constructors. Their successors build the same types.
            Node::Hvector { count, blocklength, stride, child, integer: true } => {
                Datatype::hvector(*count, *blocklength, *stride, &self.rebuild(child)?)?
            }
            Node::Hindexed { blocklengths, displacements, child, integer: true } => {
                Datatype::hindexed(blocklengths, displacements, &self.rebuild(child)?)?
            }
            Node::Resized { lb, extent, child } => {
                return Datatype::resized(*lb, self.extent(*extent), &self.rebuild(child)?);
            }
            _ => {
                let mut contents = datatype.contents(Counts::Large)?;
                for child in &mut contents.datatypes {
                    *child = self.rebuild(child)?;
                }
                contents.rebuild()?
            }
        };
        // Restores the bounds if markers or a simple struct set them.
        let after = native(&made)?;
        let kept = (before.lb, before.extent()) == (after.lb, after.extent());
        match kept && !self.misjudged(made.node())? {
            true => Ok(made),
            false => Datatype::resized(before.lb, self.extent(before.extent()), &made),
        }
    }

    /// Blocks at descending displacements, one byte apart.
    fn downwards(&self, count: i64, blocklength: i64, child: &Datatype) -> Result<Datatype> {
        let displacements: Vec<_> = (0..count).map(|at| -at).collect();
        Datatype::hindexed_block(blocklength, &displacements, &self.rebuild(child)?)
    }

    /// An extent with which the library can pack.
    fn extent(&self, extent: i64) -> i64 {
        if self.quirks.negative_extents { extent.abs() } else { extent }
    }

    /// Whether the library may compute other bounds.
    fn misjudged(&self, node: &Node) -> Result<bool> {
        let blocks: Vec<(i64, i64, &Datatype)> = match node {
            Node::Struct { blocklengths, displacements, children, .. } => {
                if self.quirks.one_type_unpadded && alike(children)?
                    || self.quirks.markers_ignored && children.iter().any(sets_bounds)
                {
                    return Ok(true);
                }
                let blocks = blocklengths.iter().zip(displacements).zip(children);
                blocks
                    .map(|((&length, &displacement), child)| (length, displacement, child))
                    .collect()
            }
            Node::Hvector { count, blocklength, stride, child, .. } => {
                (0..*count).map(|at| (*blocklength, at * stride, child)).collect()
            }
            Node::Hindexed { blocklengths, displacements, child, .. } => {
                let blocks = blocklengths.iter().zip(displacements);
                blocks.map(|(&length, &displacement)| (length, displacement, child)).collect()
            }
            Node::HindexedBlock { blocklength, displacements, child } => displacements
                .iter()
                .map(|&displacement| (*blocklength, displacement, child))
                .collect(),
            _ => return Ok(false),
        };
        let structure = matches!(node, Node::Struct { .. });
        let mut lowest = i64::MAX;
        for (length, displacement, child) in blocks.into_iter().filter(|(length, ..)| *length > 0) {
            let block = native(&Datatype::contiguous(length, child)?)?;
            let odd = !structure && displacement % block.align != 0;
            let below = lowest != i64::MAX && displacement + block.lb < lowest;
            if self.quirks.blocks_unpadded && odd || self.quirks.padded_by_and_by && below {
                return Ok(true);
            }
            lowest = lowest.min(displacement + block.lb);
        }
        Ok(false)
    }

    /// The datatype of a leaf, or of a substitute with its size and alignment.
    fn leaf(&self, leaf: Leaf) -> Result<Datatype> {
        // The few kinds that every Fortran compiler has. By MPI-5.0 section 19.1.9 others are
        // errors, and MPICH runs out of memory for them.
        const REALS: [(Option<u32>, Option<u32>); 4] =
            [(Some(6), Some(37)), (Some(15), Some(307)), (Some(13), None), (None, Some(200))];
        const INTEGERS: [u32; 4] = [4, 9, 12, 18];
        let some =
            |p: Option<u32>, r: Option<u32>| REALS[(p.unwrap_or(0) + r.unwrap_or(0)) as usize % 4];
        match leaf {
            Leaf::Basic(basic) if self.absent.contains(&basic) => {
                let layout = Architecture::NATIVE.basic(basic);
                let unit = match layout.align {
                    16 => Basic::LongDouble,
                    8 => Basic::Int64,
                    4 => Basic::Int32,
                    2 => Basic::Int16,
                    _ => Basic::Int8,
                };
                let times = layout.size / Architecture::NATIVE.basic(unit).size;
                Datatype::contiguous(times.into(), &unit.into())
            }
            Leaf::Basic(_) => ours::leaf(leaf),
            Leaf::F90Real { precision, range } => {
                let (precision, range) = some(precision, range);
                Datatype::f90_real(precision, range)
            }
            Leaf::F90Complex { precision, range } => {
                let (precision, range) = some(precision, range);
                Datatype::f90_complex(precision, range)
            }
            Leaf::F90Integer { range } => Datatype::f90_integer(INTEGERS[range as usize % 4]),
        }
    }
}

fn native(datatype: &Datatype) -> Result<Bounds> {
    datatype.bounds(&Architecture::NATIVE)
}

/// Whether MPICH treats the members as one type: they have one type, or leaves of one size.
fn alike(members: &[Datatype]) -> Result<bool> {
    let mut leaves = Vec::new();
    for member in members {
        leaves.extend(oracle::expand(member, &Architecture::NATIVE, 1)?);
    }
    let size = |item: &Item| native(&ours::leaf(item.leaf)?).map(|bounds| bounds.extent());
    let sizes = leaves.iter().map(size).collect::<Result<BTreeSet<i64>>>()?;
    let complex4 = leaves.iter().any(|item| item.leaf == Basic::Complex4.into());
    Ok(sizes.len() < 2 || complex4 || members.iter().all(|member| *member == members[0]))
}

/// Whether a constructor of the type sets bounds.
fn sets_bounds(datatype: &Datatype) -> bool {
    match datatype.node() {
        Node::Resized { .. } | Node::Subarray { .. } | Node::Darray { .. } => true,
        node => node.children().iter().any(sets_bounds),
    }
}

/// A struct with members at the displacements that C gives them.
fn c_struct(blocklengths: &[i64], children: &[Datatype]) -> Result<Datatype> {
    let (mut end, mut lengths, mut displacements, mut members) = (0, vec![], vec![], vec![]);
    for (&length, child) in blocklengths.iter().zip(children) {
        let block = native(&Datatype::contiguous(length, child)?)?;
        if native(child)?.size == 0 {
            continue;
        }
        let low = block.lb.min(block.ub);
        end += (block.align - end % block.align) % block.align;
        lengths.push(length);
        displacements.push(end - low);
        members.push(child.clone());
        end += block.lb.max(block.ub) - low;
    }
    Datatype::struct_(&lengths, &displacements, &members)
}
