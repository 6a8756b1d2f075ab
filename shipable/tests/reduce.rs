//! Tests of reductions against a naive oracle, with all operations on all types that they accept,
//! in random representations, on random types, with random cuts.

use std::collections::HashSet;
use std::sync::Mutex;

use shipable::arch::{Scalar, Value};
use shipable::convert::Conversion;
use shipable::oracle::{self, Options, Random, cases, each_seed};
use shipable::reduce::{Carry, Op, Reduction, Sides, Stage, Swap, check_swap};
use shipable::{Architecture, Basic, Class, Committed, Datatype, Error, Leaf, View, ViewMut};

const DOUBLE: fn(&Architecture) -> Scalar =
    |architecture| architecture.basic(Basic::Double).components[0].scalar;

fn integer(scalar: Scalar, bytes: &[u8]) -> i128 {
    let mut wide = [0; 16];
    for (index, &byte) in bytes.iter().enumerate() {
        let index = match scalar.order {
            shipable::arch::ByteOrder::Little => index,
            shipable::arch::ByteOrder::Big => bytes.len() - 1 - index,
        };
        wide[index] = byte;
    }
    let above = 128 - 8 * bytes.len() as u32;
    let bits = u128::from_le_bytes(wide);
    match scalar.value {
        Value::Int { signed: true } => (bits << above) as i128 >> above,
        _ => bits as i128,
    }
}

fn write_integer(scalar: Scalar, value: i128, bytes: &mut [u8]) {
    for (index, byte) in value.to_le_bytes().into_iter().take(bytes.len()).enumerate() {
        let index = match scalar.order {
            shipable::arch::ByteOrder::Little => index,
            shipable::arch::ByteOrder::Big => bytes.len() - 1 - index,
        };
        bytes[index] = byte;
    }
}

/// A float with a value that every format can hold: a small integer, an infinity or NaN.
fn float(scalar: Scalar, bytes: &[u8]) -> f64 {
    let native = DOUBLE(&Architecture::NATIVE);
    let mut out = [0; 8];
    Conversion::between(scalar, native).unwrap().apply_whole(bytes, &mut out);
    f64::from_ne_bytes(out)
}

fn write_float(scalar: Scalar, value: f64, bytes: &mut [u8]) {
    let native = DOUBLE(&Architecture::NATIVE);
    Conversion::between(native, scalar).unwrap().apply_whole(&value.to_ne_bytes(), bytes);
}

trait Whole {
    fn apply_whole(self, from: &[u8], to: &mut [u8]);
}

impl Whole for Conversion {
    fn apply_whole(self, from: &[u8], to: &mut [u8]) {
        let units = to.chunks_mut(self.to_size().into());
        for (from, to) in from.chunks(self.from_size().into()).zip(units) {
            self.apply(from, to).unwrap();
        }
    }
}

/// The operation on one scalar, by MPI's table.
fn combine_scalar(op: Op, scalar: Scalar, operand: &[u8], there: &mut [u8]) {
    if let Value::Float(_) = scalar.value {
        let (a, b) = (float(scalar, operand), float(scalar, there));
        let result = match op {
            Op::Sum => a + b,
            Op::Prod => a * b,
            Op::Max if b > a => b,
            Op::Min if b < a => b,
            _ => a,
        };
        return write_float(scalar, result, there);
    }
    let (a, b) = (integer(scalar, operand), integer(scalar, there));
    let unsigned = |value: i128| value as u128;
    let wide = scalar.size == 16 && scalar.value != Value::Int { signed: true };
    let greater = if wide { unsigned(a) > unsigned(b) } else { a > b };
    let less = if wide { unsigned(a) < unsigned(b) } else { a < b };
    let logical = |truth: bool| match scalar.value {
        Value::Logical { truth: image } if truth => i128::from(image as i64),
        _ => i128::from(truth),
    };
    let result = match op {
        Op::Sum => a.wrapping_add(b),
        Op::Prod => a.wrapping_mul(b),
        Op::Max => {
            if greater {
                a
            } else {
                b
            }
        }
        Op::Min => {
            if less {
                a
            } else {
                b
            }
        }
        Op::Band => a & b,
        Op::Bor => a | b,
        Op::Bxor => a ^ b,
        Op::Land => logical(a != 0 && b != 0),
        Op::Lor => logical(a != 0 || b != 0),
        Op::Lxor => logical((a != 0) != (b != 0)),
        _ => unreachable!(),
    };
    write_integer(scalar, result, there);
}

