//! Agreement of the ranks of a file: on errors of collective calls, and on arguments that have to
//! be equal.

use longshore::{Class, Communicator, Op};

use crate::error::{Error, Result};

/// Lets all ranks fail if one has failed. A rank without an error of its own gets that of the first
/// rank that has one.
pub(crate) fn agree<T>(comm: &Communicator, outcome: Result<T>) -> Result<T> {
    if comm.size() == 1 {
        return outcome;
    }
    let (me, size) = (comm.rank(), comm.size());
    let mut first = [0];
    let mine = if outcome.is_err() { size - me } else { 0 };
    comm.allreduce(&[mine], &mut first, Op::Max)?;
    if first[0] == 0 {
        return outcome;
    }
    tell(comm, size - first[0], outcome)
}

/// Lets all ranks fail with the error of the first rank that has one.
fn tell<T>(comm: &Communicator, first: i32, outcome: Result<T>) -> Result<T> {
    let mut said = match &outcome {
        Err(error) if first == comm.rank() => {
            let mut said = vec![error.class().wire()];
            said.extend_from_slice(error.to_string().as_bytes());
            said
        }
        _ => Vec::new(),
    };
    let mut length = [said.len() as i64];
    comm.bcast(&mut length, first)?;
    said.resize(length[0] as usize, 0);
    comm.bcast(&mut said[..], first)?;
    outcome.and_then(|_| {
        let class = said.first().and_then(|class| Class::from_wire(*class));
        let text = String::from_utf8_lossy(said.get(1..).unwrap_or_default()).into_owned();
        Err(Error::Elsewhere { rank: first, class: class.unwrap_or(Class::Other), text })
    })
}

/// Refuses numbers that differ between ranks, at all of them, and lets all ranks fail if one has no
/// number.
///
/// # Errors
/// NOT_SAME with the lowest and the highest number. That of the first rank without a number; a rank
/// with an error of its own gets that.
pub(crate) fn same(comm: &Communicator, what: &str, number: Result<i64>) -> Result<()> {
    let (me, size) = (comm.rank(), comm.size());
    if size == 1 {
        return number.map(drop);
    }
    // The lowest number is the highest of all complements.
    let mine = match number {
        Ok(number) => [!number, number, 0],
        Err(_) => [i64::MIN, i64::MIN, i64::from(size - me)],
    };
    let mut bounds = [0i64; 3];
    comm.allreduce(&mine, &mut bounds, Op::Max)?;
    let (low, high) = (!bounds[0], bounds[1]);
    if bounds[2] > 0 {
        return tell(comm, size - bounds[2] as i32, number.map(drop));
    }
    if low == high {
        return Ok(());
    }
    let problem = format!(
        "the ranks give different {what}, from {low} to {high}: give the same at all of them"
    );
    Err(Error::argument(Class::NotSame, problem))
}
