//! Writes the seed inputs of each target to a folder: the bytes of a valid peer. Each run makes
//! them anew, so that they follow the wire format.

use std::path::Path;

use longshore::fuzzing::Target;
use longshore::wire::Kind;
use longshore_launcher::Launcher;
use longshore_transport::RankState;
use longshore_transport::protocol::challenge::{Greeting, NONCE};
use longshore_transport::protocol::frame;
use shipable::flat::{self, CommunicatorDescription};
use shipable::reduce::Op;
use shipable::{Architecture, Basic, Datatype, Form};

/// One type of each constructor, portable and locale-specific ones.
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

/// Notations that the constructors in [`datatypes`] don't print.
const NOTATION: [&str; 4] = [
    "U594704(HV:U594608(S:2:d/1/0,c/1/8):3:1:-18)",
    "U1(S:2:U2(DA:i:C:6:5:2:8/B/*/2,9/C/2/3)/1/0,U2/1/8)",
    "U1(SS:3:U2(VI:d:l)/1,U3(FC:15:*)/2,U4(HXB:UB:2:1:5,-6)/0)",
    "U1(D:U2(X:U3(FI:9):2:3/36,1/0))",
];

/// Steps that receive one or two frames, reserve two, and give them back.
const FRAMES: [&[u8]; 3] = [
    &[0, 40, 0, 0, 0, 2, 0, 0, 2, 0, 0, 2, 2],
    &[4, 0, 4, 0, 0, 4, 9, 0, 0, 0, 3, 2, 0, 0, 0, 4, 1, 0, 0, 0],
    &[1, 0, 40, 0, 0, 0, 1, 0, 0, 0, 2],
];

/// Lines of PMI-1 that ranks send.
const PMI: [&str; 11] = [
    "cmd=init pmi_version=1 pmi_subversion=1",
    "cmd=get_maxes",
    "cmd=get_appnum",
    "cmd=get_universe_size",
    "cmd=get_my_kvsname",
    "cmd=put kvsname=longshore key=a value=b",
    "cmd=get kvsname=longshore key=a",
    "cmd=get kvsname=longshore key=PMI_process_mapping",
    "cmd=barrier_in",
    "cmd=finalize",
    "cmd=abort exitcode=7",
];

/// A frame with the long header: kind, tag, context, operation, displacement, count, form, length,
/// signature.
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

/// A frame with the small header: kind, tag, count 1, context, operation, displacement, form, half
/// of the signature.
fn whole(kind: Kind, tag: u8, form: u64, signature: u128, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind as u8 | 0x80, tag, 1, 0];
    frame.extend(Target::WINDOW.to_le_bytes());
    for word in [1, 2, form, signature as u64] {
        frame.extend(u64::to_le_bytes(word));
    }
    frame.extend(data);
    frame
}

