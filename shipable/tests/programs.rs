//! Tests of pack, unpack and copy against the oracle, with random types, representations and cuts.

use shipable::form::Limits;
use shipable::oracle::{self, Options, Random, cases, each_seed};
use shipable::{
    Architecture, Bounds, Committed, ConversionError, Datatype, Error, Form, Partial, Program,
    View, ViewMut, program,
};

/// A random type in the memory of an architecture, with the program of its form after encoding and
/// decoding.
struct Case {
    datatype: Datatype,
    memory: Architecture,
    stream: Architecture,
    program: Program,
    count: u64,
    /// The offset of displacement 0 in the smallest buffer that holds the elements, and the
    /// buffer's length.
    origin: usize,
    length: usize,
}

impl Case {
    fn new(random: &mut Random, datatype: Datatype, stream: Architecture) -> Case {
        let compiled_on = random.options.architecture;
        let form = Form::compile(&datatype, &compiled_on).unwrap();
        let shipped = Form::decode(&form.encode(), &Limits::default()).unwrap();
        assert_eq!((&shipped, shipped.encode()), (&form, form.encode()), "{datatype}");
        // A portable form can be lowered for any memory, also after its conversion to byte
        // displacements.
        let (memory, shipped) = match form.builder_architecture() {
            Some(builder) => (*builder, shipped),
            None => {
                let memory = random.architecture();
                let in_bytes = random.chance(2);
                (memory, if in_bytes { shipped.to_locale(&memory).unwrap() } else { shipped })
            }
        };
        assert_eq!(shipped.signature().unwrap(), datatype.signature(), "{datatype}");
        // Alignments are left out: a form with byte displacements doesn't need them.
        let lies = |b: Bounds| [b.lb, b.ub, b.true_lb, b.true_ub, b.size];
        let (found, bounds) = (shipped.bounds(&memory).unwrap(), datatype.bounds(&memory).unwrap());
        assert_eq!(lies(found), lies(bounds), "{datatype} on {memory}: {shipped}");
        let program = shipped.lower(&memory, &stream).unwrap();
        let count = random.below(4);
        let range = program.range(count).unwrap();
        let origin = usize::try_from((-range.start).max(0)).unwrap();
        let length = (origin as i64 + range.end.max(0)) as usize;
        Case { datatype, memory, stream, program, count, origin, length }
    }

    /// The program for a stream in another representation.
    fn program_to(&self, stream: &Architecture) -> Program {
        let form = Form::compile(&self.datatype, &self.memory).unwrap();
        form.lower(&self.memory, stream).unwrap()
    }

    fn random(random: &mut Random) -> Case {
        random.options.portable = random.chance(3);
        random.options.disjoint = random.chance(2);
        random.options.architecture = random.architecture();
        let datatype = random.datatype();
        let stream = random.architecture();
        Case::new(random, datatype, stream)
    }

    fn view<'a>(&self, memory: &'a [u8]) -> View<'a> {
        View::new(memory).with_origin(self.origin as u64)
    }

    fn view_mut<'a>(&self, memory: &'a mut [u8]) -> ViewMut<'a> {
        ViewMut::new(memory).with_origin(self.origin as u64)
    }

    fn oracle_pack(&self, memory: &[u8]) -> (Vec<u8>, Option<oracle::Refusal>) {
        let memory = (&self.memory, memory, self.origin);
        oracle::pack(&self.datatype, self.count, memory, &self.stream).unwrap()
    }

    fn oracle_unpack(&self, memory: &mut [u8], packed: &[u8]) -> Option<oracle::Refusal> {
        let memory = (&self.memory, memory, self.origin);
        oracle::unpack(&self.datatype, self.count, memory, (&self.stream, packed)).unwrap()
    }

    fn describe(&self) -> String {
        let Case { datatype, memory, stream, program, count, .. } = self;
        format!("{count} of {datatype} on {memory} to {stream}: {program}")
    }
}

