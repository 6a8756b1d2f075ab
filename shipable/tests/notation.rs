//! The text of every constructor, and of the types printed in 1995 but for their numbers.

use std::collections::HashMap;

use shipable::oracle::{Options, Random, cases};
use shipable::{Datatype, Distribution, Order, Result};

fn prints(made: Result<Datatype>, text: &str) {
    assert_eq!(made.unwrap().to_string(), text);
}

#[test]
fn every_constructor_has_its_text() {
    let (d, i, c) = (&Datatype::double(), &Datatype::int(), &Datatype::char());
    prints(Ok(d.clone()), "d");
    prints(Datatype::contiguous(0, d), "U1(0d)");
    prints(Datatype::dup(i), "U1(D:i)");
    prints(Datatype::vector(2, 3, -4, d), "U1(V:d:2:3:-4)");
    prints(Datatype::hvector(2, 3, 36, d), "U1(HV:d:2:3:36)");
    prints(Datatype::indexed(&[3, 1], &[36, 0], d), "U1(X:d:2:3/36,1/0)");
    prints(Datatype::indexed(&[], &[], d), "U1(X:d:0)");
    prints(Datatype::hindexed(&[3], &[-1], d), "U1(HX:d:1:3/-1)");
    prints(Datatype::indexed_block(2, &[5, -6], d), "U1(XB:d:2:2:5,-6)");
    prints(Datatype::indexed_block(2, &[], d), "U1(XB:d:0:2)");
    prints(Datatype::hindexed_block(2, &[5], d), "U1(HXB:d:1:2:5)");
    prints(Datatype::struct_(&[], &[], &[]), "U1(S:0)");
    prints(Datatype::simple_struct(&[2, 1], &[d.clone(), c.clone()]), "U1(SS:2:d/2,c/1)");
    prints(Datatype::simple_struct(&[], &[]), "U1(SS:0)");
    prints(Datatype::resized(-8, 24, d), "U1(RZ:d:-8:24)");
    let made = Datatype::subarray(&[4, 6], &[2, 3], &[1, 0], Order::Fortran, d);
    prints(made, "U1(SA:d:F:2:4/2/1,6/3/0)");
    let (block, cyclic, whole) = (Distribution::Block, Distribution::Cyclic, Distribution::None);
    let made = Datatype::darray(
        6,
        5,
        &[8, 9, 2],
        &[block, cyclic, whole],
        &[None, Some(2), None],
        &[2, 3, 1],
        Order::C,
        i,
    );
    prints(made, "U1(DA:i:C:6:5:3:8/B/*/2,9/C/2/3,2/N/*/1)");
    prints(Datatype::f90_real(Some(15), None), "U1(FR:15:*)");
    prints(Datatype::f90_complex(None, Some(30)), "U1(FC:*:30)");
    prints(Datatype::f90_integer(9), "U1(FI:9)");
    prints(Datatype::value_index(d, &Datatype::long()), "U1(VI:d:l)");
}

#[test]
fn the_strings_of_1995() {
    let record = Datatype::struct_(&[1, 1], &[0, 8], &[Datatype::double(), Datatype::char()]);
    let record = &record.unwrap();
    let hvector =
        |count, blocklength, stride| Datatype::hvector(count, blocklength, stride, record);
    prints(Datatype::contiguous(3, record), "U1(3U2(S:2:d/1/0,c/1/8))");
    prints(hvector(2, 3, 36), "U1(HV:U2(S:2:d/1/0,c/1/8):2:3:36)");
    prints(hvector(3, 1, -18), "U1(HV:U2(S:2:d/1/0,c/1/8):3:1:-18)");
    prints(Datatype::indexed(&[3, 1], &[36, 0], record), "U1(X:U2(S:2:d/1/0,c/1/8):2:3/36,1/0)");
    let marked = Datatype::struct_(&[1, 1], &[-3, 0], &[Datatype::lb(), Datatype::int()]);
    prints(Datatype::contiguous(2, &marked.unwrap()), "U1(2U2(S:2:LB/1/-3,i/1/0))");
    let line = Datatype::vector(9, 1, 2, &Datatype::real()).unwrap();
    let plane = Datatype::hvector(9, 1, 400, &line).unwrap();
    prints(
        Datatype::hvector(9, 1, 40_000, &plane),
        "U1(HV:U2(HV:U3(V:R:9:1:2):9:1:400):9:1:40000)",
    );
    let members = [Datatype::int(), Datatype::double(), Datatype::char(), Datatype::ub()];
    prints(
        Datatype::struct_(&[1, 6, 7, 1], &[0, 8, 56, 64], &members),
        "U1(S:4:i/1/0,d/6/8,c/7/56,UB/1/64)",
    );
    prints(
        Datatype::struct_(&[1, 6, 7], &[96, 104, 152], &members[..3]),
        "U1(S:3:i/1/96,d/6/104,c/7/152)",
    );
}

#[test]
fn equal_types_print_equal_strings_however_they_are_shared() {
    let pair = || Datatype::contiguous(2, &Datatype::int()).unwrap();
    let shared = pair();
    let apart = Datatype::struct_(&[1, 1], &[0, 8], &[pair(), pair()]).unwrap();
    let together = Datatype::struct_(&[1, 1], &[0, 8], &[shared.clone(), shared]).unwrap();
    assert_eq!(apart, together);
    assert_eq!(apart.to_string(), "U1(S:2:U2(2i)/1/0,U2/1/8)");
    assert_eq!(together.to_string(), apart.to_string());
}

#[test]
fn unequal_types_print_unequal_strings() {
    let mut printed: HashMap<String, Datatype> = HashMap::new();
    let mut random = Random::new(3, Options { items: 4, depth: 2, ..Options::default() });
    for _ in 0..cases(3000) {
        let datatype = random.datatype();
        let known = printed.entry(datatype.to_string()).or_insert_with(|| datatype.clone());
        // Legacy constructors print as the others do, and nothing else may.
        let same = known.signature() == datatype.signature();
        let here = shipable::Architecture::NATIVE;
        assert!(same && known.bounds(&here) == datatype.bounds(&here), "{datatype}");
    }
}
