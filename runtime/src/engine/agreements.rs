//! Agreements: the ranks of a communicator agree on a value though some of them fail meanwhile
//! (the MPI Forum's proposal of fault tolerance, MPIX_Comm_agree). Every rank that learns a result
//! learns the same one, also a rank that fails afterwards.
//!
//! The members are ordered by their ranks in the communicator. The *leader*, as a rank sees it, is
//! the first member of whose failure the rank doesn't know.
//!
//! 1. Each member sends its vote to its leader.
//! 2. A leader that has accepted no proposal waits until each member has voted or failed, and
//!    combines the votes to a proposal. A leader that has accepted one takes that proposal over. It
//!    accepts its proposal, and sends it to all others.
//! 3. A member that gets a proposal accepts it, unless it has accepted one of a later leader, and
//!    answers the leader.
//! 4. Once each member has accepted the leader's proposal or failed, the leader decides, and sends
//!    the decision to all others.
//! 5. A member that learns of its leader's failure votes again, at the next one, or sends it the
//!    decision if it knows that. A rank that knows the decision answers a vote with it.
//!
//! # Proof
//!
//! Assumed: a rank that is reported as failed has failed, a failure is reported to all survivors at
//! some time, and what one rank sends to another arrives in order or not at all, and the latter
//! only if one of the two fails. The launcher's reports are so. A connection that breaks between
//! two living ranks is taken for a failure at both ends: then nothing of this holds.
//!
//! *All decisions are equal.* Let `a` be the first leader, by rank, that decides, and `v` its
//! proposal. Each member that hadn't failed then has accepted `v` from `a`. A later leader `b`
//! proposes only after `a` has failed, and `b` hadn't failed when `a` decided, so `b` has accepted
//! `v` from `a`. It takes over the proposal of the last leader from which it has accepted one: that
//! is `a`, or one after `a`. By induction over the leaders after `a`, each of them proposes `v`. So
//! each decides `v`, and no rank learns anything but the decision of a leader.
//!
//! *A decision is of this agreement.* A leader that has accepted no proposal knows that no leader
//! before it has decided, since it would have had to accept for that. So it may combine the votes
//! anew.
//!
//! *Every survivor that votes learns the decision, if all survivors vote.* Leaders fail at most as
//! often as there are members. A leader that survives gets the vote, or the decision, of each
//! survivor, since each sends it when it learns that all members before have failed. Then its
//! proposal reaches each survivor, and each accepts it: no leader after it exists. So it decides.
//!
//! *Records are dropped only after use.* A vote says up to which number all agreements of its
//! communicator are decided at its sender, and a decision has the least of these numbers. So each
//! member that can still ask for a decision knows it when the others drop it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The name of an agreement: the number of its communicator, and its own number there.
pub(crate) type Name = (u32, u32);

/// What an agreement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// A flag of the program.
    Flag,
    /// The communicator of the survivors.
    Survivors,
    /// That all survivors have come to the end of the job.
    End,
}

impl Subject {
    /// The name of the call.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Flag => "agree",
            Subject::Survivors => "shrink",
            Subject::End => "finalize",
        }
    }
}

/// What a member brings to an agreement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Vote {
    pub subject: Subject,
    /// The class and text of the error of the member's call: it votes all the same, since each
    /// member counts the agreements. At most [`FAULT`] characters.
    pub fault: Option<(u8, String)>,
    /// The result is the bitwise "and" of all flags.
    pub flag: u32,
    /// A number that no communicator has. The result is that of one of the members.
    pub number: u32,
    /// The ranks of the job whose failure the member has acknowledged, in ascending order.
    pub acknowledged: Vec<u32>,
    /// All agreements of the communicator below this number are decided at the member.
    decided: u32,
}

/// The most characters of a fault's text in an agreement.
const FAULT: usize = 400;

impl Vote {
    pub(crate) fn new(subject: Subject, flag: u32, number: u32, acknowledged: Vec<u32>) -> Vote {
        Vote { subject, fault: None, flag, number, acknowledged, decided: 0 }
    }

    /// The vote of a member whose call has failed.
    pub(crate) fn of_fault(subject: Subject, (class, text): (u8, String)) -> Vote {
        let fault = Some((class, text.chars().take(FAULT).collect()));
        Vote { fault, ..Vote::new(subject, !0, 0, Vec::new()) }
    }
}