/// Divides a stream into random parts, most of them short.
fn cuts(random: &mut Random, length: usize) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while start < length {
        let most = *random.pick(&[1, 3, 20, 1000, usize::MAX]);
        let end = start + (1 + random.below(most as u64) as usize).min(length - start);
        parts.push(start..end);
        start = end;
    }
    parts
}

fn refused(error: Error) -> ConversionError {
    match error {
        Error::Conversion(refusal) => *refusal,
        other => panic!("{other}"),
    }
}

/// Packs random memory in parts, and returns whether a value was refused.
fn packs_as_the_oracle_does(case: &Case, random: &mut Random, seed: u64) -> bool {
    let memory = random.bytes(case.length);
    let (expected, refusal) = case.oracle_pack(&memory);
    let length = case.program.stream_length(case.count).unwrap() as usize;
    let mut packed = vec![0xee; length];
    let mut met = None;
    for part in cuts(random, length) {
        let position = part.start as u64;
        let out = &mut packed[part.clone()];
        match case.program.pack(case.count, case.view(&memory), position, out) {
            Ok(written) => assert_eq!(written, part.len()),
            Err(error) => {
                met = Some(refused(error));
                break;
            }
        }
    }
    assert_eq!(packed[..expected.len()], expected, "seed {seed}: {}", case.describe());
    let items = refusal.as_ref().map(|refusal| (refusal.item as u64, &refusal.error.value));
    let ours = met.as_ref().map(|refusal| (refusal.item, &refusal.value));
    assert_eq!(ours, items, "seed {seed}: {}", case.describe());
    refusal.is_some()
}

#[test]
fn pack_agrees_with_the_oracle_at_any_cut() {
    let tried = each_seed(1500, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let case = Case::random(random);
        (packs_as_the_oracle_does(&case, random, seed), !case.program.is_all_copy())
    });
    let (refusals, conversions): (Vec<_>, Vec<_>) = tried.into_iter().unzip();
    assert!(
        refusals.contains(&true) && conversions.contains(&true),
        "the random types are too tame"
    );
}

/// Structs of so many members that members of one type share their operations.
#[test]
fn structs_of_many_members_pack_as_the_oracle_does() {
    each_seed(20, |seed| {
        let random = &mut Random::new(seed, Options { items: 12, ..Options::default() });
        random.options.architecture = random.architecture();
        let kinds: Vec<_> = (0..3).map(|_| random.datatype()).collect();
        let members: Vec<_> = (0..300).map(|_| random.pick(&kinds).clone()).collect();
        let lengths: Vec<_> = members.iter().map(|_| random.below(3) as i64).collect();
        let displacements: Vec<_> = (0..300).map(|at| 3000 * at + random.below(9) as i64).collect();
        let record = Datatype::struct_(&lengths, &displacements, &members).unwrap();
        let stream = random.architecture();
        let case = Case::new(random, record, stream);
        packs_as_the_oracle_does(&case, random, seed);
    });
}

#[test]
fn unpack_agrees_with_the_oracle_at_any_cut() {
    let refusals = each_seed(1500, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let case = Case::random(random);
        let length = case.program.stream_length(case.count).unwrap() as usize;
        let packed = random.bytes(length);
        let mut expected = random.bytes(case.length);
        let mut memory = expected.clone();
        let refusal = case.oracle_unpack(&mut expected, &packed);
        let mut partial = Partial::default();
        let mut met = None;
        for part in cuts(random, length) {
            let (position, input) = (part.start as u64, &packed[part]);
            let view = case.view_mut(&mut memory);
            if let Err(error) = case.program.unpack(case.count, view, position, input, &mut partial)
            {
                met = Some(refused(error));
                break;
            }
        }
        assert!(memory == expected, "seed {seed}: {}", case.describe());
        let item = refusal.map(|refusal| refusal.item as u64);
        assert_eq!(met.map(|met| met.item), item, "seed {seed}: {}", case.describe());
        item.is_some()
    });
    assert!(refusals.contains(&true), "the random values are too tame");
}