/// The frames of an origin that defines a form, puts data with it and gets the data back.
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
        opening(Kind::Accumulate, Op::Replace.wire(), 1, 1, length, signature, &packed),
        opening(Kind::Accumulate, 0x80 | Op::Sum.wire(), 1, 1, length, signature, &packed),
        opening(Kind::Fetch, Op::Max.wire(), 1, 1, length, signature, &packed),
        opening(Kind::Fetch, Op::NoOp.wire(), 1, 1, 0, signature, &[]),
        opening(Kind::Swap, 0, 1, 1, 2 * length, signature, &[&packed[..], &packed].concat()),
        whole(Kind::Put, tag, 1, signature, &packed),
        whole(Kind::Get, tag, 1, signature, &[]),
        whole(Kind::Accumulate, Op::Sum.wire(), 1, signature, &packed),
        whole(Kind::Fetch, Op::Max.wire(), 1, signature, &packed),
        whole(Kind::Swap, 0, 1, signature, &[&packed[..], &packed].concat()),
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
    for (index, datatype) in datatypes()?.iter().enumerate() {
        // A peer's frames as messages of a connection, with a challenge made with the secret.
        let Ok(frames) = exchange(datatype, 0) else { continue };
        let mut rest = &frames[1..];
        let mut bytes = vec![0b1110];
        while let Some((length, others)) = rest.split_first_chunk() {
            let (frame, others) = others.split_at(usize::from(u16::from_le_bytes(*length)));
            let message = [&frame::header(frame.len())[..], frame].concat();
            bytes.extend((message.len() as u16).to_le_bytes());
            bytes.extend(message);
            rest = others;
        }
        write("link", index, &bytes)?;
    }
    let greeting = Greeting::new(1, 0, [1; NONCE]).encode();
    let farewell = frame::farewell(RankState::Finalized);
    for (index, message) in [&greeting[..], &farewell].into_iter().enumerate() {
        for bits in [0, 0b0110, 0b0111] {
            let length = (message.len() as u16).to_le_bytes();
            let bytes = [&[bits], &length[..], message].concat();
            write("link", 1000 + index * 8 + usize::from(bits), &bytes)?;
        }
    }
    let printed = datatypes()?.iter().map(Datatype::to_string).collect::<Vec<_>>();
    let texts = printed.iter().map(String::as_str).chain(NOTATION);
    for (index, text) in texts.enumerate() {
        write("notation", index, text.as_bytes())?;
        let all = Architecture::all().len() as u8;
        // With one architecture, and between two.
        for apart in [0, 7] {
            let (memory, stream) = (index as u8 % all, (index as u8 + apart) % all);
            let mut bytes = vec![memory, stream, 2, apart];
            bytes.extend(text.as_bytes());
            bytes.push(b'\n');
            bytes.extend((0..400u32).map(|byte| (byte % 7) as u8));
            write("unpack", index * 2 + usize::from(apart > 0), &bytes)?;
        }
    }
    // The last byte decides whether the target corrects length and checksum.
    let mut flat_forms = Vec::new();
    for datatype in datatypes()? {
        flat_forms.push(flat::pack(&datatype, &Architecture::S390X)?);
    }
    let (one, other) = (&Architecture::X86_64, &Architecture::S390X);
    for members in [vec![], vec![(0, one), (1, one), (2, other)]] {
        flat_forms.push(CommunicatorDescription::new(7, 1, members).pack());
    }
    for (index, packed) in flat_forms.iter().enumerate() {
        write("flat", index * 2, &[packed.as_bytes(), &[0]].concat())?;
        write("flat", index * 2 + 1, &[packed.as_bytes(), &[1]].concat())?;
    }
    for (index, frames) in FRAMES.iter().enumerate() {
        write("frame", index, frames)?;
    }
    let step = |speaker: u8, said: &[u8]| {
        [&[speaker][..], &(said.len() as u16).to_le_bytes(), said].concat()
    };
    let steps = [step(0, &Launcher::agent_seed()), step(1, &Launcher::launcher_seed())];
    write("launcher", 0, &steps.concat())?;
    let lines = PMI.iter().enumerate().map(|(index, line)| {
        let rank = index as u8 % 2;
        step(2 + 4 * rank, format!("{line}\n").as_bytes())
    });
    write("launcher", 1, &lines.collect::<Vec<_>>().concat())?;
    write("launcher", 2, &[step(2, b"cmd=barrier_in\n"), step(7, b""), step(3, b"")].concat())?;
    let all = Architecture::all().len() as u8;
    for (index, basic) in Basic::ALL.iter().enumerate() {
        for op in Op::ALL.iter().filter(|op| op.check((*basic).into()).is_ok()) {
            let (number, kind) = (index as u8, op.wire());
            let start = [kind, basic.wire(), number % all, kind % all, number % 3, 3 * kind + 1];
            let operands = (0..600u32).map(|byte| (byte * 7 % 5) as u8);
            let bytes: Vec<u8> = start.into_iter().chain(operands).collect();
            write("reduce", index * 100 + usize::from(kind), &bytes)?;
        }
    }
    Ok(())
}
