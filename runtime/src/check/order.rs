//! Pure functions that compare the announcements of a collective call: the call itself (rule 8),
//! and the asserts that all ranks must give alike (rule 9).

use serde::{Deserialize, Serialize};

use super::report::Tally;
use crate::assert::Assert;
use crate::job::{Topic, Topics};

/// A rank's announcement of the collective call that it is about to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// The object of the call.
    pub object: Object,
    /// The name of the call, with its window.
    pub call: String,
    pub site: String,
    /// The asserts of a fence, as MPI numbers them.
    pub promises: u32,
    /// The data of the call, if all ranks give the same types and counts.
    pub sample: Option<Sample>,
    /// The rank's vector clock.
    pub clock: Vec<u64>,
    pub tally: Tally,
}

/// The object of a collective call. MPI orders the calls on each object, and no others: threads may
/// make calls on several objects at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Object {
    /// The communicator by which the calls are announced.
    Communicator,
    /// A window of that communicator's ranks, by its number.
    Window(u32),
}

/// The types and counts that a rank gives to a collective call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// The hash of their signature.
    pub signature: u128,
    pub text: String,
}

/// A difference between calls that must be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disagreement {
    pub rule: u8,
    pub topic: Topic,
    /// The key under which faults of one kind are reported once.
    pub kind: String,
    pub text: String,
}

/// The asserts of a fence that all ranks must give, or none.
const SHARED: [(Assert, &str); 2] =
    [(Assert::NOPRECEDE, "NOPRECEDE"), (Assert::NOSUCCEED, "NOSUCCEED")];

/// Compares the announcements of these ranks of the job. Returns the first difference of those that
/// are reported.
pub(crate) fn compare(
    ranks: &[u32],
    said: &[Announcement],
    topics: Topics,
) -> Option<Disagreement> {
    if topics.include(Topic::Collectives) {
        if said.iter().any(|it| it.call != said[0].call) {
            return Some(differ(ranks, said));
        }
        if let Some(differing) = compare_samples(ranks, said) {
            return Some(differing);
        }
    }
    SHARED.iter().find_map(|(assert, name)| {
        let promised = |it: &Announcement| it.promises & assert.bits() != 0;
        let other = said.iter().position(|it| promised(it) != promised(&said[0]))?;
        Some(Disagreement {
            rule: 9,
            topic: Topic::Windows,
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

/// The report of ranks that make different calls.
pub(crate) fn differ(ranks: &[u32], said: &[Announcement]) -> Disagreement {
    let other = said.iter().position(|it| it.call != said[0].call).unwrap_or(0);
    let (head, tail) = match said.iter().any(|it| it.object != said[0].object) {
        true => (
            "check: rule 8: ranks make different collective calls on one communicator and its windows\n",
            "check:   these calls wait for each other, so all of them return an error; \
             make them in the same order, or in several threads\n",
        ),
        false => (
            "check: rule 8: ranks make different collective calls on one communicator\n",
            "check:   such a call can't end, so all ranks return an error; make the same calls in the same order\n",
        ),
    };
    Disagreement {
        rule: 8,
        topic: Topic::Collectives,
        kind: format!("8 {} {}", said[0].site, said[other].site),
        text: sides(head, ranks, said, |it| it.call.clone(), tail),
    }
}

/// Compares the types and counts of the ranks that give any.
fn compare_samples(ranks: &[u32], said: &[Announcement]) -> Option<Disagreement> {
    let signature = |it: &Announcement| it.sample.as_ref().map(|sample| sample.signature);
    let first = said.iter().find(|it| it.sample.is_some())?;
    let differs = |it: &&Announcement| signature(it).is_some_and(|it| Some(it) != signature(first));
    let other = said.iter().find(differs)?;
    let given = |it: &Announcement| match &it.sample {
        Some(sample) => format!("{} of {}", it.call, sample.text),
        None => format!("{} in place", it.call),
    };
    Some(Disagreement {
        rule: 8,
        topic: Topic::Collectives,
        kind: format!("8 data {} {}", first.site, other.site),
        text: sides(
            "check: rule 8: ranks give different types or counts to one collective call\n",
            ranks,
            said,
            given,
            "check:   all ranks return an error; give the same basic types in the same number\n",
        ),
    })
}

/// Formats a report with one line for each different announcement, its first rank, and the number
/// of further ranks.
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
            object: Object::Communicator,
            call: call.to_owned(),
            site: site.to_owned(),
            promises: promises.bits(),
            sample: None,
            clock: Vec::new(),
            tally: Tally::default(),
        }
    }

    #[test]
    fn equal_calls_agree() {
        let all = vec![said("barrier", "a.rs:1", Assert::NONE); 3];
        assert_eq!(compare(&[0, 1, 2], &all, Topics::default()), None);
        let all = [
            said("fence of window 1", "a.rs:1", Assert::NOPUT | Assert::NOPRECEDE),
            said("fence of window 1", "b.rs:2", Assert::NOPRECEDE),
        ];
        assert_eq!(compare(&[0, 1], &all, Topics::default()), None);
    }

    #[test]
    fn calls_on_different_objects_are_reported_as_such() {
        let mut all = vec![said("barrier", "a.rs:1", Assert::NONE); 2];
        all[1] = Announcement {
            object: Object::Window(1),
            ..said("fence of window 1", "b.rs:2", Assert::NONE)
        };
        let text = differ(&[0, 1], &all).text;
        assert!(text.contains(" on one communicator and its windows\n"), "{text}");
        assert!(text.ends_with("; make them in the same order, or in several threads\n"), "{text}");
    }

    #[test]
    fn differing_calls_are_reported_with_their_ranks() {
        let mut all = vec![said("barrier", "a.rs:1", Assert::NONE); 4];
        all[2] = said("fence of window 1", "b.rs:2", Assert::NONE);
        let found = compare(&[0, 1, 5, 6], &all, Topics::default()).unwrap();
        assert_eq!(found.rule, 8);
        let lines: Vec<_> = found.text.lines().collect();
        assert_eq!(lines[1], "check:   rank 0 and 2 more: barrier at a.rs:1");
        assert_eq!(lines[2], "check:   rank 5: fence of window 1 at b.rs:2");
        let all = [
            said("fence of window 1", "a.rs:1", Assert::NONE),
            said("fence of window 1", "b.rs:2", Assert::NOSUCCEED),
        ];
        let found = compare(&[0, 1], &all, Topics::default()).unwrap();
        assert_eq!(found.rule, 9);
        let lines: Vec<_> = found.text.lines().collect();
        assert_eq!(lines[0], "check: rule 9: some ranks promise NOSUCCEED, and some don't");
        assert_eq!(lines[1], "check:   rank 0: fence of window 1 without NOSUCCEED at a.rs:1");
        assert_eq!(lines[2], "check:   rank 1: fence of window 1 with NOSUCCEED at b.rs:2");
    }
}