/// The operation on one packed element.
fn combine(op: Op, leaf: Leaf, scalars: &[Scalar], operand: &[u8], there: &mut [u8]) {
    let part = usize::from(scalars[0].size);
    match op {
        Op::Replace => there.copy_from_slice(operand),
        Op::NoOp => {}
        Op::Maxloc | Op::Minloc => {
            let value = |scalar: Scalar, bytes: &[u8]| match scalar.value {
                Value::Float(_) => float(scalar, bytes),
                _ => integer(scalar, bytes) as f64,
            };
            let (a, b) = (value(scalars[0], &operand[..part]), value(scalars[0], &there[..part]));
            let (i, j) = (value(scalars[1], &operand[part..]), value(scalars[1], &there[part..]));
            let better = if op == Op::Maxloc { a > b } else { a < b };
            if better || a == b && i < j {
                there.copy_from_slice(operand);
            }
        }
        Op::Prod if scalars.len() == 2 => {
            assert!(!leaf_is_pair(leaf));
            let read = |bytes: &[u8]| {
                [float(scalars[0], &bytes[..part]), float(scalars[1], &bytes[part..])]
            };
            let ([c, d], [a, b]) = (read(operand), read(there));
            write_float(scalars[0], a * c - b * d, &mut there[..part]);
            write_float(scalars[1], a * d + b * c, &mut there[part..]);
        }
        _ => {
            let mut at = 0;
            for &scalar in scalars {
                let end = at + usize::from(scalar.size);
                combine_scalar(op, scalar, &operand[at..end], &mut there[at..end]);
                at = end;
            }
        }
    }
}

fn leaf_is_pair(leaf: Leaf) -> bool {
    matches!(leaf, Leaf::Basic(basic) if basic.is_pair())
}

/// Makes the NaNs of two memories equal, where both have one. Rust and MPI leave the sign of a
/// computed NaN open, and machines differ: armhf has another than x86-64.
fn align_nans(op: Op, scalars: &[Scalar], indices: &[usize], found: &[u8], wanted: &mut [u8]) {
    if !matches!(op, Op::Sum | Op::Prod) {
        return;
    }
    let (mut scalars, mut rest) = (scalars.iter().cycle(), indices);
    while let Some(scalar) = scalars.next().filter(|_| !rest.is_empty()) {
        let (bytes, after) = rest.split_at(scalar.size.into());
        rest = after;
        let is_nan = |memory: &[u8]| {
            let packed: Vec<u8> = bytes.iter().map(|&index| memory[index]).collect();
            matches!(scalar.value, Value::Float(_)) && float(*scalar, &packed).is_nan()
        };
        if is_nan(found) && is_nan(wanted) {
            bytes.iter().for_each(|&index| wanted[index] = found[index]);
        }
    }
}

/// Random bytes of a scalar. Floats have values on which every format computes exactly; infinities
/// occur only if the operation preserves them.
fn value(random: &mut Random, scalar: Scalar, op: Op, narrow: bool) -> Vec<u8> {
    let mut bytes = vec![0; scalar.size.into()];
    match scalar.value {
        Value::Float(_) => {
            let value = match random.below(40) {
                0 => f64::NAN,
                1 if matches!(op, Op::Max | Op::Min | Op::Replace) => {
                    *random.pick(&[f64::INFINITY, f64::NEG_INFINITY])
                }
                2 => -0.0,
                _ => random.below(41) as f64 - 20.0,
            };
            write_float(scalar, value, &mut bytes);
        }
        Value::Logical { truth } => match random.below(3) {
            0 => {}
            1 => write_integer(scalar, (truth as i64).into(), &mut bytes),
            _ => bytes = random.bytes(bytes.len()),
        },
        Value::Int { .. } if narrow => write_integer(scalar, random.below(128).into(), &mut bytes),
        Value::Char | Value::Wide => write_integer(scalar, random.below(128).into(), &mut bytes),
        _ => bytes = random.bytes(bytes.len()),
    }
    bytes
}

