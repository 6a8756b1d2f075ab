//! Heat spreads over a plate whose columns are divided among the ranks. In each step a rank puts
//! its outermost columns into the halos of its neighbours.
//!
//! The field is stored row by row, so a column is a strided vector. The column type counts doubles,
//! not bytes. It is therefore portable: it serves as target datatype at ranks of any byte order.

use std::error::Error;

use longshore::{Datatype, Info, PROC_NULL, Rank, Window};

use crate::show::{Show, memory_of};

const ROWS: usize = 8;
/// Columns that belong to one rank.
const OWN: usize = 4;
/// Columns of a rank's field: its own and one halo column on each side.
const WIDTH: usize = OWN + 2;
const STEPS: usize = 20;
/// The value of a halo before the first exchange. No temperature has any of its bytes.
const UNSET: f64 = f64::from_bits(0xcccc_cccc_cccc_cccc);

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or a value that differs from a serial computation.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let west = if me == 0 { PROC_NULL } else { me - 1 };
    let east = if me + 1 == size { PROC_NULL } else { me + 1 };

    let column =
        rank.commit(&Datatype::vector(ROWS as i64, 1, WIDTH as i64, &Datatype::double())?)?;
    let mut window = Window::allocate(world, (ROWS * WIDTH * 8) as i64, 8, &Info::default())?;
    let mut field = plate(me as usize * OWN, OWN);
    for row in field.chunks_mut(WIDTH) {
        // A neighbour will put these values. At the edges of the plate there is no neighbour.
        row[0] = if west == PROC_NULL { 0.0 } else { UNSET };
        row[WIDTH - 1] = if east == PROC_NULL { 0.0 } else { UNSET };
    }
    window.write(0, &field)?;

    show.step(&format!(
        "Halo: a plate of {ROWS} x {} on {size} ranks, {STEPS} steps",
        OWN * size as usize
    ))?;
    show.say(&format!("a column is {column}, put with displacement 0 or {}", OWN + 1))?;
    for step in 0..STEPS {
        let before = memory_of(&window)?;
        let mine = |at: usize| -> Vec<f64> { field.chunks(WIDTH).map(|row| row[at]).collect() };
        let (first, last) = (mine(1), mine(OWN));
        window.fence(|epoch| {
            epoch.put(&first, west, OWN as i64 + 1, 1, &column)?;
            epoch.put(&last, east, 0, 1, &column)
        })?;
        if step == 0 && size > 1 {
            show.wire(0)?;
            show.memories((0, bytes_of(&last).as_slice()), (1, &before, &memory_of(&window)?))?;
        }
        if step == 1 && size > 1 {
            show.say("step 2 sends no form, since rank 1 knows it by its id")?;
            show.wire(0)?;
        }
        window.read(0, &mut field)?;
        field = relax(&field, WIDTH);
        window.write(0, &field)?;
    }

    let serial = (0..STEPS)
        .fold(plate(0, OWN * size as usize), |plate, _| relax(&plate, OWN * size as usize + 2));
    let start = me as usize * OWN;
    let same =
        field.chunks(WIDTH).zip(serial.chunks(OWN * size as usize + 2)).all(|(mine, whole)| {
            mine[1..=OWN].iter().zip(&whole[start + 1..]).all(|(a, b)| a.to_bits() == b.to_bits())
        });
    show.check("every value equals that of a serial computation, to the last bit", same)?;
    window.free()?;
    Ok(())
}

/// Columns `from..from + columns` of the initial plate, with a cold column on either side.
fn plate(from: usize, columns: usize) -> Vec<f64> {
    let at = |row: usize, column: usize| match column.checked_sub(1) {
        Some(own) if own < columns => f64::from(((row * 31 + (from + own) * 17) % 97) as u32) / 7.0,
        _ => 0.0,
    };
    (0..ROWS * (columns + 2)).map(|cell| at(cell / (columns + 2), cell % (columns + 2))).collect()
}

/// One step: each value becomes the mean of itself and its two neighbours in the same row.
fn relax(field: &[f64], width: usize) -> Vec<f64> {
    let mut next = field.to_vec();
    for (row, out) in field.chunks(width).zip(next.chunks_mut(width)) {
        for at in 1..width - 1 {
            out[at] = (row[at - 1] + row[at] + row[at + 1]) / 3.0;
        }
    }
    next
}

/// The bytes of the values in this machine's representation, for display.
fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}
