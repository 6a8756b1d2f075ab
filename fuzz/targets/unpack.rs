//! Unpacks a peer's bytes with any type. The memory must equal the oracle's result, which is
//! computed item by item.
//!
//! ```text
//! architecture of memory, of stream, count, position    one byte each
//! datatype                                              in the notation, to the end of the line
//! packed buffer                                         the rest of the input
//! ```
#![no_main]

use longshore_fuzz as _;
use shipable::{Architecture, Committed, Error, View, ViewMut, notation, oracle};

/// The most bytes that elements may span.
const ROOM: u64 = 1 << 12;

/// The limit for the oracle, which expands the items of a type one by one.
const EFFORT: u64 = 1 << 17;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&[memory, stream, count, position], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let Some(end) = rest.iter().position(|&byte| byte == b'\n') else { return };
    let Ok(text) = std::str::from_utf8(&rest[..end]) else { return };
    let Ok(datatype) = notation::parse(text) else { return };
    let packed = &rest[end + 1..];
    let all = Architecture::all();
    let memory = &all[usize::from(memory) % all.len()];
    let stream = &all[usize::from(stream) % all.len()];
    let (count, position) = (u64::from(count % 4), u64::from(position % 16));

    let Ok(committed) = Committed::new(&datatype, memory) else { return };
    let Ok(program) = committed.program(stream) else { return };
    let (Ok(range), Ok(length)) = (program.range(count), program.stream_length(count)) else {
        return;
    };
    let span = range.end.checked_sub(range.start).filter(|span| *span <= ROOM as i64);
    let (Some(span), Some(origin)) = (span, range.start.checked_neg()) else { return };
    if oracle::effort(&datatype).saturating_mul(count.max(1)) > EFFORT || length > ROOM {
        return;
    }
    let mut ours = vec![0x41; span as usize];
    let Some(view) = ViewMut::new(&mut ours).shifted(origin) else { return };
    let mut end = position;
    let unpacked = committed.unpack(packed, &mut end, view, count, stream);
    assert!(end >= position && (unpacked.is_ok() || end == position));
    // Left out: XDR, because the oracle doesn't know its units of four bytes; and overlapping
    // items, because their order isn't defined.
    if stream == &Architecture::XDR || program.overlaps(count) {
        return;
    }
    let refused = match &unpacked {
        Ok(()) => None,
        Err(Error::Conversion(error)) => Some(error),
        Err(_) => {
            assert!(ours.iter().all(|byte| *byte == 0x41), "an error before the first byte");
            return;
        }
    };
    let Ok(origin) = usize::try_from(origin) else { return };
    let mut theirs = vec![0x41; span as usize];
    let input = &packed[position as usize..];
    let naive = oracle::unpack(&datatype, count, (memory, &mut theirs, origin), (stream, input))
        .expect("what the program converts, the oracle does");
    assert_eq!(naive.is_some(), refused.is_some(), "{naive:?} {refused:?}");
    assert_eq!(ours, theirs);
    if refused.is_none() {
        assert_eq!(end - position, length);
        let Some(view) = View::new(&ours).shifted(origin as i64) else { return };
        let mut again = vec![0; length as usize];
        let repacked = committed.pack(view, count, &mut again, &mut 0, stream);
        std::hint::black_box(repacked.is_ok());
    }
});
