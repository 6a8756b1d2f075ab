//! Work stealing: each rank has a counter in its window, and `fetch_and_op` on it takes the rank's
//! next task.
//!
//! Ranks start with different numbers of tasks. A rank first takes the tasks of its own counter.
//! When they run out, it takes those of the other ranks. Each task is done exactly once, however
//! fast the ranks are.

use std::error::Error;

use longshore::{Info, Op, Rank, Window};

use crate::show::Show;

/// Tasks of rank 0. Rank `r` has `r + 1` times as many.
const TASKS: i64 = 24;

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or a task that wasn't done exactly once.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let most = tasks(size - 1);
    // Slot 0 is the counter, slot 1 the sum of the results (at rank 0 only). Slot 2 + t counts how
    // often task t was done.
    let window = Window::allocate(world, 8 * (2 + most), 8, &Info::default())?;
    let long = rank.type_of::<i64>()?;
    show.step(&format!("Work stealing: {size} ranks with {TASKS} to {most} tasks"))?;

    let mut done = 0i64;
    window.lock_all(|epoch| {
        for victim in (0..size).map(|step| (me + step) % size) {
            loop {
                let task = epoch.fetch_and_op(1i64, victim, 0, Op::Sum)?.wait()?;
                if task >= tasks(victim) {
                    break;
                }
                let result = [work(victim, task)];
                epoch.flush(0, |epoch| epoch.accumulate(&result, 0, 1, 1, &long, Op::Sum))?;
                epoch.accumulate(&[1i64], victim, 2 + task, 1, &long, Op::Sum)?;
                done += 1;
            }
        }
        Ok(())
    })?;
    world.barrier()?;

    let mut times = vec![0i64; tasks(me) as usize];
    window.read(2, &mut times)?;
    let everyone: i64 = world.allgather(&[done])?.iter().sum();
    // Only the total: how many tasks each rank did differs between runs.
    show.say(&format!("{everyone} tasks in all"))?;
    show.check("every task was done exactly once", times.iter().all(|&times| times == 1))?;
    let sum = (0..size).flat_map(|owner| (0..tasks(owner)).map(move |task| work(owner, task)));
    let sum: i64 = sum.sum();
    let found = if me == 0 { window.get::<i64>(1)? } else { sum };
    show.check("the sum of the results equals a serial sum", found == sum)?;
    window.free()?;
    Ok(())
}

fn tasks(owner: i32) -> i64 {
    TASKS * i64::from(owner + 1)
}

/// The work of a task: the number of Collatz steps from its start value to 1.
fn work(owner: i32, task: i64) -> i64 {
    let mut number = 1000 * i64::from(owner + 1) + task;
    let mut steps = 0;
    while number != 1 {
        number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}