fn scalars(leaf: Leaf, architecture: &Architecture) -> Vec<Scalar> {
    architecture.leaf(leaf).unwrap().components.iter().map(|component| component.scalar).collect()
}

fn elements(random: &mut Random, scalars: &[Scalar], op: Op, count: u64, narrow: bool) -> Vec<u8> {
    (0..count)
        .flat_map(|_| {
            scalars.iter().flat_map(|&scalar| value(random, scalar, op, narrow)).collect::<Vec<_>>()
        })
        .collect()
}

fn leaf(random: &mut Random) -> Leaf {
    match random.below(30) {
        0 => Leaf::F90Real { precision: Some(6), range: None },
        1 => Leaf::F90Complex { precision: Some(12), range: None },
        2 => Leaf::F90Integer { range: 9 },
        _ => random.basic().into(),
    }
}

/// Packed elements in the layout of a type; the other memory is random.
struct TypedBuffer {
    committed: Committed,
    count: u64,
    memory: Vec<u8>,
    origin: u64,
}

impl TypedBuffer {
    fn new(
        random: &mut Random,
        datatype: &Datatype,
        architecture: &Architecture,
        count: u64,
    ) -> Option<TypedBuffer> {
        let committed = Committed::new(datatype, architecture).ok()?;
        let reach = committed.native().range(count).ok()?;
        if oracle::overlaps(datatype, architecture, count).ok()?
            || reach.end - reach.start > 1 << 16
        {
            return None;
        }
        let origin = (-reach.start.min(0)) as u64 + 8;
        let memory = random.bytes((origin as i64 + reach.end.max(0) + 8) as usize);
        Some(TypedBuffer { committed, count, memory, origin })
    }

    /// The index in memory of each packed byte.
    fn indices(&self, architecture: &Architecture) -> Vec<usize> {
        let items = oracle::expand(self.committed.datatype(), architecture, self.count).unwrap();
        let bytes = items
            .iter()
            .flat_map(|item| (0..i64::from(item.scalar.size)).map(|at| item.offset + at));
        bytes.map(|at| (at + self.origin as i64) as usize).collect()
    }

    fn fill(&mut self, architecture: &Architecture, packed: &[u8]) {
        let indices = self.indices(architecture);
        assert_eq!(indices.len(), packed.len());
        indices.iter().zip(packed).for_each(|(&index, &byte)| self.memory[index] = byte);
    }

    fn sides(&mut self) -> Sides<'_> {
        let memory = ViewMut::new(&mut self.memory).with_origin(self.origin);
        Sides { program: self.committed.native(), count: self.count, memory }
    }
}

