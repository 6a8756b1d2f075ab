//! Tasks of uneven number, and ranks that steal from each other: a counter at each rank gives its tasks out by fetch_and_op.
//!
//! A rank takes from its own counter, which costs next to nothing where it is reached directly, and when that has run out,
//! from everybody else's. No task is done twice and none is left, whoever is how fast.

use std::error::Error;

use longshore::{Info, Op, Rank, Window};

use crate::show::Show;

/// Tasks of rank r: r + 1 times so many.
const TASKS: i64 = 24;

/// Plays it on any number of ranks.
///
/// # Errors
/// What the communication meets, and a task that wasn't done once.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let (me, size) = (world.rank(), world.size());
    let most = tasks(size - 1);
    // A counter, the sum of the results at rank 0, and how often each task was done.
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
    // Who did how many is a matter of luck.
    show.say(&format!("{everyone} tasks in all"))?;
    show.check("every task was done, and once", times.iter().all(|&times| times == 1))?;
    let sum = (0..size).flat_map(|owner| (0..tasks(owner)).map(move |task| work(owner, task)));
    let sum: i64 = sum.sum();
    let found = if me == 0 { window.get::<i64>(1)? } else { sum };
    show.check("the results add up", found == sum)?;
    window.free()?;
    Ok(())
}

fn tasks(owner: i32) -> i64 {
    TASKS * i64::from(owner + 1)
}

/// A task: how many steps a number takes to 1, halved if even, else three times and one more.
fn work(owner: i32, task: i64) -> i64 {
    let mut number = 1000 * i64::from(owner + 1) + task;
    let mut steps = 0;
    while number != 1 {
        number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}
