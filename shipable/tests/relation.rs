//! Tests of the relation between the elements of a datatype in two memories, against the oracle.

use shipable::datatype::Node;
use shipable::oracle::{self, Item, Options, Random, each_seed};
use shipable::relation::Difference;
use shipable::{Architecture, Basic, Committed, Datatype, Relation};

type A = Architecture;

fn committed(datatype: &Datatype, here: &A) -> Committed {
    Committed::new(datatype, here).unwrap()
}

fn relation(datatype: &Datatype, here: A, there: A) -> Relation {
    committed(datatype, &here).relation(&there)
}

/// Whether two items have the same bytes. The order of one byte doesn't matter.
fn is_same(near: &Item, far: &Item) -> bool {
    let (near, far) = (near.scalar, far.scalar);
    let is_like = (near.value, near.size) == (far.value, far.size);
    is_like && (near.size == 1 || near.order == far.order)
}

/// The relation by the type maps of two elements in both memories, item by item.
fn expected(datatype: &Datatype, [here, there]: [&A; 2]) -> Relation {
    let [near, far] = [here, there].map(|at| oracle::expand(datatype, at, 2).unwrap());
    let mut items = near.iter().zip(&far);
    if !items.clone().all(|(near, far)| is_same(near, far)) {
        return Relation::Converted;
    }
    match items.all(|(near, far)| near.offset == far.offset) {
        true => Relation::Equal,
        false => Relation::Moved,
    }
}

/// Whether all items of two elements lie at the same offsets in both memories.
fn lies_same(datatype: &Datatype, [here, there]: [&A; 2]) -> bool {
    let [near, far] = [here, there].map(|at| oracle::expand(datatype, at, 2).unwrap());
    near.iter().zip(&far).all(|(near, far)| near.offset == far.offset)
}

fn pair(random: &mut Random) -> [A; 2] {
    let near = random.architecture();
    // Pairs that differ in little are the ones that a wrong answer is likely for.
    let alike = [A::X86_64, A::AARCH64, A::LOONGARCH64, A::I686, A::ARMHF, A::MACOS, A::WIN64];
    match random.chance(2) {
        true => [*random.pick(&alike), *random.pick(&alike)],
        false => [near, random.architecture()],
    }
}

#[test]
fn the_relation_of_a_portable_type_is_that_of_its_type_maps() {
    let options = Options { portable: true, items: 40, ..Options::default() };
    let found = each_seed(4000, |seed| {
        let mut random = Random::new(seed, options);
        let [here, there] = pair(&mut random);
        random.options.architecture = here;
        let datatype = random.datatype();
        let relation = relation(&datatype, here, there);
        let expected = expected(&datatype, [&here, &there]);
        assert_eq!(relation, expected, "{datatype} on {here} and {there}");
        let back = committed(&datatype, &there).relation(&here);
        assert_eq!(back, relation, "{datatype} on {there} and {here}");
        relation
    });
    // A relation that never occurred would not have been tested.
    for relation in [Relation::Equal, Relation::Moved, Relation::Converted] {
        assert!(found.len() < 500 || found.contains(&relation), "{relation}");
    }
}

/// The reason for which an equal relation allows a copy: the program that converts between the two
/// memories moves bytes, and moves each to the offset from which it comes.
#[test]
fn elements_of_equal_relation_are_converted_by_a_copy() {
    let options = Options { portable: true, items: 30, ..Options::default() };
    let copied = each_seed(2000, |seed| {
        let mut random = Random::new(seed, options);
        let [here, there] = pair(&mut random);
        random.options.architecture = here;
        let datatype = random.datatype();
        let near = committed(&datatype, &here);
        let same_items = near.comparison(&there).unwrap().same_items;
        let program = near.program(&there).unwrap();
        assert_eq!(same_items, program.is_all_copy(), "{datatype} on {here} and {there}");
        if near.relation(&there) != Relation::Equal {
            return false;
        }
        // The bytes that conversion by the oracle puts at the other memory.
        let range = near.native().range(2).unwrap();
        let origin = (-range.start).max(0) as usize;
        let length = origin + range.end.max(0) as usize;
        let memory = random.bytes(length);
        let packed = oracle::pack(&datatype, 2, (&here, &memory, origin), &there).unwrap();
        let (packed, None) = packed else { panic!("{datatype}: a value is refused") };
        let mut far = vec![0xa5; length];
        let place = (&there, &mut far[..], origin);
        let refused = oracle::unpack(&datatype, 2, place, (&there, &packed)).unwrap();
        assert!(refused.is_none());
        let mut copied = vec![0xa5; length];
        for item in oracle::expand(&datatype, &here, 2).unwrap() {
            let start = (origin as i64 + item.offset) as usize;
            let end = start + usize::from(item.scalar.size);
            copied[start..end].copy_from_slice(&memory[start..end]);
        }
        assert_eq!(far, copied, "{datatype} on {here} and {there}");
        true
    });
    assert!(copied.len() < 500 || copied.contains(&true));
}

