//! Tests of flat forms: golden text, errors, and the comparison of communicators.

use shipable::flat::{self, CommunicatorDescription, Comparison, FlatError};
use shipable::oracle::{Options, Random, each_seed};
use shipable::{Architecture, Class, Datatype, Error};

const X86_64: Architecture = Architecture::X86_64;
const S390X: Architecture = Architecture::S390X;

fn record() -> Datatype {
    let members = [Datatype::double(), Datatype::char()];
    Datatype::struct_(&[1, 1], &[0, 8], &members).unwrap()
}

/// Fills in the length, at `@`, and the checksum of a text.
fn sealed(text: &str) -> String {
    let text = text.replace('@', &format!("{:08x}", text.len() + 7 + 8));
    let checksum = crc32(text.as_bytes());
    format!("{text}{checksum:08x}")
}

/// CRC-32/ISO-HDLC, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

fn refused(text: &str, here: &Architecture) -> FlatError {
    match flat::unpack(text.as_bytes(), here) {
        Err(Error::Flat(error)) => error,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn flat_datatypes_match_golden_texts() {
    // The check value in the checksum's definition.
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    let inner = Datatype::simple_struct(&[1, 1], &[Datatype::double(), Datatype::char()]).unwrap();
    let portable = Datatype::contiguous(3, &inner).unwrap();
    let text = "MDT1;P;00000030;-;U1(3U2(SS:2:d/1,c/1));02f08a8e";
    for here in Architecture::all() {
        assert_eq!(flat::pack(&portable, here).as_deref(), Ok(text));
        assert_eq!(flat::unpack(text.as_bytes(), here), Ok((portable.clone(), text.len())));
    }
    assert_eq!(flat::pack_size(&portable, &X86_64), Ok(0x30));
    assert_eq!(sealed("MDT1;P;@;-;U1(3U2(SS:2:d/1,c/1));"), text);

    let descriptor = X86_64.descriptor();
    let text = sealed(&format!("MDT1;L;@;{descriptor};U1(S:2:d/1/0,c/1/8);"));
    assert_eq!(flat::pack(&record(), &X86_64).as_deref(), Ok(text.as_str()));
    assert_eq!(flat::unpack(text.as_bytes(), &X86_64), Ok((record(), text.len())));
    assert_eq!(flat::pack(&Datatype::double(), &X86_64).unwrap(), sealed("MDT1;P;@;-;d;"));
}

#[test]
fn bytes_after_a_flat_form_are_ignored() {
    let mut bytes = flat::pack(&record(), &S390X).unwrap().into_bytes();
    let length = bytes.len();
    bytes.extend([0, 255, b';']);
    assert_eq!(flat::unpack(&bytes, &S390X), Ok((record(), length)));
}

#[test]
fn locale_specific_types_are_refused_elsewhere() {
    let packed = flat::pack(&record(), &X86_64).unwrap();
    let error = refused(&packed, &S390X);
    let (built, here) = (X86_64.descriptor(), "s390x".to_owned());
    assert_eq!(error, FlatError::OtherArchitecture { built: "x86-64".to_owned(), here });
    assert_eq!(error.class(), Class::Type);
    // A representation with unknown fields, and a text that is no representation.
    let vax = sealed(&format!("MDT1;L;@;{};d;", built.replace("x87", "vax")));
    assert!(refused(&vax, &X86_64).to_string().contains("`vax` is not known"), "{vax}");
    assert!(refused(&sealed("MDT1;L;@;-;d;"), &X86_64).to_string().contains("architecture"));
    // A portable type is valid everywhere, so a tag L is accepted for it here.
    let text = sealed(&format!("MDT1;L;@;{built};d;"));
    assert_eq!(flat::unpack(text.as_bytes(), &X86_64).unwrap().0, Datatype::double());
}

#[test]
fn tags_that_contradict_the_type_are_refused() {
    let foreign = sealed(&format!("MDT1;F;@;{};U1(S:1:d/1/0);", X86_64.descriptor()));
    assert_eq!(refused(&foreign, &X86_64), FlatError::Foreign);
    let smuggled = sealed("MDT1;P;@;-;U1(3U2(S:1:d/1/0));");
    let culprit = "U1(S:1:d/1/0)".to_string();
    assert_eq!(refused(&smuggled, &X86_64), FlatError::NotPortable { culprit });
    assert!(refused(&sealed("MDT1;Q;@;-;d;"), &X86_64).to_string().contains("expected P, L or F"));
    let located = sealed(&format!("MDT1;P;@;{};d;", X86_64.descriptor()));
    assert!(refused(&located, &X86_64).to_string().contains("a portable type has `-`"));
}

#[test]
fn damaged_forms_are_refused_with_the_defect() {
    let good = flat::pack(&record(), &X86_64).unwrap();
    // Every prefix is too short. The error states the full length if the prefix contains it.
    for length in 0..good.len() {
        let error = refused(&good[..length], &X86_64);
        let FlatError::Truncated { found, needed } = error else { panic!("{error}") };
        assert_eq!(found, length);
        assert_eq!(needed, if length < 15 { 24 } else { good.len() });
        assert_eq!(error.class(), Class::Truncate);
    }
    // A change of any bit is found.
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(flat::unpack(&bytes, &X86_64).is_err(), "{at}");
    }
    let damaged = good.replace("d/1/0", "d/1/1");
    assert!(matches!(refused(&damaged, &X86_64), FlatError::Checksum { .. }));
    let (body, checksum) = good.split_at(good.len() - 8);
    let upper = format!("{body}{}", checksum.to_uppercase());
    assert_ne!(upper, good);
    assert!(matches!(refused(&upper, &X86_64), FlatError::Checksum { .. }));
    let says = |text: &str, says: &str| {
        let error = refused(text, &X86_64).to_string();
        assert!(error.contains(says), "{text}: {error}");
    };
    says("MPI!;P;00000030;-;d;00000000", "begin with `MPI!;`");
    says("MDT2;P;00000030;-;d;00000000", "version 2 of it");
    says("MCM1;00000030;", "MCM1;, a packed communicator");
    says("MDT1;P;0000003G;-;d;00000000", "length `0000003G`");
    says("MDT1;P;+000003f;-;d;00000000", "length `+000003f`");
    says("MDT1;P;0000003F;-;d;00000000", "length `0000003F`");
    says("MDT1;P;000000300;-;d;00000000", "length `00000030`");
    says("MDT1;P;00000001;-;d;00000000", "length `00000001`");
    says(&sealed("MDT1;P;@;-;"), "text: it is missing");
    says(&sealed("MDT1;P;@;"), "architecture: it is missing");
    says(&sealed("MDT1;P;@;-;d;e;"), "`e` before it is an extra field");
    says(&sealed("MDT1;P;@;-;d"), "no `;` before it");
    says(&sealed("MDT1;P;@;-;\u{e9};"), "aren't ASCII");
    says(&sealed("MDT1;P;@;-; d;"), "aren't ASCII without blanks");
    says(&sealed("MDT1;P;@;-;U1(3U1);"), "text: column 5: U1 is the type that begins");
    says(&sealed("MDT1;P;@;-;;"), "text: column 1: expected a type");
}

#[test]
fn random_types_unpack_only_on_valid_architectures() {
    each_seed(300, |seed| {
        let random = &mut Random::new(seed, Options::default());
        random.options.portable = random.chance(2);
        let (datatype, here, there) =
            (random.datatype(), random.architecture(), random.architecture());
        let packed = flat::pack(&datatype, &here).unwrap();
        let unpacked = flat::unpack(packed.as_bytes(), &there);
        match unpacked {
            Ok((unpacked, length)) => {
                assert_eq!((unpacked.to_string(), length), (datatype.to_string(), packed.len()));
                assert!(packed.starts_with("MDT1;P;") || here == there);
            }
            Err(error) => {
                let other = matches!(error, Error::Flat(FlatError::OtherArchitecture { .. }));
                assert!(other && packed.starts_with("MDT1;L;") && here != there, "{error}");
            }
        }
    });
}

fn described(job: u128, context: u64, processes: &[u64]) -> CommunicatorDescription {
    CommunicatorDescription::new(job, context, processes.iter().map(|&process| (process, &X86_64)))
}

fn through_text(description: &CommunicatorDescription) -> CommunicatorDescription {
    let mut bytes = description.pack().into_bytes();
    let length = bytes.len();
    assert_eq!(description.pack_size(), length);
    bytes.push(7);
    let (unpacked, read) = CommunicatorDescription::unpack(&bytes).unwrap();
    assert_eq!((&unpacked, read), (description, length));
    unpacked
}

#[test]
fn flat_communicators_match_golden_texts() {
    let members = [(0, &X86_64), (1, &X86_64), (5, &S390X), (2, &X86_64)];
    let description = CommunicatorDescription::new(0x5eed, 3, members);
    let text = description.pack();
    let fields: Vec<_> = text.split(';').collect();
    assert_eq!(fields[0], "MCM1");
    assert_eq!(fields[1], format!("{:08x}", text.len()));
    assert_eq!(fields[2..5], ["00000000000000000000000000005eed", "0000000000000003", "4"]);
    assert_eq!(fields[5], "3a9ef0a8ddf2c248ae4ca383eaf4f83c");
    assert_eq!(fields[6], "4ba1773b91e62a036e42625f52da1ed3");
    assert_eq!(fields[7], "0*2,1*1,0*1");
    assert_eq!(fields[8], format!("{}|{}", X86_64.descriptor(), S390X.descriptor()));
    assert_eq!(fields[9], format!("{:08x}", crc32(&text.as_bytes()[..text.len() - 8])));
    assert_eq!(fields.len(), 10);
    let unpacked = through_text(&description);
    let architectures: Vec<_> = (0..5).map(|rank| unpacked.architecture(rank)).collect();
    let expected = [Some(X86_64), Some(X86_64), Some(S390X), Some(X86_64), None];
    assert_eq!(architectures, expected);
    assert_eq!(through_text(&described(1, 1, &[])).size(), 0);
}

#[test]
fn comparison_follows_the_table_of_relations() {
    let one = described(1, 1, &[0, 1, 2]);
    let compare = |other: &CommunicatorDescription| {
        let results = [one.compare(other), other.compare(&one), one.compare(&through_text(other))];
        assert!(results.iter().all(|result| *result == results[0]));
        results[0]
    };
    assert_eq!(compare(&one), Comparison::Ident);
    assert_eq!(compare(&described(1, 2, &[0, 1, 2])), Comparison::Congruent);
    assert_eq!(compare(&described(1, 2, &[2, 0, 1])), Comparison::Similar);
    assert_eq!(compare(&described(1, 1, &[2, 0, 1])), Comparison::Similar);
    assert_eq!(compare(&described(1, 1, &[0, 1])), Comparison::ArchEquiv);
    assert_eq!(compare(&described(1, 1, &[0, 1, 3])), Comparison::ArchEquiv);
    // Another run has other processes, even if their numbers are equal.
    assert_eq!(compare(&described(2, 1, &[0, 1, 2])), Comparison::ArchEquiv);
    let mixed = [(0, &S390X), (1, &Architecture::XDR), (2, &Architecture::EXTERNAL32)];
    assert_eq!(compare(&CommunicatorDescription::new(2, 1, mixed)), Comparison::ArchEquiv);
    assert_eq!(Comparison::ArchEquiv.mpi_name(), "MPI_ARCH_EQUIV");
}

#[test]
fn neighbouring_groups_have_different_hashes() {
    let mut known = std::collections::HashMap::new();
    for set in 0u32..1 << 12 {
        let processes: Vec<u64> = (0..12).filter(|bit| set >> bit & 1 == 1).collect();
        let text = described(1, 1, &processes).pack();
        let unordered = text.split(';').nth(6).unwrap().to_string();
        assert_eq!(known.insert(unordered, set), None, "{processes:?}");
    }
}

#[test]
fn unrecognised_architectures_compare_as_unequal() {
    let one = described(1, 1, &[0]);
    let changes =
        [("x87", "vax"), ("e=l", "e=p"), ("cs=ascii", "cs=ebcdic"), ("e=l", "anything-at-all")];
    for (from, to) in changes {
        let changed = one.pack().replace(from, to);
        let body = changed[..changed.len() - 8].splitn(3, ';').nth(2).unwrap();
        let text = sealed(&format!("MCM1;@;{body}"));
        let (unpacked, _) = CommunicatorDescription::unpack(text.as_bytes()).unwrap();
        assert_eq!(unpacked.pack(), text);
        assert_eq!((unpacked.size(), unpacked.architecture(0)), (1, None));
        assert!(
            unpacked.architectures().all(|(text, recognised)| text.contains(to) && !recognised)
        );
        // It isn't even congruent to itself, because its data can't be converted.
        assert_eq!(unpacked.compare(&unpacked), Comparison::Unequal);
        assert_eq!(one.compare(&unpacked), Comparison::Unequal);
    }
}

#[test]
fn damaged_descriptions_are_refused_with_the_defect() {
    let (job, hash) = ("0".repeat(32), "1".repeat(32));
    let (x, s) = (X86_64.descriptor(), S390X.descriptor());
    let says = |rest: String, says: &str| {
        let text = sealed(&format!("MCM1;@;{rest};"));
        let error = CommunicatorDescription::unpack(text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(says), "{text}: {error}");
        assert_eq!(error.class(), Class::Type);
    };
    let context = "0000000000000001";
    let head = format!("{job};{context}");
    let hashes = format!("{hash};{hash}");
    let good = sealed(&format!("MCM1;@;{head};3;{hashes};0*2,1*1;{x}|{s};"));
    assert_eq!(CommunicatorDescription::unpack(good.as_bytes()).unwrap().0.size(), 3);
    says(format!("{job}0;{context};3;{hashes};0*2,1*1;{x}|{s}"), "job: ");
    says(format!("{job};{context}0;3;{hashes};0*2,1*1;{x}|{s}"), "context: ");
    says(format!("{job};+00000000000001;3;{hashes};0*2,1*1;{x}|{s}"), "context: ");
    says(format!("{job};000000000000000A;3;{hashes};0*2,1*1;{x}|{s}"), "context: ");
    says(format!("{head};03;{hashes};0*2,1*1;{x}|{s}"), "size: `03`");
    says(format!("{head};-3;{hashes};0*2,1*1;{x}|{s}"), "size: `-3`");
    says(format!("{head};3;{hash};0*2,1*1;{x}|{s}"), "unordered hash: ");
    says(format!("{head};3;{hashes};0*2,1*2;{x}|{s}"), "more ranks than the size");
    says(format!("{head};3;{hashes};0*2,1*18446744073709551615;{x}|{s}"), "more ranks");
    says(format!("{head};3;{hashes};0*2;{x}|{s}"), "2 ranks of 3, with 1 architectures of 2");
    says(format!("{head};3;{hashes};0*3;{x}|{s}"), "3 ranks of 3, with 1 architectures of 2");
    says(format!("{head};3;{hashes};1*2,0*1;{x}|{s}"), "architecture 1");
    says(format!("{head};3;{hashes};0*2,2*1;{x}|{s}"), "architecture 2");
    says(format!("{head};3;{hashes};0*2,0*1;{x}"), "the architecture of the run before it");
    says(format!("{head};3;{hashes};0*0,1*3;{x}|{s}"), "is empty");
    says(format!("{head};3;{hashes};3;{x}"), "`3` is not index*count");
    says(format!("{head};3;{hashes};;{x}"), "0 ranks of 3");
    says(format!("{head};3;{hashes};0*2,1*1;{x}|{x}"), "twice");
    says(format!("{head};3;{hashes};0*2,1*1;{x}|"), "a descriptor is empty");
    says(format!("{head};3;{hashes};0*3"), "architectures: it is missing");
    says(format!("{head};3;{hashes};0*3;{x};more"), "`more` before it is an extra field");
    let error = CommunicatorDescription::unpack(b"MDT1;P;00000030").unwrap_err();
    assert!(error.to_string().contains("MDT1;, a packed datatype"), "{error}");
}
