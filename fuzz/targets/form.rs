//! Decodes a peer's form. The result is a form that can be used on any machine, or an error.
//!
//! A decoded form must have one encoding, and must pack and unpack within its stated bounds.
#![no_main]

use longshore_fuzz as _;
use shipable::form::Limits;
use shipable::{Architecture, Form, Partial, Program, View, ViewMut};

const LIMITS: Limits = Limits { bytes: 4096, depth: 64 };

/// The largest memory and stream for which a form is packed and unpacked.
const ROOM: i64 = 1 << 16;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(form) = Form::decode(bytes, &LIMITS) else { return };
    let again = Form::decode(&form.encode(), &LIMITS).expect("a form's own bytes decode");
    assert_eq!(again, form);
    assert_eq!(again.encode(), form.encode());
    let signature = form.signature().expect("checked by decoding");
    for memory in Architecture::all() {
        let Ok(bounds) = form.bounds(memory) else { continue };
        assert!(bounds.true_lb <= bounds.true_ub);
        for stream in [memory, &Architecture::NATIVE, &Architecture::S390X] {
            let Ok(program) = form.lower(memory, stream) else { continue };
            for count in [0, 1, 3] {
                carry_out(&program, count);
            }
        }
    }
    std::hint::black_box(signature);
});

fn carry_out(program: &Program, count: u64) {
    let (Ok(range), Ok(length)) = (program.range(count), program.stream_length(count)) else {
        return;
    };
    let span = range.end.checked_sub(range.start).filter(|span| *span <= ROOM);
    // The offset of displacement 0 in the memory.
    let (Some(span), Some(origin)) = (span, range.start.checked_neg()) else { return };
    if length > ROOM as u64 || program.items().saturating_mul(count) > ROOM as u64 {
        return;
    }
    std::hint::black_box(program.overlaps(count));
    let mut memory = vec![0x41u8; span as usize];
    let mut stream = vec![0; length as usize];
    let Some(view) = View::new(&memory).shifted(origin) else { return };
    if program.pack(count, view, 0, &mut stream).is_err() {
        return;
    }
    // In two parts, cut anywhere, even inside a value.
    let (first, second) = stream.split_at(stream.len() / 3);
    let mut partial = Partial::default();
    for (position, part) in [(0, first), (first.len() as u64, second)] {
        let Some(view) = ViewMut::new(&mut memory).shifted(origin) else { return };
        if program.unpack(count, view, position, part, &mut partial).is_err() {
            return;
        }
    }
}