#[test]
fn copy_agrees_with_pack_and_unpack() {
    each_seed(1500, |seed| {
        let random = &mut Random::new(seed, Options::default());
        random.options.architecture = random.architecture();
        let (source, target) = random.pair();
        // Copies usually go through the source's own representation, as between ranks. Some use
        // another.
        let own = !random.chance(3);
        let stream = if own { random.options.architecture } else { random.architecture() };
        let mut from = Case::new(random, source, stream);
        let mut to = Case::new(random, target, stream);
        if from.program.stream_length(1).unwrap() == 0 {
            return;
        }
        let count = from.count;
        (from.count, to.count) = (count, count);
        for case in [&mut from, &mut to] {
            let range = case.program.range(count).unwrap();
            case.origin = usize::try_from((-range.start).max(0)).unwrap();
            case.length = (case.origin as i64 + range.end.max(0)) as usize;
        }
        let memory = random.bytes(from.length);
        let (packed, refusal) = from.oracle_pack(&memory);
        let mut copied = random.bytes(to.length);
        let mut expected = copied.clone();
        let result = program::copy(
            &from.program,
            count,
            from.view(&memory),
            &to.program,
            count,
            to.view_mut(&mut copied),
        );
        let what = || format!("seed {seed}: {} to {}", from.describe(), to.describe());
        if refusal.is_some() {
            // The target may have refused an earlier item.
            let met = refused(result.expect_err(&what())).item;
            assert!(met <= refusal.map_or(0, |refusal| refusal.item as u64), "{}", what());
            return;
        }
        let refusal = to.oracle_unpack(&mut expected, &packed);
        assert!(copied == expected, "{}", what());
        let met = result.err().map(|error| refused(error).item);
        assert_eq!(met, refusal.map(|refusal| refusal.item as u64), "{}", what());
    });
}

#[test]
fn mirror_agrees_with_the_oracle() {
    each_seed(1500, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let mut case = Case::random(random);
        // An eighth of the cases converts values.
        if !random.chance(8) {
            let form = Form::compile(&case.datatype, &case.memory).unwrap();
            case.stream = case.memory;
            case.program = form.lower(&case.memory, &case.memory).unwrap();
            assert!(case.program.is_like(&form.lower(&case.memory, &case.memory).unwrap()));
        }
        let range = case.program.range(case.count).unwrap();
        let memory = random.bytes(case.length);
        let (packed, refusal) = case.oracle_pack(&memory);
        if refusal.is_some() {
            return;
        }
        let mut mirrored = random.bytes(case.length);
        let mut expected = mirrored.clone();
        let (from, to) = (case.view(&memory), case.view_mut(&mut mirrored));
        let result = case.program.mirror(case.count, from, to);
        let refusal = case.oracle_unpack(&mut expected, &packed);
        assert!(mirrored == expected, "seed {seed}: {}", case.describe());
        assert_eq!(result.is_err(), refusal.is_some(), "seed {seed}: {}", case.describe());
        if let Some(less) = case.length.checked_sub(1).filter(|_| range.end > 0) {
            let short = case.view(&memory[..less]);
            assert!(case.program.mirror(case.count, short, case.view_mut(&mut mirrored)).is_err());
        }
    });
}

#[test]
fn is_like_compares_the_layout_of_elements() {
    let arch = Architecture::NATIVE;
    let lower = |notation: &str| {
        let datatype: Datatype = notation.parse().unwrap();
        Form::compile(&datatype, &arch).unwrap().lower(&arch, &arch).unwrap()
    };
    let notations = [
        "U1(V:d:8:1:3)",
        "U1(V:d:8:1:4)",
        "U1(V:i:16:1:3)",
        "U1(S:2:c/1/0,d/1/8)",
        "U1(S:2:c/1/0,d/1/16)",
    ];
    for (i, a) in notations.iter().enumerate() {
        for (j, b) in notations.iter().enumerate() {
            assert_eq!(lower(a).is_like(&lower(b)), i == j, "{a} {b}");
        }
    }
}