/// A random struct of C with nested structs and arrays: as a portable type, and with the
/// displacements in bytes of `here`.
fn c_struct(random: &mut Random, here: &A, depth: u32) -> (Datatype, Datatype) {
    let basics = [
        Basic::Char,
        Basic::Short,
        Basic::Int,
        Basic::Long,
        Basic::LongLong,
        Basic::Float,
        Basic::Double,
        Basic::LongDouble,
        Basic::Wchar,
        Basic::CBool,
        Basic::Aint,
        Basic::DoubleInt,
        Basic::CDoubleComplex,
    ];
    let few = if random.chance(2) { &basics[..3] } else { &basics[..] };
    let (mut portable, mut placed) = (Vec::new(), Vec::new());
    let mut lengths = Vec::new();
    for _ in 0..1 + random.below(4) {
        let (simple, byte) = match depth > 0 && random.chance(4) {
            true => c_struct(random, here, depth - 1),
            false => {
                let basic: Datatype = (*random.pick(few)).into();
                (basic.clone(), basic)
            }
        };
        lengths.push(1 + random.below(3) as i64);
        portable.push(simple);
        placed.push(byte);
    }
    let simple = Datatype::simple_struct(&lengths, &portable).unwrap();
    // The displacements by the oracle, one member at a time.
    let mut items = 0;
    let all = oracle::expand(&simple, here, 1).unwrap();
    let displacements: Vec<i64> = lengths
        .iter()
        .zip(&portable)
        .map(|(length, member)| {
            let first = oracle::expand(member, here, 1).unwrap()[0].offset;
            let at = all[items].offset - first;
            items += oracle::expand(member, here, *length as u64).unwrap().len();
            at
        })
        .collect();
    let byte = Datatype::struct_(&lengths, &displacements, &placed).unwrap();
    let bounds = oracle::bounds(&simple, here).unwrap();
    let byte = match random.chance(2) {
        true => Datatype::resized(0, bounds.ub, &byte).unwrap(),
        false => byte,
    };
    match random.below(4) {
        0 => (Datatype::contiguous(3, &simple).unwrap(), Datatype::contiguous(3, &byte).unwrap()),
        1 => {
            (Datatype::vector(2, 1, 2, &simple).unwrap(), Datatype::vector(2, 1, 2, &byte).unwrap())
        }
        _ => (simple, byte),
    }
}

#[test]
fn byte_displacements_of_c_are_right_where_c_gives_the_same() {
    let found = each_seed(6000, |seed| {
        let mut random = Random::new(seed, Options::default());
        let [here, there] = pair(&mut random);
        let (portable, byte) = c_struct(&mut random, &here, 2);
        // Resized members leave a struct without padding, unless it is resized, too. Then an array
        // of it isn't C's.
        let [made, stated] = [&portable, &byte].map(|it| oracle::expand(it, &here, 2).unwrap());
        if made != stated {
            return None;
        }
        let comparison = committed(&byte, &here).comparison(&there).unwrap();
        let both = [&here, &there];
        let is_right = lies_same(&portable, both);
        assert_eq!(comparison.difference.is_none(), is_right, "{byte} on {here} and {there}");
        if is_right {
            // The displacements as they are lead to the items of C's struct over there.
            let [made, stated] =
                [&portable, &byte].map(|it| oracle::expand(it, &there, 2).unwrap());
            assert_eq!(made, stated, "{byte} on {here} and {there}");
            let there = committed(&byte, &here).form().clone().at_home(&there);
            assert_eq!(there.signature().unwrap(), byte.signature());
        }
        let expected = expected(&portable, both);
        assert_eq!(comparison.relation(), expected, "{byte} on {here} and {there}");
        // The first difference is the one that the type maps have.
        if let Some(Difference::Offset { here: near, there: far, .. }) = comparison.difference {
            let [first, second] = both.map(|at| oracle::expand(&portable, at, 1).unwrap());
            let all = first.iter().zip(&second).map(|(a, b)| (a.offset, b.offset));
            let different = all.clone().find(|(a, b)| a != b);
            assert_eq!(Some((near, far)), different, "{byte} on {here} and {there}");
        }
        Some(expected)
    });
    let found: Vec<_> = found.into_iter().flatten().collect();
    for relation in [Relation::Equal, Relation::Moved, Relation::Converted] {
        assert!(found.len() < 500 || found.contains(&relation), "{relation}");
    }
}

