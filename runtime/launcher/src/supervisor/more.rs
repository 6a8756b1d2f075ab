//! The start of ranks that a rank asks for.
//!
//! 1. The number of processes of each program is chosen: the largest acceptable one for which there
//!    is room.
//! 2. All of them are started, or none is.
//! 3. From there on they are ranks as any other: their numbers follow those of all ranks before.

use std::ffi::OsString;
use std::fs;

use super::{Phase, Rank, Supervisor};
use crate::plan::more_orders;
use longshore_job::joining::{Order, Started, Wanted};

/// The most programs of one order.
const PROGRAMS: usize = 256;

impl Supervisor<'_> {
    /// Starts the processes that a rank asks for.
    pub(super) fn start_more(&mut self, by: u32, order: &Order) -> Started {
        self.try_start(by, order).unwrap_or_else(Started::Refused)
    }

    fn try_start(&mut self, by: u32, order: &Order) -> Result<Started, String> {
        if self.phase != Phase::Running {
            return Err("the job is ending".to_owned());
        }
        if order.programs.len() > PROGRAMS {
            let count = order.programs.len();
            return Err(format!("{count} programs at once, and {PROGRAMS} are possible"));
        }
        order.programs.iter().try_for_each(check_host)?;
        let part = self.ranks[by as usize].part;
        let several = "a job on several hosts can't start processes: start it on one host, without \
                       --host";
        let local = self.stations.local().ok_or(several)?;
        let (room, first) = local.room();
        let counts = counts(&order.programs, room)?;
        let orders = more_orders(self.job, order, &counts, (part, first), &self.secret);
        // Their output has to have a place before they run.
        let mut ranks = Vec::new();
        for member in &orders.members {
            let program = OsString::from(&order.programs[member.program as usize].program);
            let rank = Rank::new(member.rank, part, program, &self.job.output);
            ranks.push(rank.map_err(|error| error.to_string())?);
        }
        let events = local.add(&orders).map_err(|error| error.to_string())?;
        self.ranks.extend(ranks);
        self.server.add(orders.members.iter().map(|member| member.part));
        self.timers.add(orders.size);
        events.into_iter().for_each(|event| self.handle_event(event));
        Ok(Started::Running { first, counts })
    }
}

/// Refuses a program for another host.
fn check_host(wanted: &Wanted) -> Result<(), String> {
    let Some(host) = &wanted.host else { return Ok(()) };
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if host == "localhost" || host == own.trim() {
        return Ok(());
    }
    Err(format!(
        "processes can't be started on host {host}: a rank starts them on its own host, {}",
        own.trim()
    ))
}

/// The number of processes of each program, if there is room for `room` more.
fn counts(programs: &[Wanted], room: u32) -> Result<Vec<u32>, String> {
    let (mut left, mut counts) = (room, Vec::new());
    // The least number of processes of the programs that follow.
    let least = |wanted: &Wanted| wanted.counts.first().copied().unwrap_or(0);
    let mut later: u32 = programs.iter().map(least).fold(0, u32::saturating_add);
    for wanted in programs {
        later = later.saturating_sub(least(wanted));
        let fits = |count: &&u32| count.saturating_add(later) <= left;
        let Some(count) = wanted.counts.iter().rev().find(fits) else {
            let most = wanted.counts.last().copied().unwrap_or(0);
            return Err(match room {
                0 => "there is no room for more processes: ranks start others in a job of one \
                      host, without --check, and at most 1024 during the job"
                    .to_owned(),
                _ => format!("no room for {most} processes of {}: {left} are left", wanted.program),
            });
        };
        left -= count;
        counts.push(*count);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(counts: &[u32]) -> Wanted {
        let (program, arguments, counts) = ("a".to_owned(), Vec::new(), counts.to_vec());
        Wanted { program, arguments, counts, host: None, folder: None, path: None, arch: None }
    }

    #[test]
    fn each_program_gets_the_largest_number_that_leaves_the_others_theirs() {
        let both = [wanted(&[1, 2, 5]), wanted(&[2, 3])];
        assert_eq!(counts(&both, 8), Ok(vec![5, 3]));
        assert_eq!(counts(&both, 7), Ok(vec![5, 2]));
        assert_eq!(counts(&both, 6), Ok(vec![2, 3]));
        assert_eq!(counts(&both, 3), Ok(vec![1, 2]));
        assert!(counts(&both, 2).unwrap_err().contains("no room for 5 processes of a"));
        assert!(counts(&both, 0).unwrap_err().contains("without --check"));
    }

    #[test]
    fn another_host_is_refused_by_name() {
        let elsewhere = Wanted { host: Some("nowhere".to_owned()), ..wanted(&[1]) };
        assert!(check_host(&elsewhere).unwrap_err().contains("host nowhere"));
        assert!(check_host(&Wanted { host: Some("localhost".to_owned()), ..wanted(&[1]) }).is_ok());
    }
}
