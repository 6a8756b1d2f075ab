//! Whether all ranks make the same collective call (rule 8), with the promises that must be the same (rule 9): a pure
//! function of what they announce.

use serde::{Deserialize, Serialize};

use super::report::Tally;
use crate::assert::Assert;

/// What a rank says of a collective call before it makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// In words, with the window.
    pub call: String,
    pub site: String,
    /// A fence's promises, as MPI numbers them.
    pub promises: u32,
    /// What the rank knows.
    pub clock: Vec<u64>,
    pub tally: Tally,
}

/// What is wrong with calls that should be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disagreement {
    pub rule: u8,
    /// What is like it.
    pub kind: String,
    pub text: String,
}

/// The promises that all ranks make, or none.
const SHARED: [(Assert, &str); 2] =
    [(Assert::NOPRECEDE, "NOPRECEDE"), (Assert::NOSUCCEED, "NOSUCCEED")];

/// Compares what the ranks announce, by their ranks in the job.
pub(crate) fn compare(ranks: &[u32], said: &[Announcement]) -> Option<Disagreement> {
    if let Some(other) = said.iter().position(|it| it.call != said[0].call) {
        return Some(Disagreement {
            rule: 8,
            kind: format!("8 {} {}", said[0].site, said[other].site),
            text: sides(
                "check: rule 8: ranks make different collective calls on one communicator\n",
                ranks,
                said,
                |it| it.call.clone(),
                "check:   nobody can end such a call, so all return an error; make the same calls in the same order\n",
            ),
        });
    }
    SHARED.iter().find_map(|(assert, name)| {
        let promised = |it: &Announcement| it.promises & assert.bits() != 0;
        let other = said.iter().position(|it| promised(it) != promised(&said[0]))?;
        Some(Disagreement {
            rule: 9,
            kind: format!("9 {name} {} {}", said[0].site, said[other].site),
            text: sides(
                &format!("check: rule 9: some ranks promise {name}, and some don't\n"),
                ranks,
                said,
                |it| {
                    format!("{} {} {name}", it.call, if promised(it) { "with" } else { "without" })
                },
                "check:   give it at all ranks of the window, or at none\n",
            ),
        })
    })
}

/// One line for each thing said, with the first rank to say so and how many others do.
fn sides(
    head: &str,
    ranks: &[u32],
    said: &[Announcement],
    what: impl Fn(&Announcement) -> String,
    tail: &str,
) -> String {
    let mut lines: Vec<(String, u32, usize)> = Vec::new();
    for (&rank, it) in ranks.iter().zip(said) {
        let line = format!("{} at {}", what(it), it.site);
        match lines.iter_mut().find(|(known, ..)| *known == line) {
            Some((.., others)) => *others += 1,
            None => lines.push((line, rank, 0)),
        }
    }
    let line = |(line, rank, others): &(String, u32, usize)| match others {
        0 => format!("check:   rank {rank}: {line}\n"),
        _ => format!("check:   rank {rank} and {others} more: {line}\n"),
    };
    let lines: String = lines.iter().map(line).collect();
    format!("{head}{lines}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(call: &str, site: &str, promises: Assert) -> Announcement {
        Announcement {
            call: call.to_owned(),
            site: site.to_owned(),
            promises: promises.bits(),
            clock: Vec::new(),
            tally: Tally::default(),
        }
    }

    #[test]
    fn what_all_do_is_right() {
        let all = vec![said("barrier", "a.rs:1", Assert::NONE); 3];
        assert_eq!(compare(&[0, 1, 2], &all), None);
        let all = [
            said("fence of window 1", "a.rs:1", Assert::NOPUT | Assert::NOPRECEDE),
            said("fence of window 1", "b.rs:2", Assert::NOPRECEDE),
        ];
        assert_eq!(compare(&[0, 1], &all), None);
    }

    #[test]
    fn who_differs_is_named() {
        let mut all = vec![said("barrier", "a.rs:1", Assert::NONE); 4];
        all[2] = said("fence of window 1", "b.rs:2", Assert::NONE);
        let found = compare(&[0, 1, 5, 6], &all).unwrap();
        assert_eq!(found.rule, 8);
        let lines: Vec<_> = found.text.lines().collect();
        assert_eq!(lines[1], "check:   rank 0 and 2 more: barrier at a.rs:1");
        assert_eq!(lines[2], "check:   rank 5: fence of window 1 at b.rs:2");
        let all = [
            said("fence of window 1", "a.rs:1", Assert::NONE),
            said("fence of window 1", "b.rs:2", Assert::NOSUCCEED),
        ];
        let found = compare(&[0, 1], &all).unwrap();
        assert_eq!(found.rule, 9);
        let lines: Vec<_> = found.text.lines().collect();
        assert_eq!(lines[0], "check: rule 9: some ranks promise NOSUCCEED, and some don't");
        assert_eq!(lines[1], "check:   rank 0: fence of window 1 without NOSUCCEED at a.rs:1");
        assert_eq!(lines[2], "check:   rank 1: fence of window 1 with NOSUCCEED at b.rs:2");
    }
}