/// The result of an agreement, equal at all ranks that learn it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Decision {
    /// The first member that voted, and its call.
    pub first: (u32, Subject),
    /// The first member that voted in another call, and that call.
    pub other: Option<(u32, Subject)>,
    /// The first member whose call has failed, with the class and text of its error.
    pub fault: Option<(u32, u8, String)>,
    pub flag: u32,
    pub number: u32,
    /// The members that had failed, by their ranks in the job, in ascending order.
    pub failed: Vec<u32>,
    /// The ranks whose failure all members that voted have acknowledged.
    pub acknowledged: Vec<u32>,
    /// All agreements of the communicator below this number are decided at all members.
    decided: u32,
}

/// A frame of an agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Vote(Vote),
    Propose(Decision),
    Accept,
    Decide(Decision),
}

impl Step {
    /// Bytes of the longest step in a job of `size` ranks.
    pub(super) fn longest(size: u32) -> usize {
        128 + 4 * FAULT + 2 * 5 * size as usize
    }

    /// The code on the wire, and the data.
    pub(super) fn encode(&self, size: u32) -> (u8, Vec<u8>) {
        let limit = Step::longest(size);
        let (code, encoded) = match self {
            Step::Vote(vote) => (1, shipable::codec::encode(vote, limit)),
            Step::Propose(decision) => (2, shipable::codec::encode(decision, limit)),
            Step::Accept => (3, Ok(Vec::new())),
            Step::Decide(decision) => (4, shipable::codec::encode(decision, limit)),
        };
        // No step that this rank makes is too long: it names each rank of the job at most once.
        (code, encoded.unwrap_or_default())
    }

    /// The step of a code and its data.
    ///
    /// # Errors
    /// The code is unknown, or the data can't be decoded.
    pub(super) fn decode(code: u8, data: &[u8], size: u32) -> Result<Step, String> {
        let limit = Step::longest(size);
        let decision = || {
            let decision = shipable::codec::decode::<Decision>(data, limit);
            decision.map_err(|error| error.to_string())
        };
        Ok(match code {
            1 => {
                let vote = shipable::codec::decode::<Vote>(data, limit);
                Step::Vote(vote.map_err(|error| error.to_string())?)
            }
            2 => Step::Propose(decision()?),
            3 => Step::Accept,
            4 => Step::Decide(decision()?),
            code => return Err(format!("step {code} of an agreement")),
        })
    }
}

/// The steps to be sent, with their receivers.
pub(super) type Steps = Vec<(u32, Name, Step)>;

/// The agreements of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Agreements {
    me: u32,
    /// Those whose decision other members may still ask for.
    records: BTreeMap<Name, Record>,
    /// The ranks that are gone.
    gone: BTreeSet<u32>,
    /// By communicator, the number below which no member asks for a decision.
    ended: BTreeMap<u32, u32>,
}

/// An agreement, as one rank knows it.
#[derive(Clone, Debug, Default)]
struct Record {
    /// The members; none before this rank has voted.
    members: Vec<u32>,
    vote: Option<Vote>,
    /// The place of the leader among the members.
    leader: usize,
    /// The proposal that was accepted last, with the place of its leader.
    accepted: Option<(usize, Decision)>,
    decision: Option<Decision>,
    /// The votes that this rank has got, by their members.
    votes: BTreeMap<u32, Vote>,
    /// The members that have accepted the proposal of this rank.
    accepts: BTreeSet<u32>,
    /// Whether a call of this rank has taken the decision.
    is_taken: bool,
}

impl Agreements {
    pub(super) fn new(me: u32) -> Agreements {
        Agreements { me, ..Agreements::default() }
    }

    /// Begins this rank's part in an agreement of some ranks of the job, to which it belongs.
    pub(super) fn start(&mut self, name: Name, members: &[u32], mut vote: Vote, out: &mut Steps) {
        let of = |record: &(&Name, &Record)| record.0.0 == name.0 && record.1.vote.is_some();
        let undecided = self.records.iter().filter(of).find(|(_, it)| it.decision.is_none());
        vote.decided = undecided.map_or(name.1, |(undecided, _)| undecided.1);
        let record = self.records.entry(name).or_default();
        record.members = members.to_vec();
        record.vote = Some(vote);
        record.leader = 0;
        self.follow(name, out);
    }

