//! Tests of the notation: the text of each constructor, the strings printed in 1995, and the errors
//! with their columns.

use std::collections::HashMap;

use shipable::notation::{self, MAX_LIST, MAX_TEXT, ParseProblem};
use shipable::oracle::{Options, Random, cases, each_seed};
use shipable::{Basic, Class, Datatype, Distribution, Error, Order, Result};

/// Checks that a type prints as this text, and that the text parses as this type.
fn prints(made: Result<Datatype>, text: &str) {
    let made = made.unwrap();
    assert_eq!(made.to_string(), text);
    assert_eq!(notation::parse(text).unwrap(), made);
}

/// Checks that a text is refused at this column, with an error that contains `says`.
fn refused(text: &str, column: usize, says: &str) {
    let error = notation::parse(text).expect_err(text);
    assert!(error.problem.to_string().contains(says), "{text}: {error}");
    assert_eq!(error.column, column, "{text}: {error}");
}

#[test]
fn every_constructor_prints_and_parses() {
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

/// Strings printed in 1995, the types that they denote, and their canonical texts.
fn printed_in_1995() -> Vec<(&'static str, Result<Datatype>, &'static str)> {
    let (int, double, char) = (Datatype::int(), Datatype::double(), Datatype::char());
    let record = &Datatype::struct_(&[1, 1], &[0, 8], &[double.clone(), char.clone()]).unwrap();
    let hvector =
        |count, blocklength, stride| Datatype::hvector(count, blocklength, stride, record);
    let marked = Datatype::struct_(&[1, 1], &[-3, 0], &[Datatype::lb(), int.clone()]).unwrap();
    let line = Datatype::vector(9, 1, 2, &Datatype::real()).unwrap();
    let plane = Datatype::hvector(9, 1, 400, &line).unwrap();
    let column = Datatype::vector(100, 1, 100, &Datatype::real()).unwrap();
    let members = [int, double, char, Datatype::ub()];
    vec![
        (
            "U594704(3U594608(S:2:d/1/0,c/1/8))",
            Datatype::contiguous(3, record),
            "U1(3U2(S:2:d/1/0,c/1/8))",
        ),
        (
            "U594704(HV:U594608(S:2:d/1/0,c/1/8):2:3:36)",
            hvector(2, 3, 36),
            "U1(HV:U2(S:2:d/1/0,c/1/8):2:3:36)",
        ),
        (
            "U594704(HV:U594608(S:2:d/1/0,c/1/8):3:1:-18)",
            hvector(3, 1, -18),
            "U1(HV:U2(S:2:d/1/0,c/1/8):3:1:-18)",
        ),
        (
            "U594704(X:U594608(S:2:d/1/0,c/1/8):2:3/36,1/0)",
            Datatype::indexed(&[3, 1], &[36, 0], record),
            "U1(X:U2(S:2:d/1/0,c/1/8):2:3/36,1/0)",
        ),
        (
            "U594704(2U594608(S:2:LB/1/-3,i/1/0))",
            Datatype::contiguous(2, &marked),
            "U1(2U2(S:2:LB/1/-3,i/1/0))",
        ),
        (
            "U329(HV:U3291(HV:U3292(V:R:9:1:2):9:1:400):9:1:40000)",
            Datatype::hvector(9, 1, 40_000, &plane),
            "U1(HV:U2(HV:U3(V:R:9:1:2):9:1:400):9:1:40000)",
        ),
        (
            "U331(HV:U3311(V:R:100:1:100):100:1:4)",
            Datatype::hvector(100, 1, 4, &column),
            "U1(HV:U2(V:R:100:1:100):100:1:4)",
        ),
        (
            "U333(S:4:i/1/0,d/6/8,c/7/56,UB/1/64)",
            Datatype::struct_(&[1, 6, 7, 1], &[0, 8, 56, 64], &members),
            "U1(S:4:i/1/0,d/6/8,c/7/56,UB/1/64)",
        ),
        (
            "U334(S:3:i/1/96,d/6/104,c/7/152)",
            Datatype::struct_(&[1, 6, 7], &[96, 104, 152], &members[..3]),
            "U1(S:3:i/1/96,d/6/104,c/7/152)",
        ),
    ]
}

#[test]
fn strings_printed_in_1995_parse() {
    for (printed, made, canonical) in printed_in_1995() {
        assert_eq!(notation::parse(printed), Ok(made.clone().unwrap()), "{printed}");
        prints(made, canonical);
    }
    // This string is defective in its source.
    let defective = "U594704(S:3:f/2/0,U594608(S:2:d/1/0,c/1/8)/1/16)";
    refused(defective, defective.len(), "a list of members states length 3, but has 2");
}

#[test]
fn every_basic_type_round_trips() {
    for &basic in Basic::ALL {
        let datatype = notation::parse(basic.code()).unwrap();
        assert!(datatype.is(&basic.into()), "{basic}");
        prints(Datatype::contiguous(3, &datatype), &format!("U1(3{})", basic.code()));
    }
}

/// In docs/notation.md, the examples must be canonical types, and the table of basic types
/// complete.
#[test]
fn documentation_matches_the_implementation() {
    let page = include_str!("../../docs/notation.md");
    let quoted = page.split('`').skip(1).step_by(2);
    let examples: Vec<_> = quoted.filter(|quoted| quoted.starts_with("U1(")).collect();
    assert!(examples.len() > 20);
    for example in examples {
        assert_eq!(notation::parse(example).unwrap().to_string(), example);
    }
    let cells: Vec<_> = page.split('|').map(|cell| cell.trim().replace('\\', "")).collect();
    for &basic in Basic::ALL {
        let attested = ["i", "d", "c", "f", "b", "P", "LD", "L", "R", "LB", "UB"];
        let star = if attested.contains(&basic.code()) { "*" } else { "" };
        let name = basic.mpi_name();
        let name = name.strip_prefix("MPI_").unwrap_or(name);
        let cell = format!("`{}`{star} {name}", basic.code());
        assert!(cells.contains(&cell), "{cell}");
    }
}

#[test]
fn other_texts_become_canonical() {
    let canonical = [
        ("U0(2d)", "U1(2d)"),
        ("U9223372036854775807(2d)", "U1(2d)"),
        ("U5(S:2:U9(2i)/1/0,U9/1/8)", "U1(S:2:U2(2i)/1/0,U2/1/8)"),
        // One type defined twice, under two numbers; and a reference across two levels.
        ("U5(S:2:U9(2i)/1/0,U8(2i)/1/8)", "U1(S:2:U2(2i)/1/0,U2/1/8)"),
        ("U1(S:2:U2(3U3(2i))/1/0,U3/1/8)", "U1(S:2:U2(3U3(2i))/1/0,U3/1/8)"),
        // MPI has a name for this pair.
        ("U1(VI:d:i)", "di"),
        ("U1(3U2(VI:d:i))", "U1(3di)"),
        ("U1(X:d:1:0/-9223372036854775808)", "U1(X:d:1:0/-9223372036854775808)"),
    ];
    for (text, printed) in canonical {
        assert_eq!(notation::parse(text).unwrap().to_string(), printed);
        assert_eq!(printed.parse::<Datatype>().unwrap().to_string(), printed);
    }
    // A reference gives the same object.
    let shared = notation::parse("U1(S:2:U2(2i)/1/0,U2/1/8)").unwrap();
    let children = shared.node().children();
    assert!(children[0].is(&children[1]));
}

#[test]
fn legacy_constructors_keep_their_combiners() {
    let d = &Datatype::double();
    let members = std::slice::from_ref(d);
    let pairs = [
        (Datatype::hvector_integer(2, 1, 9, d), Datatype::hvector(2, 1, 9, d)),
        (Datatype::hindexed_integer(&[1], &[9], d), Datatype::hindexed(&[1], &[9], d)),
        (Datatype::struct_integer(&[1], &[9], members), Datatype::struct_(&[1], &[9], members)),
    ];
    for (legacy, successor) in pairs {
        let (legacy, successor) = (legacy.unwrap(), successor.unwrap());
        assert_ne!(legacy, successor);
        assert_ne!(legacy.to_string(), successor.to_string());
        for datatype in [&legacy, &successor] {
            let parsed = notation::parse(&datatype.to_string()).unwrap();
            assert_eq!(parsed.combiner(), datatype.combiner());
            assert_eq!(parsed, *datatype);
        }
        let here = &shipable::Architecture::NATIVE;
        let flat = shipable::flat::pack(&legacy, here).unwrap();
        let (unpacked, _) = shipable::flat::unpack(flat.as_bytes(), here).unwrap();
        assert_eq!(unpacked, legacy);
    }
}

#[test]
fn invalid_words_and_numbers_are_refused_at_their_columns() {
    refused("", 1, "expected a type");
    refused("3", 1, "expected a type");
    refused("(3d)", 1, "expected a type");
    refused("x", 1, "no basic type has the code `x`");
    refused("U", 1, "no basic type has the code `U`");
    refused("U1x(3d)", 1, "no basic type has the code `U1x`");
    refused("MPI_INT", 1, "no basic type has the code `MPI`");
    refused(&"q".repeat(100), 1, "...");
    refused("dd", 1, "no basic type has the code `dd`");
    refused("d,", 2, "expected the end of the text, found `,`");
    refused("U1(3d))", 7, "expected the end of the text, found `)`");
    refused("U1(3d", 6, "expected `)`, found the end of the text");
    refused("U1(", 4, "expected a count or a constructor");
    refused("U1()", 4, "expected a count or a constructor");
    refused("U1(d)", 4, "expected a count or a constructor");
    refused("U1(W:d:1)", 4, "expected a count or a constructor");
    refused("U1(hv:d:1:1:1)", 4, "expected a count or a constructor");
    refused("U1(-3d)", 4, "expected a count or a constructor");
    refused("U1(3)", 5, "expected a type");
    // Blanks, and characters that aren't ASCII.
    refused(" d", 1, "a blank: the notation has none");
    refused("d ", 2, "a blank");
    refused("U1( 3d)", 4, "a blank");
    refused("U1(V:d: 2:3:4)", 8, "a blank");
    refused("U1(3d)\n", 7, "a blank");
    refused("U1(3\u{e9})", 5, "expected a type");
    refused("\u{661}", 1, "expected a type");
    // Signs and zeros.
    refused("U1(+3d)", 4, "expected a count or a constructor");
    refused("U1(V:d:+2:3:4)", 8, "count `+2` has a plus sign");
    refused("U1(V:d:2:3:+4)", 12, "stride `+4` has a plus sign");
    refused("U1(V:d:2:3:-0)", 12, "stride `-0` has a sign: write 0");
    refused("U1(V:d:2:3:-04)", 12, "leading zero");
    refused("U1(V:d:02:3:4)", 8, "count `02` has a leading zero");
    refused("U1(V:d:00:3:4)", 8, "leading zero");
    refused("U1(03d)", 4, "leading zero");
    refused("U01(3d)", 2, "type number `01` has a leading zero");
    refused("U1(V:d:2:-3:4)", 10, "blocklength `-3` is negative");
    refused("U1(V:d:2:3:--4)", 12, "expected a number (stride), found `-`");
    refused("U1(V:d:2:3:)", 12, "expected a number (stride), found `)`");
    refused("U1(V:d:2:0x3:4)", 11, "expected `:`, found `x3`");
    refused("U1(V:d:2:3:9223372036854775808)", 12, "does not fit 64 bits");
    refused("U1(V:d:2:3:-9223372036854775809)", 12, "does not fit 64 bits");
    refused("U99999999999999999999(3d)", 2, "does not fit 64 bits");
}

#[test]
fn incomplete_rules_are_refused() {
    refused("U1(V:d:2:3)", 11, "expected `:`, found `)`");
    refused("U1(V:d:2:3:4:5)", 13, "expected `)`, found `:`");
    refused("U1(V)", 5, "expected `:`");
    refused("U1(HV:2:3:4)", 7, "expected a type");
    refused("U1(X:d)", 7, "expected `:`");
    refused("U1(X:d:1:3)", 11, "expected `/`");
    refused("U1(X:d:1:3/4/5)", 13, "expected `)`");
    refused("U1(HX:d:1:-1/4)", 11, "is negative");
    refused("U1(S)", 5, "expected `:`");
    refused("U1(S:1:d/1)", 11, "expected `/`");
    refused("U1(S:1:d)", 9, "expected `/`");
    refused("U1(SS:1:d/1/0)", 12, "expected `)`");
    refused("U1(SS:1:1/d)", 9, "expected a type");
    refused("U1(XB:d:1:5)", 12, "a list of blocks states length 1, but has 0");
    refused("U1(XB:d:0)", 10, "expected `:`");
    refused("U1(HXB:d:1:5:)", 14, "expected a number (displacement)");
    refused("U1(D:)", 6, "expected a type");
    refused("U1(RZ:d:1)", 10, "expected `:`");
    refused("U1(SA:d:B:1:2/1/0)", 9, "an order (C or F)");
    refused("U1(SA:d:C:1:2/1)", 16, "expected `/`");
    refused("U1(SA:d:C:1:2/1/-1)", 17, "is negative");
    refused("U1(DA:d:C:2:0:1:4/X/*/2)", 19, "a distribution (B, C or N)");
    refused("U1(DA:d:C:2:0:1:4/B/-1/2)", 21, "is negative");
    refused("U1(DA:d:C:1:0:1:4/N/-/1)", 21, "a number (distribution argument)");
    refused("U1(DA:d:C:2:0:1:4/B/*)", 22, "expected `/`");
    refused("U1(FR:6)", 8, "expected `:`");
    refused("U1(FC:x:6)", 7, "expected a number (precision)");
    refused("U1(FR:6:4294967296)", 9, "larger than any kind");
    refused("U1(FI:*)", 7, "expected a number (range)");
    refused("U1(VI:d)", 8, "expected `:`");
}

#[test]
fn lists_of_another_length_than_stated_are_refused() {
    refused("U1(X:d:2:1/0)", 13, "a list of blocks states length 2, but has 1");
    refused("U1(X:d:1)", 9, "a list of blocks states length 1, but has 0");
    refused("U1(X:d:1:1/0,1/2)", 13, "a list of blocks states length 1, but has more");
    refused("U1(X:d:0:1/0)", 9, "a list of blocks states length 0, but has more");
    refused("U1(X:d:0:)", 9, "states length 0, but has more");
    refused("U1(X:d:1:1/0,)", 13, "states length 1, but has more");
    refused("U1(S:1:d/1/0,c/1/8)", 13, "a list of members states length 1, but has more");
    refused("U1(SA:d:C:2:2/1/0)", 18, "a list of dimensions states length 2, but has 1");
    refused("U1(DA:d:C:2:0:0)", 4, "at least one");
}

#[test]
fn references_to_undefined_types_are_refused() {
    refused("U1", 1, "U1 refers back to nothing");
    refused("U1(3U2)", 5, "U2 refers back to nothing");
    refused("U1(S:2:U2/1/0,U2(2i)/1/8)", 8, "U2 refers back to nothing");
    // A cycle, direct and through another type.
    refused("U1(3U1)", 5, "U1 is the type that begins at column 1");
    refused("U9(S:2:d/1/0,U2(3U9)/1/8)", 18, "U9 is the type that begins at column 1");
    refused("U1(3U1(2d))", 5, "U1 is already defined at column 1");
    refused("U1(S:2:U2(2i)/1/0,U2(2i)/1/8)", 19, "U2 is already defined at column 8");
}

#[test]
fn errors_of_constructors_are_passed_on() {
    let class = |text: &str, column: usize, says: &str| {
        refused(text, column, says);
        let error = notation::parse(text).unwrap_err();
        assert!(matches!(error.problem, ParseProblem::Refused(_)), "{error}");
        Error::from(error).class()
    };
    assert_eq!(class("U1(3U2(SA:d:C:1:2/3/0))", 8, "subsizes[0] is 3"), Class::Arg);
    assert_eq!(class("U1(SA:d:C:0)", 4, "no dimensions"), Class::Dims);
    assert_eq!(class("U1(DA:d:C:2:2:1:4/B/*/2)", 4, "rank is 2"), Class::Rank);
    assert_eq!(class("U1(FR:*:*)", 4, "both undefined"), Class::Arg);
    assert_eq!(class("U1(FI:39)", 4, "the widest INTEGER"), Class::Arg);
    assert_eq!(class("U1(VI:d:f)", 4, "make no pair"), Class::Type);
    assert_eq!(class("U1(VI:U2(2d):i)", 4, "make no pair"), Class::Type);
    assert_eq!(class("U1(RZ:d:1:9223372036854775807)", 4, "past 64 bits"), Class::Arg);
    // 2^64 items, in one constructor and in two.
    let product = "U1(V:d:4294967296:4294967296:1)";
    assert_eq!(class(product, 4, "does not fit 64 bits"), Class::ValueTooLarge);
    let product = "U1(3U2(9223372036854775807d))";
    assert_eq!(class(product, 4, "does not fit 64 bits"), Class::ValueTooLarge);
}

#[test]
fn limits_are_enforced_and_stated() {
    let nested = |definitions: usize, inner: &str| {
        let mut text: String = (1..=definitions).map(|n| format!("U{n}(1")).collect();
        text += inner;
        text + &")".repeat(definitions)
    };
    let deepest = Datatype::MAX_DEPTH - 1;
    // The stack is half the usual size of a thread's stack, and the code may be unoptimised. The
    // frames of a sanitizer are several times as long.
    let stack = if cfg!(sanitized) { 4 << 20 } else { 1 << 20 };
    std::thread::Builder::new()
        .stack_size(stack)
        .spawn(move || {
            let datatype = notation::parse(&nested(deepest, "d")).unwrap();
            assert_eq!(datatype.depth(), Datatype::MAX_DEPTH);
            assert_eq!(datatype.to_string(), nested(deepest, "d"));
            let error = notation::parse(&nested(deepest + 1, "d")).unwrap_err();
            assert!(error.to_string().contains("256"), "{error}");
            let endless = nested(100_000, "d");
            let error = notation::parse(&endless).unwrap_err();
            assert_eq!(error.problem, ParseProblem::TooDeep);
            assert_eq!(error.column - 1, endless.find("U257(").unwrap());
        })
        .unwrap()
        .join()
        .unwrap();
    let long = format!("U1({}d)", " ".repeat(MAX_TEXT));
    refused(&long, MAX_TEXT + 1, "bytes: at most");
    refused(&format!("U1(X:d:{})", MAX_LIST + 1), 8, "items: at most");
    refused("U1(X:d:9223372036854775807)", 8, "items: at most");
}

#[test]
fn random_types_round_trip() {
    each_seed(300, |seed| {
        let datatype = Random::new(seed, Options::default()).datatype();
        let text = datatype.to_string();
        let parsed = notation::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.to_string(), text, "seed {seed}");
        assert_eq!(parsed.signature(), datatype.signature(), "seed {seed}");
    });
}