#[test]
fn operations_agree_with_the_oracle_at_any_cut() {
    let seen = Mutex::new(HashSet::new());
    each_seed(6000, |seed| {
        let mut random = Random::new(seed, Options::default());
        let (from, to) = match random.below(3) {
            0 => (Architecture::NATIVE, Architecture::NATIVE),
            1 => {
                let one = random.architecture();
                (one, one)
            }
            _ => (random.architecture(), random.architecture()),
        };
        let leaf = leaf(&mut random);
        let allowed: Vec<Op> =
            Op::ALL.iter().copied().filter(|op| op.check(leaf).is_ok()).collect();
        let op = *random.pick(&allowed);
        random.options.architecture = to;
        let (target_type, other_type) = random.pair_of(leaf);
        let count = 1 + random.below(3);
        let Some(mut target) = TypedBuffer::new(&mut random, &target_type, &to, count) else {
            return;
        };
        let (kinds, there_kinds) = (scalars(leaf, &from), scalars(leaf, &to));
        let size =
            |scalars: &[Scalar]| scalars.iter().map(|scalar| u64::from(scalar.size)).sum::<u64>();
        let items = target.committed.native().stream_length(count).unwrap() / size(&there_kinds);
        if items == 0 || from.leaf(leaf).is_err() {
            return;
        }
        if to.leaf(leaf).is_ok() {
            seen.lock().unwrap().insert((op, leaf));
        }
        let narrow = random.chance(2);
        let operands = elements(&mut random, &kinds, op, items, narrow);
        let before = elements(&mut random, &there_kinds, op, items, false);
        target.fill(&to, &before);

        // Each item is converted and combined.
        let (mut after, mut refused) = (before.clone(), None);
        let mut converted = Vec::new();
        'items: for (index, operand) in operands.chunks(size(&kinds) as usize).enumerate() {
            let (mut packed, mut at) = (Vec::new(), 0);
            for (part, (&a, &b)) in kinds.iter().zip(&there_kinds).enumerate() {
                let conversion = Conversion::between(a, b).unwrap();
                let mut out = vec![0; b.size.into()];
                let units = out.chunks_mut(conversion.to_size().into());
                let bytes = &operand[at..at + usize::from(a.size)];
                for (from, to) in bytes.chunks(conversion.from_size().into()).zip(units) {
                    if conversion.apply(from, to).is_err() {
                        refused = Some((index * kinds.len() + part) as u64);
                        break 'items;
                    }
                }
                packed.extend(out);
                at += usize::from(a.size);
            }
            let range = index * packed.len()..(index + 1) * packed.len();
            combine(op, leaf, &there_kinds, &packed, &mut after[range]);
            converted.extend(packed);
        }
        let mut wanted = target.memory.clone();
        let indices = target.indices(&to);
        indices.iter().zip(&after).for_each(|(&index, &byte)| wanted[index] = byte);

        let what =
            format!("seed {seed}: {op} on {leaf}, {} to {}, {target_type}", from.name(), to.name());
        let reduction = Reduction::new(op, leaf, &to).unwrap();
        let stage = Stage::new(leaf, &from, &to).unwrap();
        let (mut carry, mut fetched) = (Carry::default(), Vec::new());
        let (mut position, mut outcome) = (0, Ok(()));
        let original = target.memory.clone();
        while position < operands.len() && outcome.is_ok() {
            let part = (1 + random.below(200) as usize).min(operands.len() - position);
            let input = &operands[position..position + part];
            outcome = reduction.take(
                &stage,
                &mut target.sides(),
                position as u64,
                input,
                &mut carry,
                Some(&mut fetched),
            );
            position += part;
        }
        match (outcome, refused) {
            (Ok(()), None) => assert!(fetched == before, "{what}: fetched"),
            (Err(Error::Conversion(error)), Some(item)) => assert_eq!(error.item, item, "{what}"),
            (outcome, _) => panic!("{what}: {outcome:?}"),
        }
        align_nans(op, &there_kinds, &indices, &target.memory, &mut wanted);
        assert!(target.memory == wanted, "{what}");

        // From typed memory to typed memory.
        if refused.is_some() {
            return;
        }
        target.memory = original;
        let Some(mut source) = TypedBuffer::new(&mut random, &other_type, &to, count) else {
            return;
        };
        let Some(mut result) = TypedBuffer::new(&mut random, &other_type, &to, count) else {
            return;
        };
        source.fill(&to, &converted);
        let mut fetched = result.memory.clone();
        result.indices(&to).iter().zip(&before).for_each(|(&index, &byte)| fetched[index] = byte);
        let fetching = random.chance(2);
        let length = converted.len() as u64;
        let middle = random.below(items + 1) * reduction.element();
        for range in [0..middle, middle..length] {
            let view = View::new(&source.memory).with_origin(source.origin);
            let operands = (source.committed.native(), count, view);
            let mut room = result.sides();
            let room = fetching.then_some(&mut room);
            reduction.apply_typed(operands, &mut target.sides(), room, range).unwrap();
        }
        align_nans(op, &there_kinds, &indices, &target.memory, &mut wanted);
        assert!(target.memory == wanted, "{what}, from {other_type}");
        assert!(!fetching || result.memory == fetched, "{what}, to {other_type}");
    });
    let seen = seen.into_inner().unwrap();
    assert!(cases(6000) < 6000 || seen.len() > 300, "{} kinds of operations", seen.len());
}