    /// Takes the decision, if there is one.
    pub(super) fn take(&mut self, name: Name) -> Option<Decision> {
        let record = self.records.get_mut(&name)?;
        let decision = record.decision.clone()?;
        record.is_taken = true;
        // Later agreements may have been taken before.
        let ended = self.ended.entry(name.0).or_default();
        *ended = decision.decided.max(*ended);
        let is_due = |of: &Name| *of == name || of.0 != name.0 || of.1 >= decision.decided;
        self.records.retain(|of, it| is_due(of) || !it.is_taken);
        Some(decision)
    }

    /// No call of this rank takes the decision.
    pub(super) fn abandon(&mut self, name: Name) {
        if let Some(record) = self.records.get_mut(&name) {
            record.is_taken = true;
        }
    }

    /// The rank for which this one waits; `None` if the agreement is decided, or unknown.
    pub(super) fn awaited(&self, name: Name) -> Option<u32> {
        let record = self.records.get(&name).filter(|record| record.decision.is_none())?;
        let leader = record.members.get(record.leader).copied()?;
        if leader != self.me {
            return Some(leader);
        }
        let has = |member: &u32| match record.accepts.is_empty() {
            true => record.votes.contains_key(member),
            false => record.accepts.contains(member),
        };
        let mut members = record.members.iter();
        members.find(|member| !self.gone.contains(member) && !has(member)).copied()
    }

    /// Takes in the loss of a rank.
    pub(super) fn handle_gone(&mut self, rank: u32, out: &mut Steps) {
        self.gone.insert(rank);
        let of = |record: &Record| record.members.contains(&rank);
        let names: Vec<Name> =
            self.records.iter().filter(|it| of(it.1)).map(|(name, _)| *name).collect();
        for name in names {
            let Some(record) = self.records.get(&name) else { continue };
            match record.members.get(record.leader) == Some(&rank) {
                true => self.follow(name, out),
                false => self.lead(name, out),
            }
        }
    }

    /// Takes in a step of a peer.
    pub(super) fn handle_step(&mut self, peer: u32, name: Name, step: Step, out: &mut Steps) {
        if self.ended.get(&name.0).is_some_and(|ended| name.1 < *ended) {
            return;
        }
        let record = self.records.entry(name).or_default();
        match step {
            Step::Vote(vote) => {
                record.votes.insert(peer, vote);
                match &record.decision {
                    Some(decision) => out.push((peer, name, Step::Decide(decision.clone()))),
                    None => self.lead(name, out),
                }
            }
            Step::Propose(decision) => {
                let place = record.members.iter().position(|member| *member == peer);
                let last = record.accepted.as_ref().map(|(place, _)| *place);
                // A leader proposes only after this rank has voted, so that it is known here.
                if let Some(place) = place.filter(|place| last.is_none_or(|last| last <= *place)) {
                    record.accepted = Some((place, decision));
                    out.push((peer, name, Step::Accept));
                }
            }
            Step::Accept => {
                record.accepts.insert(peer);
                self.lead(name, out);
            }
            Step::Decide(decision) => self.decide(name, decision, out),
        }
    }

    /// Turns to the first member of whose failure this rank doesn't know.
    fn follow(&mut self, name: Name, out: &mut Steps) {
        let Some(record) = self.records.get_mut(&name) else { return };
        let gone = &self.gone;
        // This rank is a member, and isn't gone.
        let leader = record.members.iter().position(|member| !gone.contains(member));
        record.leader = leader.unwrap_or(record.leader);
        let (Some(&leader), Some(vote)) = (record.members.get(record.leader), &record.vote) else {
            return;
        };
        match &record.decision {
            _ if leader == self.me => {
                record.votes.insert(self.me, vote.clone());
                self.lead(name, out);
            }
            Some(decision) => out.push((leader, name, Step::Decide(decision.clone()))),
            None => out.push((leader, name, Step::Vote(vote.clone()))),
        }
    }