/// Damaged texts either fail to parse at a column of the text, or parse as a type with its own
/// canonical text.
#[test]
fn damaged_text_never_panics() {
    each_seed(300, |seed| {
        let random = &mut Random::new(seed, Options { items: 40, ..Options::default() });
        let text = random.datatype().to_string();
        for _ in 0..20 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = *random.pick(b"U(:/,)09-*dSVXH"),
                    _ => bytes.insert(at, *random.pick(b"U(:/,)0129- ")),
                }
            }
            let damaged = String::from_utf8(bytes).unwrap();
            match notation::parse(&damaged) {
                Ok(datatype) => {
                    let printed = datatype.to_string();
                    assert_eq!(notation::parse(&printed).unwrap().to_string(), printed);
                }
                Err(error) => assert!((1..=damaged.len() + 1).contains(&error.column), "{error}"),
            }
        }
    });
}

#[test]
fn equal_types_print_equal_texts_whether_shared_or_not() {
    let pair = || Datatype::contiguous(2, &Datatype::int()).unwrap();
    let shared = pair();
    let apart = Datatype::struct_(&[1, 1], &[0, 8], &[pair(), pair()]).unwrap();
    let together = Datatype::struct_(&[1, 1], &[0, 8], &[shared.clone(), shared]).unwrap();
    assert_eq!(apart, together);
    assert_eq!(apart.to_string(), "U1(S:2:U2(2i)/1/0,U2/1/8)");
    assert_eq!(together.to_string(), apart.to_string());
}

