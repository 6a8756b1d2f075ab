//! Tests that derived datatypes describe the layout of compiled structs.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use shipable::oracle::expand;
use shipable::{
    Architecture, Class, Committed, Element, Enum, Enumeration, Partial, Shipable, c, element,
    fortran,
};

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Record {
    tag: u8,
    corners: [[Point; 2]; 3],
    flag: c::Bool,
    wide: c::LongLong,
    name: [u8; 5],
    logical: fortran::Logical,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C, packed)]
struct Packed {
    tag: u8,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C, align(32))]
struct Aligned(u8, i16);

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Pair<T, const N: usize>
where
    T: PartialEq,
{
    first: T,
    rest: [T; N],
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Mixed {
    tuple: (u8, u32, u16),
    value: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(transparent)]
struct Metres(f64);

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Empty {}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Extremes {
    day: i16,
    coldest: c::DoubleInt,
    warmest: [c::FloatInt; 2],
    index: fortran::TwoInteger,
}

mod elsewhere {
    pub(crate) use shipable as hidden;
}

mod part {
    pub(crate) use shipable::{Datatype, Element};
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
#[shipable(crate = crate::elsewhere::hidden)]
struct Renamed {
    value: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
#[shipable(crate = part)]
struct Reexported<T> {
    value: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Quantity<U: Copy + Send + Sync + 'static> {
    value: f64,
    unit: PhantomData<U>,
    places: [(u8, Point); 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Shipable)]
#[repr(C)]
struct Kelvin;

#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(i16)]
enum Season {
    #[default]
    Winter = -3,
    Spring,
    Summer = 500,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Shipable)]
#[repr(C)]
struct Day {
    number: u32,
    seasons: [Enum<Season>; 2],
}

/// Only errors of the macro are compared: those of the compiler differ between versions.
#[test]
fn fields_that_cannot_be_shipped_are_compile_errors() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}

/// Compared with the error of one compiler, since those of others differ.
#[rustversion::since(1.95)]
#[test]
fn the_trait_checks_fields_whatever_path_the_attribute_gives() {
    trybuild::TestCases::new().compile_fail("tests/compiler/*.rs");
}

/// Checks the rules in the trait's safety section, and that the simple type has the same items.
fn check<T: Element>() {
    let native = Architecture::NATIVE;
    let datatype = T::datatype();
    let bounds = datatype.bounds(&native).unwrap();
    assert_eq!((bounds.lb, bounds.extent()), (0, size_of::<T>() as i64), "{datatype}");
    let items = expand(&datatype, &native, 1).unwrap();
    for item in &items {
        let end = item.offset + i64::from(item.scalar.size);
        assert!(item.offset >= 0 && end <= size_of::<T>() as i64, "{datatype}");
    }
    if let Some(simple) = T::simple() {
        assert_eq!(expand(&simple, &native, 3), expand(&datatype, &native, 3), "{simple}");
        assert_eq!(simple.bounds(&native).unwrap().extent(), bounds.extent());
    }
}

#[test]
fn elements_satisfy_the_safety_rules_of_the_trait() {
    check::<Point>();
    check::<Record>();
    check::<Packed>();
    check::<Aligned>();
    check::<Pair<c::Short, 3>>();
    check::<Mixed>();
    check::<Metres>();
    check::<Empty>();
    check::<Renamed>();
    check::<Reexported<i16>>();
    check::<Quantity<Kelvin>>();
    check::<(u8, f64, u16)>();
    check::<[(u8, [Record; 2]); 4]>();
    check::<c::LongDoubleComplex>();
    check::<[c::LongDouble; 2]>();
    check::<fortran::DoubleComplex>();
    check::<(c::ShortInt, [c::LongDoubleInt; 2])>();
    check::<Extremes>();
    check::<Day>();
    check::<[Enum<Season>; 3]>();
}

#[test]
fn only_c_layouts_have_a_simple_struct() {
    assert!(Point::simple().is_some() && Record::simple().is_some() && Empty::simple().is_some());
    assert!(Metres::simple().is_some() && Pair::<f32, 2>::simple().is_some());
    assert!(Packed::simple().is_none() && Aligned::simple().is_none());
    assert!(Mixed::simple().is_none() && <(i32,)>::simple().is_none());
}

#[test]
fn arrays_are_blocks() {
    let size =
        if cfg!(target_arch = "x86") { (4, 100, 104, 112, 120) } else { (8, 104, 112, 120, 128) };
    let (corners, flag, wide, name, logical) = size;
    assert_eq!(
        Record::datatype().to_string(),
        format!(
            "U1(S:6:u8/1/0,U2(S:2:d/1/0,d/1/8)/6/{corners},B/1/{flag},ll/1/{wide},u8/5/{name},L/1/{logical})"
        )
    );
    assert_eq!(
        Record::simple().unwrap().to_string(),
        "U1(SS:6:u8/1,U2(SS:2:d/1,d/1)/6,B/1,ll/1,u8/5,L/1)"
    );
    assert_eq!(<[[f32; 3]; 4]>::datatype().to_string(), "U1(12f)");
}

#[test]
fn a_pair_has_the_layout_of_its_members_in_c() {
    macro_rules! check {
        ($($pair:ty),+) => {$(
            let items = expand(&<$pair>::datatype(), &Architecture::NATIVE, 1).unwrap();
            let offsets: Vec<_> = items.iter().map(|item| item.offset as usize).collect();
            let members = [std::mem::offset_of!($pair, value), std::mem::offset_of!($pair, index)];
            assert_eq!(offsets, members, "{}", <$pair>::datatype());
        )+};
    }
    check!(c::FloatInt, c::DoubleInt, c::LongInt, c::TwoInt, c::ShortInt, c::LongDoubleInt);
    check!(fortran::TwoReal, fortran::TwoDoublePrecision, fortran::TwoInteger);
    assert_eq!(Extremes::simple().unwrap().to_string(), "U1(SS:4:i16/1,di/1,fi/2,P2I/1)");
}

#[test]
fn records_round_trip_through_other_representations() {
    let record = |n: i16| Record {
        tag: n as u8,
        corners: [[Point { x: f64::from(n), y: -0.5 }; 2]; 3],
        flag: (n % 2 == 0).into(),
        wide: c::LongLong(i64::from(n) << 40),
        name: *b"crane",
        logical: true.into(),
    };
    let records: Vec<_> = (0..100).map(record).collect();
    let committed = Committed::new(&Record::simple().unwrap(), &Architecture::NATIVE).unwrap();
    for stream in [Architecture::NATIVE, Architecture::S390X, Architecture::M68K] {
        let program = committed.program(&stream).unwrap();
        let mut packed = vec![0; program.stream_length(100).unwrap().try_into().unwrap()];
        // SAFETY: the program is of the records' own type, so it reads no padding.
        let memory = unsafe { element::view(&records) };
        program.pack(100, memory, 0, &mut packed).unwrap();
        let mut back = vec![record(-1); 100];
        // SAFETY: the program is of the records' own type, so it reads no padding.
        let memory = unsafe { element::view_mut(&mut back) };
        program.unpack(100, memory, 0, &packed, &mut Partial::default()).unwrap();
        assert_eq!(back, records);
    }
}

#[test]
fn every_byte_is_a_valid_truth_value() {
    let mut flags = [c::Bool::from(false); 4];
    let committed = Committed::new(&c::Bool::datatype(), &Architecture::NATIVE).unwrap();
    // SAFETY: flags have no padding.
    let memory = unsafe { element::view_mut(&mut flags) };
    committed.native().unpack(4, memory, 0, &[0, 1, 2, 255], &mut Partial::default()).unwrap();
    assert_eq!(flags.map(c::Bool::get), [false, true, true, true]);
    assert_eq!(flags[1], flags[3]);
}

#[test]
fn an_enum_has_the_numbers_of_its_variants() {
    assert_eq!(Day::simple().unwrap().to_string(), "U1(SS:2:u32/1,i16/2)");
    let numbers = Season::VARIANTS.iter().map(|(season, name)| (season.number(), *name));
    assert!(numbers.eq([(-3, "Winter"), (-2, "Spring"), (500, "Summer")]));
    let day = Day { seasons: [Season::Summer.into(), Season::Spring.into()], number: 1 };
    assert_eq!(day.seasons.map(|season| season.get().unwrap()), [Season::Summer, Season::Spring]);
    assert_eq!((day.seasons[0].number(), Day::default().seasons[0].number()), (500, -3));
    assert_eq!(format!("{:?}", day.seasons), "[Summer, Spring]");
}

#[test]
fn derived_structs_name_their_fields() {
    assert_eq!(Record::field_names(), "tag,corners(x,y),flag,wide,name,logical");
    assert_eq!(Aligned::field_names(), "0,1");
    assert_eq!((<(u8, f64)>::field_names(), Empty::field_names()), (String::new(), String::new()));
}

#[test]
fn items_have_the_names_of_their_fields() {
    assert_eq!(<[[i32; 3]; 2]>::item_names(), "*2*3");
    assert_eq!(
        (f64::item_names(), c::FloatComplex::item_names()),
        (String::new(), ":2".to_owned())
    );
    assert_eq!(<(u8, [c::DoubleInt; 4])>::item_names(), "(0,1*4:2)");
    let names = <[Aligned; 2]>::item_names();
    assert!(names.starts_with("*2(0") && names.contains(",1"), "{names}");
    // As many as the programs count, so that an error finds its field.
    let record =
        Committed::of_fields(&Record::datatype(), &Architecture::NATIVE, Record::item_names);
    assert_eq!(record.unwrap().native().field_text().as_deref(), Some(&*Record::item_names()));
}

#[test]
fn received_bytes_that_are_no_variant_are_refused_when_read() {
    let mut seasons = [Enum::from(Season::Winter); 3];
    let committed = Committed::new(&Enum::<Season>::datatype(), &Architecture::NATIVE).unwrap();
    let stream: Vec<u8> = [-2i16, 7, 500].iter().flat_map(|number| number.to_ne_bytes()).collect();
    // SAFETY: numbers have no padding.
    let memory = unsafe { element::view_mut(&mut seasons) };
    committed.native().unpack(3, memory, 0, &stream, &mut Partial::default()).unwrap();
    assert_eq!((seasons[0].get(), seasons[2].get()), (Ok(Season::Spring), Ok(Season::Summer)));
    let refused = seasons[1].get().unwrap_err();
    assert_eq!(refused.class(), Class::Conversion);
    assert!(
        refused.to_string().starts_with(
            "7 is no Season, whose numbers are -3 (Winter), -2 (Spring), 500 (Summer): build"
        ),
        "{refused}"
    );
    assert_eq!(format!("{:?}", seasons[1]), "7");
}

#[test]
fn doubles_round_trip_through_long_double() {
    for value in [0.0, -0.0, 1.5, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY] {
        assert_eq!(c::LongDouble::from(value).to_f64().map(f64::to_bits), Ok(value.to_bits()));
    }
}