    /// As the leader, proposes and decides, if it is time for that.
    fn lead(&mut self, name: Name, out: &mut Steps) {
        let (me, gone) = (self.me, &self.gone);
        let Some(record) = self.records.get_mut(&name) else { return };
        let Record { members, leader, accepted, votes, accepts, decision, .. } = record;
        if members.get(*leader) != Some(&me) || decision.is_some() {
            return;
        }
        let others = || members.iter().copied().filter(|rank| *rank != me && !gone.contains(rank));
        if !accepts.contains(&me) {
            let proposal = match accepted {
                Some((_, proposal)) => proposal.clone(),
                None if others().all(|member| votes.contains_key(&member)) => {
                    combine(members, votes, gone)
                }
                None => return,
            };
            *accepted = Some((*leader, proposal.clone()));
            accepts.insert(me);
            out.extend(others().map(|member| (member, name, Step::Propose(proposal.clone()))));
        }
        if others().all(|member| accepts.contains(&member)) {
            let Some((_, proposal)) = accepted.clone() else { return };
            out.extend(others().map(|member| (member, name, Step::Decide(proposal.clone()))));
            votes.clear();
            self.decide(name, proposal, out);
        }
    }

    /// Learns the decision, and answers the members that have asked this rank for it.
    fn decide(&mut self, name: Name, decision: Decision, out: &mut Steps) {
        let (me, gone) = (self.me, &self.gone);
        let Some(record) = self.records.get_mut(&name) else { return };
        if record.decision.is_some() {
            return;
        }
        let asking = record.votes.keys().filter(|peer| **peer != me && !gone.contains(*peer));
        out.extend(asking.map(|peer| (*peer, name, Step::Decide(decision.clone()))));
        record.decision = Some(decision);
        record.votes.clear();
    }
}

