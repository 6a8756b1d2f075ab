//! Decodes flat forms of files or peers. The result is a datatype or communicator that can be
//! packed again, or an error.
//!
//! The last byte of the input decides whether the target corrects length and checksum first, so
//! that inputs get past these checks.
#![no_main]

use longshore_fuzz as _;
use shipable::flat::{self, CommunicatorDescription};
use shipable::{Architecture, Datatype};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((mode, bytes)) = bytes.split_last() else { return };
    let sealed;
    let bytes = match mode % 2 {
        0 => bytes,
        _ => {
            sealed = longshore_fuzz::sealed(bytes);
            &sealed
        }
    };
    for here in [Architecture::X86_64, Architecture::S390X] {
        let Ok((datatype, length)) = flat::unpack(bytes, &here) else { continue };
        assert!(length <= bytes.len());
        let packed = flat::pack(&datatype, &here).expect("what was unpacked packs");
        // A portable type may have had the tag L. Then it gets the portable tag now.
        let again: Datatype = flat::unpack(packed.as_bytes(), &here).expect("and unpacks").0;
        assert_eq!(again, datatype);
    }
    let Ok((description, length)) = CommunicatorDescription::unpack(bytes) else { return };
    assert_eq!(description.pack().as_bytes(), &bytes[..length]);
    std::hint::black_box(description.architecture(description.size() / 2));
    std::hint::black_box(description.compare(&description));
});