fn described(made: Result<Datatype>, lines: &[&str]) {
    assert_eq!(made.unwrap().describe().to_string(), lines.join("\n"));
}

#[test]
fn every_constructor_is_described() {
    let (d, c) = (&Datatype::double(), &Datatype::char());
    let oldtype = "  oldtype MPI_DOUBLE";
    let one = |made: Result<Datatype>, first: &str| described(made, &[first, oldtype]);
    described(Ok(d.clone()), &["MPI_DOUBLE"]);
    one(Datatype::contiguous(0, d), "U1: MPI_Type_contiguous, count 0");
    one(Datatype::dup(d), "U1: MPI_Type_dup");
    let first = "U1: MPI_Type_vector, count 2, blocklength 3, stride -4 extents";
    one(Datatype::vector(2, 3, -4, d), first);
    let first = "U1: MPI_Type_create_hvector, count 2, blocklength 3, stride 1 byte";
    one(Datatype::hvector(2, 3, 1, d), first);
    let first = "U1: MPI_TYPE_HVECTOR of MPI-1, count 2, blocklength 3, stride 36 bytes";
    one(Datatype::hvector_integer(2, 3, 36, d), first);
    one(Datatype::resized(-8, 24, d), "U1: MPI_Type_create_resized, lb -8 bytes, extent 24 bytes");
    let extents =
        ["  blocklength 3, displacement 36 extents", "  blocklength 1, displacement 1 extent"];
    let bytes = ["  blocklength 3, displacement 36 bytes", "  blocklength 1, displacement 1 byte"];
    let indexed = |first: &str, blocks: [&str; 2], made: Result<Datatype>| {
        described(made, &[first, blocks[0], blocks[1], oldtype]);
    };
    let (lengths, displacements, types) = (&[3, 1], &[36, 1], &[d.clone(), c.clone()]);
    let made = Datatype::indexed(lengths, displacements, d);
    indexed("U1: MPI_Type_indexed, count 2", extents, made);
    let made = Datatype::hindexed(lengths, displacements, d);
    indexed("U1: MPI_Type_create_hindexed, count 2", bytes, made);
    let made = Datatype::hindexed_integer(lengths, displacements, d);
    indexed("U1: MPI_TYPE_HINDEXED of MPI-1, count 2", bytes, made);
    let displaced = ["  displacement 36 extents", "  displacement 1 extent"];
    let made = Datatype::indexed_block(7, displacements, d);
    indexed("U1: MPI_Type_create_indexed_block, count 2, blocklength 7", displaced, made);
    let displaced = ["  displacement 36 bytes", "  displacement 1 byte"];
    let made = Datatype::hindexed_block(7, displacements, d);
    indexed("U1: MPI_Type_create_hindexed_block, count 2, blocklength 7", displaced, made);
    let members = [format!("{}: MPI_DOUBLE", bytes[0]), format!("{}: MPI_CHAR", bytes[1])];
    let members = |first| vec![first, members[0].as_str(), members[1].as_str()];
    let made = Datatype::struct_(lengths, displacements, types);
    described(made, &members("U1: MPI_Type_create_struct, count 2"));
    let made = Datatype::struct_integer(lengths, displacements, types);
    described(made, &members("U1: MPI_TYPE_STRUCT of MPI-1, count 2"));
    described(
        Datatype::simple_struct(lengths, types),
        &["U1: simple struct, count 2", "  blocklength 3: MPI_DOUBLE", "  blocklength 1: MPI_CHAR"],
    );
    described(
        Datatype::subarray(&[4, 6], &[2, 3], &[1, 0], Order::Fortran, d),
        &[
            "U1: MPI_Type_create_subarray, ndims 2, order Fortran",
            "  size 4, subsize 2, start 1",
            "  size 6, subsize 3, start 0",
            oldtype,
        ],
    );
    let distribs = [Distribution::Block, Distribution::Cyclic, Distribution::None];
    let dargs = [None, Some(2), None];
    described(
        Datatype::darray(6, 5, &[8, 9, 2], &distribs, &dargs, &[2, 3, 1], Order::C, d),
        &[
            "U1: MPI_Type_create_darray, size 6, rank 5, ndims 3, order C",
            "  gsize 8, distribution block, argument default, psize 2",
            "  gsize 9, distribution cyclic, argument 2, psize 3",
            "  gsize 2, distribution none, argument default, psize 1",
            oldtype,
        ],
    );
    let first = "U1: MPI_Type_create_f90_real, precision 15, range undefined";
    described(Datatype::f90_real(Some(15), None), &[first]);
    let first = "U1: MPI_Type_create_f90_complex, precision undefined, range 30";
    described(Datatype::f90_complex(None, Some(30)), &[first]);
    described(Datatype::f90_integer(9), &["U1: MPI_Type_create_f90_integer, range 9"]);
    described(
        Datatype::value_index(d, &Datatype::long()),
        &["U1: MPI_Type_get_value_index", "  value MPI_DOUBLE", "  index MPI_LONG"],
    );
}