#[test]
fn copy_of_long_irregular_types_equals_pack_and_unpack() {
    let arch = Architecture::NATIVE;
    each_seed(20, |seed| {
        let random = &mut Random::new(seed, Options::default());
        // Blocks of 0 to 40 bytes with gaps, and rarely a longer block, which is a separate step.
        let mut irregular = |length: i64| {
            let (mut lengths, mut displacements, mut end, mut left) = (vec![], vec![], 0, length);
            while left > 0 {
                let most = if random.chance(500) { 5000 } else { 40 };
                let block = (random.below(most) as i64).min(left);
                displacements.push(end + random.below(7) as i64);
                lengths.push(block);
                (end, left) = (displacements[displacements.len() - 1] + block, left - block);
            }
            let datatype = Datatype::indexed(&lengths, &displacements, &Datatype::byte()).unwrap();
            let program = Form::compile(&datatype, &arch).unwrap().lower(&arch, &arch).unwrap();
            let held = program.range(1).unwrap().end as usize;
            (program, held)
        };
        let ((source, from), (target, to)) = (irregular(300_000), irregular(300_000));
        let memory = random.bytes(from);
        let mut packed = vec![0; 300_000];
        source.pack(1, View::new(&memory), 0, &mut packed).unwrap();
        let (mut expected, mut copied) = (vec![0; to], vec![0; to]);
        target.unpack(1, ViewMut::new(&mut expected), 0, &packed, &mut Partial::default()).unwrap();
        let to = ViewMut::new(&mut copied);
        program::copy(&source, 1, View::new(&memory), &target, 1, to).unwrap();
        assert!(copied == expected, "seed {seed}");
    });
}

#[test]
fn overlaps_agree_with_the_oracle() {
    let found = each_seed(1000, |seed| {
        let random = &mut Random::new(seed, Options::default());
        let case = Case::random(random);
        let expected = oracle::overlaps(&case.datatype, &case.memory, case.count).unwrap();
        assert_eq!(case.program.overlaps(case.count), expected, "seed {seed}: {}", case.describe());
        expected
    });
    assert!([true, false].iter().all(|answer| found.contains(answer)), "one answer only");
}

#[test]
fn a_place_is_found_again_among_any_number_of_runs() {
    let arch = Architecture::NATIVE;
    const PLACES: i64 = 1 << 20;
    let overlaps = |datatype: &Datatype, count| {
        let form = Form::compile(datatype, &arch).unwrap();
        form.lower(&arch, &arch).unwrap().overlaps(count)
    };
    // Places without a period; the last one twice.
    let mut places: Vec<i64> = (0..PLACES).map(|at| 4 * at + at * at % 3).collect();
    places.push(places[PLACES as usize - 1]);
    let block = |places: &[i64]| Datatype::indexed_block(1, places, &Datatype::byte()).unwrap();
    assert!(overlaps(&block(&places), 1));
    assert!(!overlaps(&block(&places[..PLACES as usize]), 1));
    // Elements that lie within each other: the last one meets the one before.
    let few = block(&[0, 7, 9]);
    let spread = |extent| Datatype::resized(0, extent, &few).unwrap();
    let row = Datatype::contiguous(PLACES / 2, &spread(10)).unwrap();
    let last = 10 * (PLACES / 2 - 1) + 9;
    let end = |at| {
        Datatype::hindexed(&[1, 1], &[0, at], &row)
            .and_then(|rows| Datatype::contiguous(1, &rows))
            .unwrap()
    };
    assert!(!overlaps(&end(10 * PLACES / 2), 1));
    assert!(overlaps(&end(last - 7), 1));
    // Columns of an array of structs are disjoint by their strides, however many they are.
    let column = Datatype::hvector(1 << 40, 1, 24, &Datatype::double()).unwrap();
    let columns = |at: &[i64]| Datatype::hindexed_block(1, at, &column).unwrap();
    assert!(!overlaps(&columns(&[0, 8, 16]), 1));
    assert!(!overlaps(&columns(&[16, 0]), 1));
}