#[test]
fn operations_accept_the_types_that_mpi_lists() {
    let refused = |op: Op, basic: Basic| {
        let error = op.check(basic.into()).unwrap_err();
        assert_eq!(error.class(), Class::Op);
        assert!(
            error.to_string().contains(op.mpi_name())
                && error.to_string().contains(basic.mpi_name())
        );
    };
    for &basic in Basic::ALL {
        let taken: String = Op::ALL
            .iter()
            .map(|op| if op.check(basic.into()).is_ok() { 'x' } else { '.' })
            .collect();
        use Basic::*;
        // MAX MIN SUM PROD  LAND BAND LOR BOR LXOR BXOR  MAXLOC MINLOC  REPLACE NO_OP
        let wanted = match basic {
            Lb | Ub => "............xx",
            Char | Character | Wchar | Packed => "............xx",
            Byte => ".....x.x.x..xx",
            CBool | CxxBool | Logical | Logical1 | Logical2 | Logical4 | Logical8 | Logical16 => {
                "....x.x.x...xx"
            }
            Integer | Integer1 | Integer2 | Integer4 | Integer8 | Integer16 => "xxxx.x.x.x..xx",
            // MPI lists no logical operations for these; MPICH and Open MPI take them.
            Aint | Count | Offset => "xxxxxxxxxx..xx",
            _ if basic.is_integer() => "xxxxxxxxxx..xx",
            _ if basic.is_real() => "xxxx........xx",
            _ if basic.is_pair() => "..........xxxx",
            _ => "..xx........xx",
        };
        if !basic.is_marker() {
            assert_eq!(taken, wanted, "{basic}");
        }
    }
    refused(Op::Sum, Basic::Char);
    refused(Op::Land, Basic::Integer);
    refused(Op::Maxloc, Basic::Double);
    refused(Op::Replace, Basic::Lb);
    let error = check_swap(Basic::Double.into()).unwrap_err();
    assert_eq!(error.class(), Class::Type);
    assert!(check_swap(Basic::Byte.into()).is_ok());
    for (index, op) in Op::ALL.iter().enumerate() {
        assert_eq!((usize::from(op.wire()), Op::from_wire(op.wire())), (index + 1, Some(*op)));
    }
    assert_eq!((Op::from_wire(0), Op::from_wire(15)), (None, None));
}

