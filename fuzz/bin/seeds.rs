//! Writes the inputs that each target starts from to a folder: what a sound peer sends. Made anew for each run, so that
//! they follow the wire.

use std::path::Path;

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
    for (index, frames) in FRAMES.iter().enumerate() {
        write("frame", index, frames)?;
    }
    Ok(())
}
