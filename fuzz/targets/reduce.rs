//! Reductions with a peer's operands: every operation on every type, between any two machines. The
//! memory and the fetched values are the same however the operands are cut.
//!
//! The input is the operation, the type, the machines of both sides, the layout of the memory and
//! the length of the pieces, in one byte each, and the operands.
#![no_main]

use longshore_fuzz as _;
use shipable::reduce::{Carry, Op, Reduction, Sides, Stage};
use shipable::{Architecture, Basic, Committed, Datatype, Leaf, Result, ViewMut};

/// Contiguous elements, elements with gaps, or elements in reverse order.
fn layout(kind: u8, count: i64, element: &Datatype) -> Result<Datatype> {
    let stride = [1, 3, -2][usize::from(kind % 3)];
    Datatype::vector(count, 1, stride, element)
}

/// The memory and the fetched values after a stream that is cut into pieces of some bytes, and
/// whether its operands were accepted.
fn outcome(
    (reduction, stage): (&Reduction, &Stage),
    datatype: &Committed,
    operands: &[u8],
    piece: usize,
) -> (Vec<u8>, Vec<u8>, bool) {
    let Ok(range) = datatype.native().range(1) else { return Default::default() };
    let length = usize::try_from(range.end - range.start).expect("a small type");
    let mut memory: Vec<u8> = (0..length).map(|at| (at * 37 % 251) as u8).collect();
    let (mut carry, mut fetched, mut position) = (Carry::default(), Vec::new(), 0);
    let mut accepted = true;
    for part in operands.chunks(piece) {
        let view = ViewMut::new(&mut memory).shifted(-range.start).expect("a small type");
        let mut sides = Sides { program: datatype.native(), count: 1, memory: view };
        let taken =
            reduction.take(stage, &mut sides, position, part, &mut carry, Some(&mut fetched));
        accepted &= taken.is_ok();
        if !accepted {
            break;
        }
        position += part.len() as u64;
    }
    (memory, fetched, accepted)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&[op, basic, from, to, kind, piece], operands)) = bytes.split_first_chunk() else {
        return;
    };
    let (Some(op), Some(basic)) = (Op::from_wire(op), Basic::from_wire(basic)) else { return };
    let machines = Architecture::all();
    let machine = |index: u8| &machines[usize::from(index) % machines.len()];
    let leaf = Leaf::from(basic);
    let (Ok(reduction), Ok(stage)) =
        (Reduction::new(op, leaf, machine(to)), Stage::new(leaf, machine(from), machine(to)))
    else {
        return;
    };
    // The last operands may be one too many for the memory.
    let count = (operands.len() as u64 / stage.element()).max(1) as i64;
    let datatype = layout(kind, count, &Datatype::basic(basic));
    let Ok(datatype) = datatype.and_then(|datatype| Committed::new(&datatype, machine(to))) else {
        return;
    };
    let whole = outcome((&reduction, &stage), &datatype, operands, operands.len().max(1));
    let cut = outcome((&reduction, &stage), &datatype, operands, usize::from(piece) + 1);
    // Sums and products of floats that aren't numbers have any of their operands' bits.
    let is_exact = basic.is_integer() || !matches!(op, Op::Sum | Op::Prod);
    assert_eq!(whole.2, cut.2, "{op:?} of {basic:?}");
    assert!(!is_exact || whole == cut, "{op:?} of {basic:?}: {whole:?}\n{cut:?}");
});