#[test]
fn only_types_of_one_predefined_type_have_a_leaf() {
    let of = |datatype: Datatype| {
        Committed::new(&datatype, &Architecture::X86_64).unwrap().form().single_leaf()
    };
    let (int, double) = (Datatype::int(), Datatype::double());
    assert_eq!(
        of(Datatype::struct_(&[2, 0], &[0, 8], &[int.clone(), double.clone()]).unwrap()),
        Some(Basic::Int.into())
    );
    assert_eq!(
        of(Datatype::struct_(&[1, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap()),
        None
    );
    assert_eq!(of(Datatype::contiguous(0, &double).unwrap()), None);
    assert_eq!(
        of(Datatype::contiguous(3, &Basic::DoubleInt.into()).unwrap()),
        Some(Basic::DoubleInt.into())
    );
    assert_eq!(of(Datatype::struct_(&[1, 1], &[0, 8], &[double, int]).unwrap()), None);
}

#[test]
fn compare_and_swap_swaps_equal_values() {
    let long = Swap::new(Basic::Long.into(), &Architecture::S390X).unwrap();
    let mut memory = 7i64.to_be_bytes();
    let mut old = [0; 8];
    let mut swap = |compare: i64, new: i64| {
        long.apply(
            &mut ViewMut::new(&mut memory),
            &compare.to_be_bytes(),
            &new.to_be_bytes(),
            &mut old,
        )
        .unwrap();
        i64::from_be_bytes(old)
    };
    assert_eq!([swap(8, 1), swap(7, 2), swap(7, 3), swap(2, 4), swap(0, 0)], [7, 7, 2, 2, 4]);
    // All representations of true are equal.
    let logical = Swap::new(Basic::Logical.into(), &Architecture::X86_64).unwrap();
    let (mut memory, mut old) = (5i32.to_le_bytes(), [0; 4]);
    logical.apply(&mut ViewMut::new(&mut memory), &1i32.to_le_bytes(), &[0; 4], &mut old).unwrap();
    assert_eq!((i32::from_le_bytes(old), memory), (5, [0; 4]));
}

#[test]
fn a_combiner_does_what_its_reduction_does() {
    let here = Architecture::NATIVE;
    let mut random = Random::new(1, Options::default());
    let mut found = 0;
    for (&op, &basic) in Op::ALL.iter().flat_map(|op| Basic::ALL.iter().map(move |of| (op, of))) {
        let Ok(reduction) = Reduction::new(op, basic.into(), &here) else { continue };
        let Some(combiner) = reduction.combiner() else { continue };
        found += 1;
        for elements in [1, 2, 7] {
            let bytes = elements * reduction.element();
            let mut draw = || (0..bytes).map(|_| random.below(4) as u8).collect::<Vec<u8>>();
            let (operands, mut memory) = (draw(), draw());
            let mut wanted = memory.clone();
            reduction
                .combine_packed(View::new(&operands), &mut ViewMut::new(&mut wanted), bytes)
                .unwrap();
            let short = &operands[1..];
            let combine = |operands, memory: &mut Vec<u8>| {
                combiner.combine(View::new(operands), &mut ViewMut::new(memory), bytes)
            };
            assert_eq!(combine(short, &mut memory).unwrap_err().class(), Class::Buffer);
            combine(&operands, &mut memory).unwrap();
            assert_eq!(memory, wanted, "{op:?} {basic}");
        }
    }
    assert!(found > 200, "{found}");
}

#[test]
fn markers_are_no_operands() {
    for marker in [Basic::Lb, Basic::Ub] {
        let here = Architecture::NATIVE;
        let error = Stage::new(marker.into(), &here, &here).unwrap_err();
        assert_eq!(error.class(), Class::Type);
        assert!(error.to_string().contains("holds no data"), "{error}");
    }
}

#[test]
fn operands_outside_of_memory_are_refused() {
    let sum = Reduction::new(Op::Sum, Basic::Int.into(), &Architecture::NATIVE).unwrap();
    let operands = [0; 16];
    let mut memory = [0; 12];
    let error = sum.combine(View::new(&operands), &mut ViewMut::new(&mut memory), 4).unwrap_err();
    assert_eq!(error.class(), Class::Buffer);
    let ints =
        Committed::new(&Datatype::contiguous(3, &Datatype::int()).unwrap(), &Architecture::NATIVE)
            .unwrap();
    let mut sides = Sides { program: ints.native(), count: 1, memory: ViewMut::new(&mut memory) };
    for (position, bytes) in [(0, 16), (2, 4), (0, 6), (u64::MAX, 4)] {
        let error = sum.apply(&mut sides, position, View::new(&operands), bytes, None).unwrap_err();
        assert!(matches!(error, Error::Position { .. }), "{position} {bytes}: {error}");
    }
    let stage =
        Stage::new(Basic::Int.into(), &Architecture::NATIVE, &Architecture::NATIVE).unwrap();
    let error =
        sum.take(&stage, &mut sides, 2, &operands[..4], &mut Carry::default(), None).unwrap_err();
    assert!(matches!(error, Error::Position { .. }));
    // Operands of another size, so the place in the memory's representation would overflow.
    let wide = Stage::new(Basic::Long.into(), &Architecture::M68K, &Architecture::X86_64).unwrap();
    let longs = Committed::new(&Datatype::long(), &Architecture::X86_64).unwrap();
    let sum = Reduction::new(Op::Sum, Basic::Long.into(), &Architecture::X86_64).unwrap();
    let mut sides = Sides { program: longs.native(), count: 1, memory: ViewMut::new(&mut memory) };
    for (position, bytes) in [(u64::MAX - 3, 4), (u64::MAX - 3, 0), (8, 4)] {
        let operands = &operands[..bytes];
        let error = sum
            .take(&wide, &mut sides, position, operands, &mut Carry::default(), None)
            .unwrap_err();
        assert!(matches!(error, Error::Position { .. }), "{position}: {error}");
        assert!(error.to_string().contains("1 elements of 4 bytes"), "{error}");
    }
}
