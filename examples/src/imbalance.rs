//! A planted imbalance: in each step, one rank computes ten times as long as the others, and all of
//! them wait for it in a fence. docs/observing.md finds it with `--stats` and `--trace`.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use longshore::{Info, Rank, Window};

use crate::show::Show;

/// The steps of the job.
const STEPS: usize = 20;
/// Values that a rank puts to its neighbour in each step.
const VALUES: usize = 1000;
/// The time that a rank computes in a step.
const WORK: Duration = Duration::from_millis(4);
/// The factor on the work of the slow rank.
const SLOWER: u32 = 10;

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or a value that isn't the neighbour's.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let (next, before) = ((me + 1) % size, (me + size - 1) % size);
    let slow = size / 2;
    show.step(&format!("Imbalance: {STEPS} steps on {size} ranks, of which one is slow"))?;

    let double = rank.type_of::<f64>()?;
    let info = Info::default();
    let mut field = Window::allocate(world, (VALUES * 8) as i64, 8, &info)?;
    let mut sums = Window::allocate(world, 8 * i64::from(size), 8, &info)?;
    let mut right = true;
    for step in 0..STEPS {
        let values = compute(me, step, if me == slow { SLOWER } else { 1 });
        let sum = [values.iter().sum::<f64>()];
        // The neighbour's values. All ranks wait here for the slow one.
        field.fence(|epoch| epoch.put(&values, next, 0, VALUES as i64, &double))?;
        // The sums, to rank 0. Nobody has to wait here.
        sums.fence(|epoch| epoch.put(&sum, 0, me.into(), 1, &double))?;
        let mut got = vec![0.0; VALUES];
        field.read(0, &mut got)?;
        right &= got == values_of(before, step);
    }
    show.check("each rank has its neighbour's values of the last step", right)?;
    sums.free()?;
    field.free()?;
    Ok(())
}

/// Computes for a time, as a simulation would. The result doesn't depend on the time.
fn compute(rank: i32, step: usize, times: u32) -> Vec<f64> {
    let (start, values) = (Instant::now(), values_of(rank, step));
    while start.elapsed() < WORK * times {
        black_box(values_of(rank, step));
    }
    values
}

fn values_of(rank: i32, step: usize) -> Vec<f64> {
    (0..VALUES).map(|at| f64::from(rank) + (step * VALUES + at) as f64 / 1024.0).collect()
}