/// The proposal that the votes of the members make.
fn combine(members: &[u32], votes: &BTreeMap<u32, Vote>, gone: &BTreeSet<u32>) -> Decision {
    let mut failed: Vec<u32> =
        members.iter().copied().filter(|member| gone.contains(member)).collect();
    failed.sort_unstable();
    let mut cast = members.iter().filter_map(|member| Some((*member, votes.get(member)?)));
    let none = || (0, Vote::new(Subject::Flag, 0, 0, Vec::new()));
    let (by, first) = cast.next().map_or_else(none, |(by, vote)| (by, vote.clone()));
    let Vote { subject, fault, flag, number, acknowledged, decided } = first;
    let fault = fault.map(|(class, text)| (by, class, text));
    let (first, other) = ((by, subject), None);
    let first = Decision { first, other, fault, flag, number, failed, acknowledged, decided };
    cast.fold(first, |mut held, (by, vote)| {
        if vote.subject != held.first.1 {
            held.other.get_or_insert((by, vote.subject));
        }
        if let (None, Some((class, text))) = (&held.fault, &vote.fault) {
            held.fault = Some((by, *class, text.clone()));
        }
        held.flag &= vote.flag;
        held.acknowledged.retain(|rank| vote.acknowledged.contains(rank));
        held.decided = held.decided.min(vote.decided);
        held
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use longshore_transport::fault::Chance;

    use super::*;

    const NAME: Name = (3, 0);

    /// The ranks of a job, the frames between them, and what an adversary may do next.
    #[derive(Clone, Debug)]
    struct Model {
        ranks: Vec<Agreements>,
        has_started: Vec<bool>,
        is_dead: Vec<bool>,
        /// By sender and receiver.
        frames: BTreeMap<(u32, u32), VecDeque<Step>>,
        /// The decisions of all ranks that have learned one, of the dead too.
        decisions: BTreeSet<(u32, Vec<u32>)>,
        deaths_left: usize,
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Start(u32),
        Deliver(u32, u32),
        /// A rank learns of another one's death. Frames that haven't arrived are lost.
        Notice {
            rank: u32,
            dead: u32,
        },
        /// A rank dies. This number of its last frames to each other rank is lost.
        Die {
            rank: u32,
            lost: usize,
        },
    }

    /// The most frames that a death loses of those to one receiver.
    const LOST: usize = 2;

    impl Model {
        fn new(size: u32, deaths_left: usize) -> Model {
            let count = size as usize;
            Model {
                ranks: (0..size).map(Agreements::new).collect(),
                has_started: vec![false; count],
                is_dead: vec![false; count],
                frames: BTreeMap::new(),
                decisions: BTreeSet::new(),
                deaths_left,
            }
        }

        fn size(&self) -> u32 {
            self.ranks.len() as u32
        }

        fn living(&self) -> Vec<u32> {
            (0..self.size()).filter(|rank| !self.is_dead[*rank as usize]).collect()
        }

        fn events(&self) -> Vec<Event> {
            let living = self.living();
            let mut events = Vec::new();
            for &rank in &living {
                if !self.has_started[rank as usize] {
                    events.push(Event::Start(rank));
                }
                for dead in (0..self.size()).filter(|dead| self.is_dead[*dead as usize]) {
                    if !self.ranks[rank as usize].gone.contains(&dead) {
                        events.push(Event::Notice { rank, dead });
                    }
                }
                if self.deaths_left > 0 && living.len() > 1 {
                    events.extend((0..=LOST).map(|lost| Event::Die { rank, lost }));
                }
            }
            let due = self.frames.iter().filter(|(_, queue)| !queue.is_empty());
            events.extend(due.map(|((from, to), _)| Event::Deliver(*from, *to)));
            events
        }

        fn play(&mut self, event: Event) {
            let mut out = Steps::new();
            let by = match event {
                Event::Start(rank) => {
                    self.has_started[rank as usize] = true;
                    let members: Vec<u32> = (0..self.size()).collect();
                    let vote = Vote::new(Subject::Flag, !(1 << rank), 100 + rank, Vec::new());
                    self.ranks[rank as usize].start(NAME, &members, vote, &mut out);
                    rank
                }
                Event::Deliver(from, to) => {
                    let step = self.frames.get_mut(&(from, to)).and_then(VecDeque::pop_front);
                    let step = step.expect("a frame");
                    self.ranks[to as usize].handle_step(from, NAME, step, &mut out);
                    to
                }
                Event::Notice { rank, dead } => {
                    self.frames.remove(&(dead, rank));
                    self.ranks[rank as usize].handle_gone(dead, &mut out);
                    rank
                }
                Event::Die { rank, lost } => {
                    self.is_dead[rank as usize] = true;
                    self.deaths_left -= 1;
                    self.frames.retain(|(_, to), _| *to != rank);
                    for ((from, _), queue) in &mut self.frames {
                        if *from == rank {
                            queue.truncate(queue.len().saturating_sub(lost));
                        }
                    }
                    rank
                }
            };
            for (to, name, step) in out {
                assert_eq!(name, NAME);
                assert!(to != by, "a rank sends nothing to itself");
                if !self.is_dead[to as usize] {
                    self.frames.entry((by, to)).or_default().push_back(step);
                }
            }
            self.frames.retain(|_, queue| !queue.is_empty());
            let decided = |it: &Agreements| it.records.get(&NAME)?.decision.clone();
            let learned = self.ranks.iter().filter_map(decided);
            self.decisions.extend(learned.map(|it| (it.flag ^ it.number, it.failed)));
            assert!(self.decisions.len() <= 1, "two decisions: {self:?}");
        }

        /// Nothing more can happen, so each survivor has learned the decision.
        fn check_end(&self) {
            for rank in self.living() {
                let record = &self.ranks[rank as usize].records[&NAME];
                let decision = record.decision.as_ref();
                let Some(decision) = decision else { panic!("rank {rank} waits: {self:?}") };
                assert!(!decision.failed.contains(&rank), "{self:?}");
                assert_eq!(decision.flag & 1 << rank, 0, "a survivor's vote counts: {self:?}");
            }
        }
    }

    /// Every order of all events, with deaths at every step.
    fn explore(size: u32, deaths: usize) -> usize {
        let mut seen = HashSet::new();
        let mut open = vec![Model::new(size, deaths)];
        while let Some(model) = open.pop() {
            if !seen.insert(format!("{model:?}")) {
                continue;
            }
            let events = model.events();
            if events.iter().all(|event| matches!(event, Event::Die { .. })) {
                model.check_end();
            }
            for event in events {
                let mut next = model.clone();
                next.play(event);
                open.push(next);
            }
        }
        seen.len()
    }

    #[test]
    fn two_ranks_agree_whatever_happens() {
        assert!(explore(2, 1) > 20);
    }

    #[test]
    fn three_ranks_agree_whatever_happens() {
        assert!(explore(3, 2) > 2000);
    }

    #[test]
    fn four_ranks_agree_whatever_happens() {
        assert!(explore(4, 1) > 5000);
    }

    #[test]
    fn ranks_that_die_at_random_steps_leave_the_others_in_agreement() {
        for seed in 0..4000 {
            let mut chance = Chance::new(seed);
            let size = 2 + chance.below(5) as u32;
            let mut model = Model::new(size, chance.below(size as usize));
            // Rarer deaths come in later steps.
            let patience = 1 + chance.below(60);
            loop {
                let mut events = model.events();
                if chance.below(patience) > 0 {
                    events.retain(|event| !matches!(event, Event::Die { .. }));
                }
                if events.is_empty() {
                    break;
                }
                let event = events[chance.below(events.len())];
                model.play(event);
            }
            model.check_end();
        }
    }

    #[test]
    fn steps_survive_the_wire() {
        let acknowledged: Vec<u32> = (0..100).map(|rank| u32::MAX - rank).rev().collect();
        let (subject, text) = (Subject::Survivors, "\u{1f6a2}".repeat(2 * FAULT));
        let fault = Vote::of_fault(subject, (7, text));
        let (class, text) = fault.fault.clone().unwrap();
        assert_eq!(text.chars().count(), FAULT);
        let new = Vote::new(subject, 5, u32::MAX, acknowledged.clone());
        let vote = Vote { decided: 7, fault: fault.fault, ..new };
        let decision = Decision {
            first: (u32::MAX, subject),
            other: Some((u32::MAX - 1, Subject::End)),
            fault: Some((u32::MAX, class, text)),
            flag: 1,
            number: u32::MAX,
            failed: acknowledged.clone(),
            acknowledged,
            decided: u32::MAX,
        };
        let steps = [
            Step::Vote(vote),
            Step::Propose(decision.clone()),
            Step::Accept,
            Step::Decide(decision),
        ];
        for (code, step) in (1..).zip(steps) {
            let (sent, data) = step.encode(100);
            assert_eq!((sent, Step::decode(code, &data, 100).as_ref()), (code, Ok(&step)));
        }
        assert!(Step::decode(5, &[], 100).is_err() && Step::decode(1, &[255], 100).is_err());
    }

    #[test]
    fn a_decision_names_the_members_that_differ_and_the_first_fault() {
        let votes = [
            (4, Vote::new(Subject::Flag, 7, 0, vec![9])),
            (2, Vote::of_fault(Subject::Flag, (3, "the first".to_owned()))),
            (3, Vote::of_fault(Subject::Survivors, (5, "the second".to_owned()))),
        ];
        let made = combine(&[4, 2, 3, 1], &votes.into_iter().collect(), &BTreeSet::from([1]));
        assert_eq!((made.first, made.flag), ((4, Subject::Flag), 7));
        assert_eq!(made.other, Some((3, Subject::Survivors)));
        assert_eq!(made.fault, Some((2, 3, "the first".to_owned())));
        assert_eq!((made.failed, made.acknowledged), (vec![1], vec![]));
    }

    #[test]
    fn records_that_no_call_takes_are_dropped() {
        let mut alone = Agreements::new(0);
        for number in 0..10 {
            let vote = Vote::new(Subject::Flag, 1, 1, Vec::new());
            alone.start((2, number), &[0], vote, &mut Steps::new());
            match number % 2 {
                0 => alone.abandon((2, number)),
                _ => assert!(alone.take((2, number)).is_some()),
            }
            assert!(alone.records.len() <= 3, "{alone:?}");
        }
    }

    #[test]
    fn records_are_dropped_once_all_members_know_the_decision() {
        let mut ranks = [Agreements::new(0), Agreements::new(1)];
        for number in 0..10 {
            let mut frames = VecDeque::new();
            for rank in 0..2 {
                let mut out = Steps::new();
                let vote = Vote::new(Subject::Flag, 1, 1, Vec::new());
                ranks[rank as usize].start((2, number), &[0, 1], vote, &mut out);
                frames.extend(out.into_iter().map(|step| (rank, step)));
            }
            while let Some((from, (to, name, step))) = frames.pop_front() {
                let mut out = Steps::new();
                ranks[to as usize].handle_step(from, name, step, &mut out);
                frames.extend(out.into_iter().map(|step| (to, step)));
            }
            for rank in &mut ranks {
                assert_eq!(rank.take((2, number)).map(|it| it.decided), Some(number));
                assert!(rank.records.len() <= 2, "{rank:?}");
            }
        }
    }
}