#[test]
fn streams_at_wrong_positions_are_refused() {
    let arch = Architecture::X86_64;
    let form = Form::compile(&Datatype::double(), &arch).unwrap();
    let program = form.lower(&arch, &Architecture::S390X).unwrap();
    let mut memory = [0; 16];
    let mut partial = Partial::default();
    let mut unpack = |position, input: &[u8]| {
        program.unpack(2, ViewMut::new(&mut memory), position, input, &mut partial)
    };
    // Past the end; inside a value without its start; and inside a value at the wrong continuation.
    assert!(matches!(unpack(16, &[0]), Err(Error::Position { position: 17, .. })));
    assert!(matches!(unpack(u64::MAX, &[0]), Err(Error::Position { .. })));
    assert!(matches!(unpack(3, &[0]), Err(Error::Position { position: 3, .. })));
    unpack(8, &[0; 3]).unwrap();
    assert!(matches!(unpack(12, &[0]), Err(Error::Position { position: 12, .. })));
    // A new value may start anywhere.
    unpack(8, &1.5f64.to_be_bytes()).unwrap();
    assert_eq!(memory[8..], 1.5f64.to_le_bytes());
    let mut byte = [0];
    let packed = program.pack(2, View::new(&memory), 17, &mut byte);
    assert!(matches!(packed, Err(Error::Position { position: 17, .. })));
}

#[test]
fn elements_outside_of_memory_are_refused_without_a_write() {
    let arch = Architecture::NATIVE;
    let vector = Datatype::vector(3, 1, -2, &Datatype::int32()).unwrap();
    let program = Form::compile(&vector, &arch).unwrap().lower(&arch, &arch).unwrap();
    let mut memory = [7; 20];
    for (origin, fits) in [(16, true), (15, false), (17, false)] {
        let view = ViewMut::new(&mut memory).with_origin(origin);
        let result = program.unpack(1, view, 0, &[7; 12], &mut Partial::default());
        assert_eq!(result.is_ok(), fits, "origin {origin}");
    }
    assert_eq!(memory, [7; 20]);
    assert!(matches!(program.range(u64::MAX), Err(Error::Overflow { .. })));
}

#[test]
fn conversion_errors_name_the_value() {
    let (here, there) = (Architecture::X86_64, Architecture::I686);
    let longs = Datatype::vector(3, 1, 2, &Datatype::long()).unwrap();
    let program = Form::compile(&longs, &here).unwrap().lower(&there, &here).unwrap();
    let mut packed = Vec::new();
    for value in [1i64, -1, 5_000_000_000] {
        packed.extend(value.to_le_bytes());
    }
    let mut memory = [0xaa; 20];
    let view = ViewMut::new(&mut memory);
    let refusal =
        refused(program.unpack(1, view, 0, &packed, &mut Partial::default()).unwrap_err());
    assert_eq!(
        refusal.to_string(),
        "element 2 (MPI_LONG): 5000000000 as a signed integer of 8 bytes doesn't fit as a signed \
         integer of 4 bytes"
    );
    assert_eq!(memory[..4], 1i32.to_le_bytes());
    assert_eq!(memory[8..12], (-1i32).to_le_bytes());
    assert_eq!(memory[12..], [0xaa; 8], "the item and what lies between stay as they were");
}

#[test]
fn conversion_errors_leave_later_structs_unwritten() {
    let (wide, narrow) = (Architecture::X86_64, Architecture::I686);
    let record = Datatype::simple_struct(&[1, 1], &[Datatype::short(), Datatype::long()]).unwrap();
    let program = Form::compile(&record, &wide).unwrap().lower(&narrow, &wide).unwrap();
    for bad in [0u64, 1, 299, 999] {
        let stream: Vec<u8> = (0..1000u64)
            .flat_map(|at| {
                let long = if at == bad { 1 << 40 } else { at };
                [&(at as u16).to_le_bytes()[..], &long.to_le_bytes()].concat()
            })
            .collect();
        let mut memory = vec![0xee; 8000];
        let to = ViewMut::new(&mut memory);
        let refusal =
            refused(program.unpack(1000, to, 0, &stream, &mut Partial::default()).unwrap_err());
        assert_eq!(refusal.item, 2 * bad + 1);
        for (at, record) in (0..).zip(memory.chunks(8)) {
            let (short, long) = ((at as u16).to_le_bytes(), (at as u32).to_le_bytes());
            let expected = match at.cmp(&bad) {
                std::cmp::Ordering::Less => {
                    [short[0], short[1], 0xee, 0xee, long[0], long[1], 0, 0]
                }
                std::cmp::Ordering::Equal => {
                    [short[0], short[1], 0xee, 0xee, 0xee, 0xee, 0xee, 0xee]
                }
                std::cmp::Ordering::Greater => [0xee; 8],
            };
            assert_eq!(record, expected, "{at} of {bad}");
        }
    }
}