/// Whether each basic type has the same size and alignment in both memories.
fn all_lie_same(datatype: &Datatype, here: &A, there: &A) -> bool {
    let is_same = |leaf| {
        let [near, far] = [here, there].map(|at| at.leaf(leaf).unwrap());
        (near.size, near.align, near.leading_align) == (far.size, far.align, far.leading_align)
    };
    match datatype.node() {
        Node::Leaf(leaf) => is_same(*leaf),
        Node::ValueIndex { value, index } => is_same((*value).into()) && is_same((*index).into()),
        node => node.children().iter().all(|child| all_lie_same(child, here, there)),
    }
}

#[test]
fn other_byte_displacements_are_right_only_where_all_types_lie_the_same() {
    let found = each_seed(4000, |seed| {
        let options = Options { portable: false, items: 20, depth: 3, ..Options::default() };
        let mut random = Random::new(seed, options);
        let [here, there] = pair(&mut random);
        random.options.architecture = here;
        let datatype = random.datatype();
        let compared = committed(&datatype, &here);
        if compared.tag() == shipable::Tag::Portable {
            return None;
        }
        let comparison = compared.comparison(&there).unwrap();
        let is_right = comparison.difference.is_none();
        if all_lie_same(&datatype, &here, &there) {
            assert!(is_right, "{datatype} on {here} and {there}: {comparison:?}");
        }
        // Otherwise the displacements may be those of C's rule by chance.
        if is_right {
            assert!(lies_same(&datatype, [&here, &there]), "{datatype} on {here} and {there}");
        }
        Some(comparison.difference.is_none())
    });
    let found: Vec<_> = found.into_iter().flatten().collect();
    assert!(found.len() < 200 || found.contains(&true) && found.contains(&false));
}

#[test]
fn x86_64_and_aarch64_differ_in_long_double_only() {
    let (x86, arm) = (A::X86_64, A::AARCH64);
    for &basic in Basic::ALL.iter().filter(|basic| !basic.is_marker()) {
        use Basic::*;
        let is_long_double =
            matches!(basic, LongDouble | CLongDoubleComplex | CxxLongDoubleComplex | LongDoubleInt);
        let expected = if is_long_double { Relation::Converted } else { Relation::Equal };
        assert_eq!(relation(&basic.into(), x86, arm), expected, "{basic}");
        assert_eq!(relation(&basic.into(), arm, x86), expected, "{basic}");
    }
    let record =
        Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::int(), Datatype::double()]).unwrap();
    assert_eq!(relation(&record, x86, arm), Relation::Equal);
    // Packed by hand: the basic types lie the same in C, so the displacements hold.
    let packed =
        Datatype::struct_(&[1, 1], &[0, 4], &[Datatype::int(), Datatype::double()]).unwrap();
    assert_eq!(relation(&packed, x86, arm), Relation::Equal);
    let long = Datatype::struct_(&[1, 1], &[0, 16], &[Datatype::int(), Basic::LongDouble.into()]);
    let comparison = committed(&long.unwrap(), &x86).comparison(&arm).unwrap();
    assert_eq!((comparison.same_items, comparison.difference), (false, None));
}