#[test]
fn descriptions_refer_to_repeated_types_and_shorten_lists() {
    let pair = || Datatype::contiguous(2, &Datatype::int()).unwrap();
    described(
        Datatype::struct_(&[1, 1], &[0, 8], &[pair(), pair()]),
        &[
            "U1: MPI_Type_create_struct, count 2",
            "  blocklength 1, displacement 0 bytes: U2: MPI_Type_contiguous, count 2",
            "    oldtype MPI_INT",
            "  blocklength 1, displacement 8 bytes: U2, as above",
        ],
    );
    // Descriptions distinguish MPI-1's constructors.
    let d = &Datatype::double();
    let members = [Datatype::hvector(1, 1, 9, d), Datatype::hvector_integer(1, 1, 9, d)];
    let both = Datatype::simple_struct(&[1, 1], &members.map(Result::unwrap)).unwrap();
    let text = both.describe().to_string();
    assert!(text.contains("U3: MPI_TYPE_HVECTOR of MPI-1") && !text.contains("above"), "{text}");

    let long = |blocks: i64| {
        let displacements: Vec<_> = (0..blocks).collect();
        Datatype::indexed_block(1, &displacements, d).unwrap().describe().to_string()
    };
    assert_eq!(long(17).lines().count(), 1 + 17 + 1);
    assert_eq!(long(18).lines().count(), 1 + 16 + 1 + 1);
    assert_eq!(long(100_000).lines().nth(17), Some("  ... and 99984 more"));
}

/// A type with as many objects as levels, but with 2^200 paths.
#[test]
fn shared_subtrees_print_in_linear_time() {
    let mut text = String::new();
    for level in 1..200 {
        text += &format!("U{level}(SS:2:");
    }
    text += "U200(2i)";
    for level in (1..200).rev() {
        text += &format!("/0,U{}/0)", level + 1);
    }
    let datatype = notation::parse(&text).unwrap();
    assert_eq!(datatype.to_string(), text);
    assert_eq!(datatype.describe().to_string().lines().count(), 2 * 200);
}

#[test]
fn unequal_types_print_unequal_texts() {
    let mut printed: HashMap<String, Datatype> = HashMap::new();
    let mut random = Random::new(3, Options { items: 4, depth: 2, ..Options::default() });
    for _ in 0..cases(3000) {
        let datatype = random.datatype();
        let known = printed.entry(datatype.to_string()).or_insert_with(|| datatype.clone());
        // Only MPI-1's constructors and their successors have equal texts.
        let same = known.signature() == datatype.signature();
        let here = shipable::Architecture::NATIVE;
        assert!(same && known.bounds(&here) == datatype.bounds(&here), "{datatype}");
    }
}
