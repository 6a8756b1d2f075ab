//! Conversion of operands from their sender's representation to the memory's.

use smallvec::SmallVec;

use super::apply::PIECE;
use super::software::LONGEST;
use super::{Reduction, Sides, is_complex};
use crate::arch::Architecture;
use crate::basic::Leaf;
use crate::convert::Conversion;
use crate::error::{Class, Error, Result};
use crate::kernels::{Kernel, KernelError, Lane};
use crate::memory::{View, ViewMut};
use crate::program::{ConversionError, describe};

/// Converts packed elements of one type from one representation to another.
#[derive(Clone, Debug)]
pub struct Stage {
    leaf: Leaf,
    from: u64,
    to: u64,
    components: SmallVec<[ComponentConversion; 2]>,
    copies: bool,
    /// Whether the conversion only reverses the bytes of each scalar.
    swaps: bool,
}

/// The conversion of one scalar of each element, or of both parts of a complex number.
#[derive(Clone, Copy, Debug)]
struct ComponentConversion {
    conversion: Conversion,
    from: i64,
    to: i64,
    /// The number of scalars in each element that it converts, and the index of the first.
    scalars: u64,
    first: u64,
    /// The units of a scalar.
    units: u64,
}

/// The state between the parts of a stream: the start of an element whose rest has not arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carry {
    bytes: [u8; LONGEST],
    held: usize,
}

impl ComponentConversion {
    #[inline]
    fn swaps(&self) -> bool {
        matches!(self.conversion, Conversion::Swap { .. }) && self.units == 1
    }
}

impl Stage {
    /// The conversion of packed elements of `leaf` from one representation to another.
    ///
    /// # Errors
    ///
    /// Those of [`Architecture::leaf`], [`Error::Unconvertible`], and class TYPE for a marker,
    /// which holds no data.
    pub fn new(leaf: Leaf, from: &Architecture, to: &Architecture) -> Result<Stage> {
        let (from_layout, to_layout) = (from.leaf(leaf)?, to.leaf(leaf)?);
        if from_layout.size == 0 {
            let problem = format!("{leaf} holds no data: use a type of the items themselves");
            return Err(Error::Argument { call: "accumulate", class: Class::Type, problem });
        }
        let (mut from_at, mut to_at) = (0, 0);
        let mut components = SmallVec::new();
        let pairs = from_layout.components.iter().zip(&to_layout.components);
        for (index, (a, b)) in (0..).zip(pairs) {
            let conversion = Conversion::between(a.scalar, b.scalar)?;
            let units = u64::from(a.scalar.size / conversion.from_size());
            if index == 0 || !is_complex(leaf) {
                let part = ComponentConversion {
                    conversion,
                    from: from_at,
                    to: to_at,
                    scalars: 1,
                    first: index,
                    units,
                };
                components.push(part);
            } else if let Some(ComponentConversion { scalars, .. }) = components.last_mut() {
                *scalars += 1;
            }
            from_at += i64::from(a.scalar.size);
            to_at += i64::from(b.scalar.size);
        }
        let copies = components.iter().all(|part: &ComponentConversion| part.conversion.is_copy());
        let swaps = components.iter().all(ComponentConversion::swaps);
        Ok(Stage {
            leaf,
            from: from_layout.size.into(),
            to: to_layout.size.into(),
            components,
            copies,
            swaps,
        })
    }

    /// The bytes of an element in the sender's representation.
    #[inline]
    pub fn element(&self) -> u64 {
        self.from
    }

    /// Converts packed elements, all or none.
    ///
    /// # Errors
    ///
    /// - [`Error::Conversion`] for an element that the other representation can't hold.
    /// - [`Error::Position`] if the last element is incomplete.
    pub fn convert_all(&self, input: &[u8]) -> Result<Vec<u8>> {
        let length = input.len() as u64;
        if length % self.from != 0 {
            let problem = format!("it lies within an element of {} bytes", self.from);
            return Err(Error::Position { position: length, problem });
        }
        let mut out = vec![0; (length / self.from * self.to) as usize];
        self.convert(0, input, &mut out).1?;
        Ok(out)
    }

    /// Converts the whole elements in `input`. The first one is element `index` of the transfer.
    /// Returns the number of elements in `out`, and the error that stopped the conversion.
    fn convert(&self, index: u64, input: &[u8], out: &mut [u8]) -> (u64, Result<()>) {
        let count = input.len() as u64 / self.from;
        let (mut done, mut outcome) = (count, Ok(()));
        let mut target = ViewMut::new(out);
        for part in &self.components {
            let kernel = Kernel::new(part.conversion, part.units * part.scalars);
            let lane = |start, stride: u64| Lane { start, strides: [0, stride as i64] };
            let (from, to) = (lane(part.from, self.from), lane(part.to, self.to));
            match kernel.transfer([1, count], View::new(input), from, &mut target, to) {
                Ok(()) => {}
                Err(KernelError::OutOfBounds(error)) => return (0, Err(error.into())),
                Err(KernelError::Value { unit, error }) => {
                    let scalar = unit / part.units;
                    let (element, within) = (scalar / part.scalars, scalar % part.scalars);
                    if element < done {
                        done = element;
                        let (from, to) = describe(part.conversion);
                        let scalars: u64 = self.components.iter().map(|part| part.scalars).sum();
                        outcome = Err(Error::Conversion(Box::new(ConversionError {
                            item: (index + element) * scalars + part.first + within,
                            field: None,
                            datatype: self.leaf.mpi_name(),
                            value: error.value,
                            reason: error.reason.to_string(),
                            from,
                            to,
                        })));
                    }
                }
            }
        }
        (done, outcome)
    }
}

