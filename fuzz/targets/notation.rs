//! Parses text in the type notation. The result is a type that can be printed, described and
//! compiled, or an error with a position in the text.
#![no_main]

use longshore_fuzz as _;
use shipable::contents::Counts;
use shipable::form::Limits;
use shipable::{Architecture, Datatype, Error, Form, notation};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let datatype = match notation::parse(text) {
        Ok(datatype) => datatype,
        Err(error) => {
            assert!((1..=text.len() + 1).contains(&error.column), "{error}");
            assert!(error.to_string().len() < 500, "{error}");
            return;
        }
    };
    assert!(datatype.depth() <= Datatype::MAX_DEPTH);
    let canonical = datatype.to_string();
    let again = notation::parse(&canonical).expect("what was printed parses");
    assert_eq!(again, datatype);
    assert_eq!(again.to_string(), canonical);
    std::hint::black_box(datatype.describe().to_string());
    for architecture in [Architecture::X86_64, Architecture::M68K] {
        let Ok(form) = Form::compile(&datatype, &architecture) else { continue };
        let bounds = datatype.bounds(&architecture).expect("what compiles has bounds");
        assert!(bounds.true_lb <= bounds.true_ub);
        let decoded = Form::decode(&form.encode(), &Limits::default());
        // Bounds that fit one architecture's addresses needn't fit those of the decoding process.
        match datatype.bounds(form.builder_architecture().unwrap_or(&Architecture::NATIVE)) {
            Ok(_) | Err(Error::NoSuchKind { .. }) => assert_eq!(decoded.as_ref(), Ok(&form)),
            Err(_) => {}
        }
    }
    if let Ok(contents) = datatype.contents(Counts::Large) {
        assert_eq!(contents.rebuild(), Ok(datatype));
    }
});
