//! Writes the inputs that each target starts from to a folder: what a sound peer sends. Made anew for each run, so that
//! they follow the wire.

use std::path::Path;

use longshore::fuzzing::Target;
use longshore::wire::Kind;
use shipable::{Architecture, Datatype, Form};

/// One of each constructor, portable and not.
fn datatypes() -> shipable::Result<Vec<Datatype>> {
    let (int, long, double) = (Datatype::int(), Datatype::long(), Datatype::double());
    let column = Datatype::vector(8, 1, 10, &double)?;
    let record =
        Datatype::simple_struct(&[1, 2, 16], &[int.clone(), double.clone(), Datatype::char()])?;
    Ok(vec![
        Datatype::contiguous(5, &long)?,
        Datatype::indexed(&[2, 0, 3], &[4, 0, -7], &record)?,
        Datatype::indexed_block(2, &[0, 5, 3], &column)?,
        Datatype::subarray(&[4, 6, 3], &[2, 3, 1], &[1, 2, 0], shipable::Order::C, &int)?,
        Datatype::f90_real(Some(6), Some(30))?,
        Datatype::basic(shipable::Basic::DoubleInt),
        Datatype::basic(shipable::Basic::LongDouble),
        Datatype::hvector(3, 2, 24, &column)?,
        Datatype::hindexed(&[1, 2], &[0, 40], &long)?,
        Datatype::struct_(&[1, 3], &[0, 8], &[int.clone(), record.clone()])?,
        Datatype::resized(-8, 64, &record)?,
        column,
        record,
        double,
    ])
}

/// A frame or two, received; two reserved, given back.
const FRAMES: [&[u8]; 3] = [
    &[0, 40, 0, 0, 0, 2, 0, 0, 2, 0, 0, 2, 2],
    &[4, 0, 4, 0, 0, 4, 9, 0, 0, 0, 3, 2, 0, 0, 0, 4, 1, 0, 0, 0],
    &[1, 0, 40, 0, 0, 0, 1, 0, 0, 0, 2],
];

/// A frame with the long header: kind, tag, context, operation, displacement, count, form, length, signature.
fn opening(
    kind: Kind,
    tag: u8,
    form: u64,
    count: u64,
    length: u64,
    signature: u128,
    data: &[u8],
) -> Vec<u8> {
    let mut frame = vec![kind as u8, tag, 0, 0];
    frame.extend(Target::WINDOW.to_le_bytes());
    for word in [1, 2, count, form, length] {
        frame.extend(u64::to_le_bytes(word));
    }
    frame.extend(signature.to_le_bytes());
    frame.extend(data);
    frame
}

/// A form shipped, data put with it and got back, in the frames that an origin sends.
fn exchange(datatype: &Datatype, architecture: u8) -> shipable::Result<Vec<u8>> {
    let memory = &Architecture::all()[usize::from(architecture)];
    let form = Form::compile(datatype, memory)?;
    let (shipped, signature) = (form.encode(), form.signature()?.hash);
    let tag = if form.builder_architecture().is_some() { 2 } else { 1 };
    let packed = vec![0; form.bounds(memory)?.size as usize];
    let (length, signature) = (packed.len() as u64, signature);
    let frames = [
        opening(Kind::Define, tag, 1, 0, shipped.len() as u64, 0, &shipped),
        opening(Kind::Put, tag, 1, 1, length, signature, &packed),
        opening(Kind::Get, tag, 1, 1, length, signature, &[]),
        opening(Kind::Eager, 0, 0, 1, length, signature, &packed),
    ];
    let mut bytes = vec![architecture];
    for frame in frames {
        bytes.extend((frame.len() as u16).to_le_bytes());
        bytes.extend(frame);
    }
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: seeds FOLDER")?;
    let write = |target: &str, index: usize, bytes: &[u8]| {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{index:03}")), bytes)
    };
    let mut index = 0;
    for datatype in datatypes()? {
        for architecture in [Architecture::X86_64, Architecture::S390X] {
            let form = Form::compile(&datatype, &architecture)?;
            for form in [form.to_locale(&architecture)?, form] {
                write("form", index, &form.encode())?;
                index += 1;
            }
        }
    }
    for (index, architecture) in Architecture::all().iter().enumerate() {
        write("hello", index, &Target::hello(architecture))?;
    }
    for (index, datatype) in datatypes()?.iter().enumerate() {
        for architecture in 0..Architecture::all().len() {
            if let Ok(frames) = exchange(datatype, architecture as u8) {
                write("wire", index * 100 + architecture, &frames)?;
            }
        }
    }
    for (index, frames) in FRAMES.iter().enumerate() {
        write("frame", index, frames)?;
    }
    Ok(())
}