impl Reduction {
    /// Combines `input` with the items of `target`, and appends the previous values of the items to
    /// `fetched`.
    ///
    /// `input` is the part from `position` on of a stream of packed operands, in the sender's
    /// representation. `fetched` is packed in the memory's representation.
    ///
    /// A stream may be cut at any byte. Pass its parts in order, with one `carry` for all. An
    /// element is combined when all of its bytes are there.
    ///
    /// ```
    /// use shipable::reduce::{Carry, Op, Reduction, Sides, Stage};
    /// use shipable::{Architecture, Basic, Committed, Datatype, ViewMut};
    ///
    /// // Ints of a little-endian origin are added to every other int of a big-endian target.
    /// let (origin, target) = (Architecture::X86_64, Architecture::S390X);
    /// let every_other = Committed::new(&Datatype::vector(2, 1, 2, &Datatype::int())?, &target)?;
    /// let sum = Reduction::new(Op::Sum, Basic::Int.into(), &target)?;
    /// let stage = Stage::new(Basic::Int.into(), &origin, &target)?;
    /// let mut memory = [0, 0, 0, 5, 9, 9, 9, 9, 0, 0, 0, 6];
    /// let (mut carry, mut fetched) = (Carry::default(), Vec::new());
    /// for (position, part) in [(0, &[1, 0, 0, 0, 2][..]), (5, &[0, 0, 0])] {
    ///     let memory = ViewMut::new(&mut memory);
    ///     let mut sides = Sides { program: every_other.native(), count: 1, memory };
    ///     sum.take(&stage, &mut sides, position, part, &mut carry, Some(&mut fetched))?;
    /// }
    /// assert_eq!(memory, [0, 0, 0, 6, 9, 9, 9, 9, 0, 0, 0, 8]);
    /// assert_eq!(fetched, [0, 0, 0, 5, 0, 0, 0, 6]);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Conversion`] for an operand that the memory's representation can't hold. Only the
    ///   operands before it are combined.
    /// - [`Error::Position`] if the input exceeds the stream, or starts within an element whose
    ///   start didn't come before.
    /// - [`Error::OutOfBounds`] if the items don't lie in their memory.
    pub fn take(
        &self,
        stage: &Stage,
        target: &mut Sides<'_>,
        position: u64,
        input: &[u8],
        carry: &mut Carry,
        mut fetched: Option<&mut Vec<u8>>,
    ) -> Result<()> {
        let (mut index, cut) = (position / stage.from, position % stage.from);
        if cut != carry.held as u64 {
            let problem = "it lies within an element whose start didn't come before".to_owned();
            return Err(Error::Position { position, problem });
        }
        // So no place of an element overflows below.
        let elements = target.program.stream_length(target.count)? / self.element();
        if index > elements {
            let problem = format!("the stream has {elements} elements of {} bytes", stage.from);
            return Err(Error::Position { position, problem });
        }
        let mut input = input;
        let mut fetch =
            |reduction: &Reduction, at: u64, operands: &[u8], target: &mut Sides<'_>| {
                let old = fetched.as_deref_mut().map(|fetched| {
                    let start = fetched.len();
                    fetched.resize(start + operands.len(), 0);
                    &mut fetched[start..]
                });
                reduction.apply(target, at, View::new(operands), operands.len() as u64, old)
            };
        let whole = stage.from as usize;
        if carry.held > 0 {
            let (missing, rest) = input.split_at(input.len().min(whole - carry.held));
            carry.bytes[carry.held..carry.held + missing.len()].copy_from_slice(missing);
            carry.held += missing.len();
            if carry.held < whole {
                return Ok(());
            }
            carry.held = 0;
            let mut out = [0; LONGEST];
            let out = &mut out[..self.element as usize];
            stage.convert(index, &carry.bytes[..whole], out).1?;
            fetch(self, index * self.element(), out, target)?;
            (index, input) = (index + 1, rest);
        }
        let (elements, rest) = input.split_at(input.len() - input.len() % whole);
        let at_once = match (stage.copies, stage.swaps) {
            (true, _) => Some(*self),
            (_, true) => self.across(),
            _ => None,
        };
        if let Some(reduction) = at_once {
            fetch(&reduction, index * self.element(), elements, target)?;
        } else {
            let mut out = [0; PIECE];
            let piece = PIECE / whole.max(self.element as usize) * whole;
            for part in elements.chunks(piece) {
                let (done, outcome) = stage.convert(index, part, &mut out);
                let converted = &out[..(done * self.element()) as usize];
                fetch(self, index * self.element(), converted, target)?;
                outcome?;
                index += part.len() as u64 / stage.from;
            }
        }
        carry.bytes[..rest.len()].copy_from_slice(rest);
        carry.held = rest.len();
        Ok(())
    }
}