#[test]
fn elements_of_a_contiguous_type_are_one_run() {
    let double = Committed::new(&Datatype::double(), &Architecture::NATIVE).unwrap();
    let runs = |count, most| double.native().runs(count, most);
    assert_eq!(runs(1 << 40, 10), Some(vec![(0, 8 << 40)]));
    assert_eq!(runs(1 << 40, 0), None);
    assert_eq!(runs(u64::MAX, 10), None);
    assert_eq!(runs(0, 0), Some(vec![]));
}

#[test]
fn stretches_cover_exactly_the_bytes_of_the_elements() {
    let mut random = Random::new(17, Options::default());
    for _ in 0..cases(300) {
        let case = Case::random(&mut random);
        let items = oracle::expand(&case.datatype, &case.memory, case.count).unwrap();
        let mut expected: Vec<i64> = Vec::new();
        for item in items {
            expected.extend(item.offset..item.offset + i64::from(item.scalar.size));
        }
        let (stretches, whole) = case.program.stretches(case.count, usize::MAX);
        assert!(whole);
        let mut found: Vec<i64> = Vec::new();
        for stretch in &stretches {
            let mut starts = vec![stretch.start];
            for &(count, stride) in &stretch.dims {
                assert!(stride > 0, "{}", case.describe());
                let steps = |start: &i64| {
                    let start = *start;
                    (0..count as i64).map(move |step| start + step * stride)
                };
                starts = starts.iter().flat_map(steps).collect();
            }
            found.extend(starts.iter().flat_map(|&start| start..start + stretch.len as i64));
            assert_eq!(found.last().map(|last| last + 1), Some(stretch.end()));
        }
        for bytes in [&mut expected, &mut found] {
            bytes.sort_unstable();
            bytes.dedup();
        }
        assert!(found == expected, "{}: {stretches:?}", case.describe());
        let (some, all) = case.program.stretches(case.count, 1);
        assert_eq!((some.len(), all), (stretches.len().min(1), stretches.len() <= 1));
    }
}

/// The runs of any part of a stream are those of the whole stream in this part.
#[test]
fn the_runs_of_a_part_are_a_part_of_the_runs() {
    each_seed(cases(300), |seed| {
        let mut random = Random::new(seed, Options::default());
        let case = Case::random(&mut random);
        let program = case.program_to(&case.memory);
        let length = program.stream_length(case.count).unwrap();
        let (Some(all), true) = (program.runs(case.count, 100_000), length < 1 << 20) else {
            return;
        };
        let bytes = |runs: &[(i64, u64)]| -> Vec<i64> {
            runs.iter().flat_map(|&(at, len)| (0..len as i64).map(move |byte| at + byte)).collect()
        };
        let whole = bytes(&all);
        assert_eq!(whole.len() as u64, length);
        for _ in 0..5 {
            let start = random.below(length + 1);
            let end = start + random.below(length - start + 1);
            let mut found = Vec::new();
            let add = |at, len| {
                found.push((at, len));
                true
            };
            program.runs_within(case.count, start..end, add).unwrap();
            let part = &whole[start as usize..end as usize];
            assert_eq!(bytes(&found), part, "{} on {}: {start}..{end}", case.datatype, case.memory);
            let adjoin = |pair: &[(i64, u64)]| pair[0].0 + pair[0].1 as i64 == pair[1].0;
            assert!(!found.windows(2).any(adjoin), "adjoining runs are passed as one");
        }
        assert!(program.runs_within(case.count, 0..length + 1, |_, _| true).is_err());
    });
}