#[test]
fn types_of_other_sizes_formats_or_places_are_not_equal() {
    use Relation::{Converted, Equal, Moved};
    let basic = |basic: Basic| Datatype::from(basic);
    let record = Datatype::simple_struct(&[1, 1], &[Datatype::int(), Datatype::double()]).unwrap();
    let wide = A::X86_64.with_fortran({
        let mut fortran = *A::X86_64.fortran();
        fortran.truth = 0xffff_ffff;
        fortran
    });
    let wide = wide.unwrap();
    for (datatype, here, there, expected) in [
        (basic(Basic::Long), A::X86_64, A::I686, Converted),
        (basic(Basic::Aint), A::X86_64, A::I686, Converted),
        (basic(Basic::Wchar), A::X86_64, A::WIN64, Converted),
        (basic(Basic::Wchar), A::X86_64, A::AARCH64, Equal),
        (basic(Basic::Char), A::X86_64, A::AARCH64, Equal),
        // The order of one byte doesn't matter.
        (basic(Basic::Char), A::X86_64, A::S390X, Equal),
        (basic(Basic::CBool), A::X86_64, A::S390X, Equal),
        (basic(Basic::Int), A::X86_64, A::S390X, Converted),
        (basic(Basic::LongDouble), A::X86_64, A::I686, Converted),
        (basic(Basic::LongDouble), A::AARCH64, A::LOONGARCH64, Equal),
        (basic(Basic::CLongDoubleComplex), A::X86_64, A::AARCH64, Converted),
        (basic(Basic::CLongDoubleComplex), A::X86_64, A::I686, Converted),
        // double aligns to 4, which moves nothing here.
        (basic(Basic::DoubleInt), A::I686, A::ARMHF, Moved),
        (basic(Basic::Double), A::I686, A::X86_64, Equal),
        (record.clone(), A::I686, A::X86_64, Moved),
        (record.clone(), A::ARMHF, A::X86_64, Equal),
        (basic(Basic::Logical), A::X86_64, wide, Converted),
        (basic(Basic::Integer), A::X86_64, wide, Equal),
        // What has no elements has no bytes.
        (Datatype::contiguous(0, &basic(Basic::Long)).unwrap(), A::X86_64, A::I686, Equal),
    ] {
        assert_eq!(relation(&datatype, here, there), expected, "{datatype}: {here}, {there}");
        assert_eq!(relation(&datatype, there, here), expected, "{datatype}: {there}, {here}");
    }
}

#[test]
fn a_difference_names_the_first_member_and_both_offsets() {
    let (char, int, double) = (Datatype::char(), Datatype::int(), Datatype::double());
    let of = |lengths: &[i64], places: &[i64], members: &[Datatype]| {
        let datatype = Datatype::struct_(lengths, places, members).unwrap();
        let comparison = committed(&datatype, &A::X86_64).comparison(&A::I686).unwrap();
        comparison.difference.map(|it| it.text("x86-64", "i686")).unwrap_or_default()
    };
    assert_eq!(of(&[1, 2], &[0, 4], &[char.clone(), int.clone()]), "");
    assert_eq!(
        of(&[1, 1, 1], &[0, 4, 8], &[char.clone(), int.clone(), double.clone()]),
        // The struct has 16 bytes in both.
        ""
    );
    assert_eq!(
        of(&[1, 1], &[0, 8], &[char.clone(), double.clone()]),
        "member 1 (MPI_DOUBLE) lies at offset 8 on x86-64 and at offset 4 on i686"
    );
    assert_eq!(
        of(&[1, 1], &[0, 8], &[double.clone(), int.clone()]),
        "an element has 16 bytes on x86-64 and 12 on i686"
    );
    // The displacement isn't C's, so that of the other machine is unknown.
    assert_eq!(
        of(&[1, 1], &[0, 24], &[double.clone(), int.clone()]),
        "the displacements in bytes aren't those of a C struct, and MPI_DOUBLE has 8 bytes aligned \
         to 8 on x86-64 and 8 bytes aligned to 4 on i686"
    );
    // A stride in bytes is the program's own, whatever it is a multiple of.
    let pairs = Datatype::struct_(&[1, 2], &[0, 8], &[double, int]).unwrap();
    let strided = Datatype::hvector(2, 1, 32, &pairs).unwrap();
    let compared = committed(&strided, &A::X86_64).comparison(&A::I686).unwrap();
    assert!(matches!(compared.difference, Some(Difference::Unknown { .. })), "{compared:?}");
    let elements = Datatype::vector(2, 1, 2, &pairs).unwrap();
    let compared = committed(&elements, &A::X86_64).comparison(&A::I686).unwrap();
    assert_eq!(compared.relation(), Relation::Equal);
}
