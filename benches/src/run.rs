//! A run: contenders take turns on the cases of a plan.
//!
//! The machine's speed changes within minutes, so results of two contenders are comparable only if
//! they are close in time. Therefore the plan is cut into pieces, and all contenders measure one
//! piece before the next. Their order changes from piece to piece and from turn to turn.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use longshore::job::{Routes, env};
use longshore_launcher::{
    self as launcher, Binding, Control, Host, Job, Part, Patience, Placement, Settings,
};

use crate::case::{Bench, Case};
use crate::row::{Answer, Gap, Outcome, Refusal, Row};
use crate::scratch::Scratch;
use crate::{Failure, datatypes, launch, limits, loops, pin, rma};

/// Cases that a contender measures before the next contender's turn.
const PIECE: usize = 48;

/// Exit statuses of jobs that SIGHUP, SIGINT or SIGTERM ended.
const ENDED: [u8; 3] = [129, 130, 143];

/// A library or program that can measure cases.
pub trait Contender {
    /// The name in reports.
    fn name(&self) -> &str;

    /// Whether the contender takes part in a case. If it takes a case and can't do it, the report
    /// has a gap. A case that it doesn't take leaves no gap.
    fn takes(&self, case: &Case) -> bool;

    /// Measures cases, all of which the contender takes. Calls `done` with the index in `cases` and
    /// the outcome, as soon as it is known. If there are several outcomes for one case, the first
    /// counts. A case without an outcome is lost.
    ///
    /// # Errors
    /// The reason why the remaining cases are lost.
    fn measure(
        &mut self,
        cases: &[Case],
        validate: bool,
        done: &mut dyn FnMut(usize, Outcome),
    ) -> Result<(), Failure>;
}

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The samples.
    pub rows: Vec<Row>,
    /// The cases without a sample.
    pub gaps: Vec<Gap>,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The number of samples and gaps so far.
    pub done: usize,
    /// The number of samples and gaps of the whole run.
    pub total: usize,
    /// The turn, from 0.
    pub turn: u32,
    /// The current contender.
    pub contender: &'a str,
    /// The last case.
    pub case: &'a Case,
}

/// Lets all contenders measure all cases, in `turns` turns, until `stop` returns true. After a
/// stop, unmeasured cases are no gaps, because the signal that stopped the run may have ended its
/// jobs.
pub fn run(
    cases: &[Case],
    turns: u32,
    validate: bool,
    contenders: &mut [Box<dyn Contender>],
    stop: impl Fn() -> bool,
    mut step: impl FnMut(Step<'_>),
) -> Results {
    let takers = |case| contenders.iter().filter(|contender| contender.takes(case)).count();
    let total = cases.iter().map(takers).sum::<usize>() * turns as usize;
    let mut results = Results::default();
    for turn in 0..turns {
        for (number, piece) in cases.chunks(PIECE).enumerate() {
            let all = contenders.len();
            for at in (0..all).map(|at| (at + number + turn as usize) % all) {
                let contender = &mut *contenders[at];
                let name = contender.name().to_owned();
                let own: Vec<Case> =
                    piece.iter().filter(|case| contender.takes(case)).cloned().collect();
                if own.is_empty() {
                    continue;
                }
                let mut is_done = vec![false; own.len()];
                let mut note = |at: usize, outcome: Outcome| {
                    let Some(case) = own.get(at).filter(|_| !is_done[at]) else { return };
                    if outcome.is_err() && stop() {
                        return;
                    }
                    is_done[at] = true;
                    let (case, contender) = (case.clone(), name.clone());
                    match outcome {
                        Ok(sample) => results.rows.push(Row { case, contender, turn, sample }),
                        Err(why) => results.gaps.push(Gap { case, contender, turn, why }),
                    }
                    let done = results.rows.len() + results.gaps.len();
                    step(Step { done, total, turn, contender: &name, case: &own[at] });
                };
                let ended = contender.measure(&own, validate, &mut note);
                let why = match ended {
                    Ok(()) => "it ended too early".to_owned(),
                    Err(error) => error.to_string(),
                };
                for at in 0..own.len() {
                    note(at, Err(Refusal::Lost(why.clone())));
                }
                if stop() {
                    return results;
                }
            }
        }
    }
    results
}

/// This library as a contender.
#[derive(Debug)]
pub struct Ours {
    /// The command longshore. With `bench-rank plan PLAN ANSWERS [--validate]` it calls [`rank`].
    /// With
    /// `bench-rank nothing` or `bench-rank memory` it calls [`launch::serve`].
    pub program: OsString,
}

impl Contender for Ours {
    fn name(&self) -> &str {
        "Longshore"
    }

    fn takes(&self, case: &Case) -> bool {
        !limits::has(case.bench)
    }

    fn measure(
        &mut self,
        cases: &[Case],
        validate: bool,
        done: &mut dyn FnMut(usize, Outcome),
    ) -> Result<(), Failure> {
        let mut from = 0;
        // Adjacent cases with the same setting share a job.
        for own in cases.chunk_by(|a, b| Setting::of(a) == Setting::of(b)) {
            let mut done = |at: usize, outcome| done(from + at, outcome);
            match Setting::of(&own[0]) {
                Setting::OneCore => {
                    on_one_core(own, &mut done, |case| datatypes::measure(case, validate));
                }
                Setting::Launch => {
                    for (at, case) in own.iter().enumerate() {
                        done(at, launch::measure(case, &self.program));
                    }
                }
                Setting::Job { route, hosts, arch } => {
                    let why = match self.job(own, (route, hosts), &arch, validate, &mut done) {
                        Ok(0) => "its job ended too early".to_owned(),
                        // A signal from the terminal ends the whole run.
                        Ok(status) if ENDED.contains(&status) => {
                            return Err(format!("its job ended with status {status}").into());
                        }
                        Ok(status) => format!("its job ended with status {status}"),
                        Err(error) => error.to_string(),
                    };
                    // This doesn't change cases that have an outcome: the first counts.
                    (0..own.len()).for_each(|at| done(at, Err(Refusal::Lost(why.clone()))));
                }
            }
            from += own.len();
        }
        Ok(())
    }
}

/// The setting in which a case is measured.
#[derive(PartialEq)]
enum Setting {
    /// One core, without a job.
    OneCore,
    /// A new job for each round.
    Launch,
    /// A job of two ranks.
    Job { route: Routes, hosts: u32, arch: [String; 2] },
}

impl Setting {
    fn of(case: &Case) -> Setting {
        match case.bench {
            Bench::Pack | Bench::Unpack | Bench::Copy => Setting::OneCore,
            Bench::Commit | Bench::Define => Setting::OneCore,
            Bench::Launch | Bench::Memory => Setting::Launch,
            _ => {
                let Case { route, hosts, ref arch, .. } = *case;
                Setting::Job { route, hosts, arch: arch.clone() }
            }
        }
    }
}

/// Measures cases that need no job, on the first core. A case that fails doesn't stop the others.
fn on_one_core(
    cases: &[Case],
    done: &mut dyn FnMut(usize, Outcome),
    measure: impl Fn(&Case) -> Result<Outcome, Failure> + Send + Sync,
) {
    for (at, case) in cases.iter().enumerate() {
        // In a thread of its own, because pinning lasts as long as the thread.
        let measured = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                pin(0);
                measure(case)
            });
            thread.join()
        });
        let outcome = match measured {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Err(Refusal::Unsupported(error.to_string())),
            Err(_) => Err(Refusal::Lost("the measurement panicked".to_owned())),
        };
        done(at, outcome);
    }
}

impl Ours {
    /// Measures cases in one job. Returns the job's exit status.
    fn job(
        &self,
        cases: &[Case],
        (route, hosts): (Routes, u32),
        arch: &[String],
        validate: bool,
        done: &mut dyn FnMut(usize, Outcome),
    ) -> Result<u8, Failure> {
        let plan = Scratch::new("plan")?;
        let lines: Vec<String> = cases.iter().map(Case::to_string).collect();
        fs::write(&plan.0, lines.join("\n"))?;
        let answers = Scratch::new("answers")?;
        let mut arguments = vec![
            "bench-rank".into(),
            "plan".into(),
            plan.0.clone().into(),
            answers.0.clone().into(),
        ];
        if validate {
            arguments.push("--validate".into());
        }
        let mut part =
            Part { ranks: 2, arguments, archs: arch.to_vec(), ..Part::new(self.program.clone()) };
        let (mut all, mut start) = (Vec::new(), Vec::new());
        if hosts > 1 {
            // The start command is `env -u HOST`, which runs the program on this machine.
            start = vec!["env".into(), "-u".into()];
            let name = |number| format!("LONGSHORE_HOST_{number}").into();
            all = (0..hosts).map(|number| Host { name: name(number), ranks: 1 }).collect();
            part.environment.push((env::INTERFACE.into(), "lo".into()));
        }
        // Long enough for every case, so only a hang reaches it.
        let each = |case: &Case| 5 * u64::from(case.rounds.div_ceil(41));
        let timeout = Some(Duration::from_secs(30 + cases.iter().map(each).sum::<u64>()));
        // The ranks pin themselves.
        let binding = Some(Binding::None);
        let job = Job {
            parts: vec![part],
            placement: Placement { hosts: all, start, binding, ..Placement::default() },
            settings: Settings { routes: route, ..Settings::default() },
            patience: Patience { timeout, ..Patience::default() },
            ..Job::default()
        };
        let status = launcher::run(&job, &Control::none())?;
        for line in BufReader::new(fs::File::open(&answers.0)?).lines() {
            let Answer { index, outcome } = line?.parse()?;
            if index < cases.len() {
                done(index, outcome);
            }
        }
        Ok(status)
    }
}

/// Runs one rank of a job that [`Ours`] launches. It measures the cases in the file `plan`, one in
/// each line, and appends an answer for each to the file `answers`.
///
/// # Errors
/// A file that can't be read or written, or an error of the communication.
pub fn rank(plan: &Path, answers: &Path, validate: bool) -> Result<(), Failure> {
    let cases = fs::read_to_string(plan)?;
    let cases = cases.lines().map(str::parse).collect::<Result<Vec<Case>, _>>()?;
    let rank = longshore::init()?;
    let mut answers = fs::OpenOptions::new().append(true).open(answers)?;
    rma::measure(&rank, &cases, validate, |index, outcome| {
        // A single write, so that the file has only whole lines even if the rank dies.
        Ok(answers.write_all(format!("{}\n", Answer { index, outcome }).as_bytes())?)
    })?;
    Ok(rank.finalize()?)
}

/// A contender without job and library: a function measures one case.
pub struct Plain {
    name: &'static str,
    takes: fn(&Case) -> bool,
    measure: fn(&Case, bool) -> Result<Outcome, Failure>,
}

impl Plain {
    /// Hand-written loops.
    pub const LOOPS: Plain = Plain { name: "loop", takes: loops::has, measure: loops::measure };
    /// The limits of the machine.
    pub const LIMITS: Plain = Plain {
        name: "limit",
        takes: |case| limits::has(case.bench),
        measure: |case, _| limits::measure(case),
    };
}

impl Contender for Plain {
    fn name(&self) -> &str {
        self.name
    }

    fn takes(&self, case: &Case) -> bool {
        (self.takes)(case)
    }

    fn measure(
        &mut self,
        cases: &[Case],
        validate: bool,
        done: &mut dyn FnMut(usize, Outcome),
    ) -> Result<(), Failure> {
        on_one_core(cases, done, |case| (self.measure)(case, validate));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::rc::Rc;

    use super::*;
    use crate::row::Sample;

    type Log = Rc<RefCell<Vec<String>>>;

    /// A contender that measures a fixed number of cases in each turn, then fails. It logs its
    /// calls.
    struct Fake(&'static str, usize, Log);

    impl Contender for Fake {
        fn name(&self) -> &str {
            self.0
        }

        fn takes(&self, case: &Case) -> bool {
            case.bench != Bench::Memcpy
        }

        fn measure(
            &mut self,
            cases: &[Case],
            _validate: bool,
            done: &mut dyn FnMut(usize, Outcome),
        ) -> Result<(), Failure> {
            self.2.borrow_mut().push(format!("{} {}", self.0, cases.len()));
            for at in 0..cases.len().min(self.1) {
                let sample = Sample::of(vec![1.0], [0.0; 2], false);
                done(at, sample.ok_or(Refusal::Unsupported(String::new())));
                // A second outcome, which must not count.
                done(at, Err(Refusal::Unsupported(String::new())));
            }
            if self.1 < cases.len() { Err("it died".into()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_failed_case_does_not_stop_the_others() {
        let measure = |case: &Case, _| match case.bytes {
            8 => Err("it fell over".into()),
            16 => panic!("so did this"),
            _ => Ok(Sample::of(vec![1.0], [0.0; 2], false).ok_or(Refusal::Lost(String::new()))),
        };
        let mut plain = Plain { name: "plain", takes: |_| true, measure };
        let cases = [8, 16, 24].map(|bytes| Case { bytes, ..Case::default() });
        let mut told = HashMap::new();
        let ended = plain.measure(&cases, false, &mut |at, outcome| _ = told.insert(at, outcome));
        assert!(ended.is_ok());
        assert_eq!(told[&0], Err(Refusal::Unsupported("it fell over".to_owned())));
        assert_eq!(told[&1], Err(Refusal::Lost("the measurement panicked".to_owned())));
        assert!(told[&2].is_ok());
    }

    #[test]
    fn a_failed_job_does_not_stop_the_others() {
        let cases: Vec<Case> = ["native", "s390x"]
            .map(|arch| Case { arch: ["native".into(), arch.into()], ..Case::default() })
            .into();
        let mut told = HashMap::new();
        let mut ours = Ours { program: "/no/such/program".into() };
        let ended = ours.measure(&cases, false, &mut |at, outcome| _ = told.insert(at, outcome));
        assert!(ended.is_ok() && told.len() == 2);
        assert!(told.values().all(|outcome| matches!(outcome, Err(Refusal::Lost(_)))), "{told:?}");
    }

    #[test]
    fn a_stopped_run_keeps_its_earlier_results() {
        let log = Log::default();
        let mut contenders: Vec<Box<dyn Contender>> =
            vec![Box::new(Fake("a", 3, log.clone())), Box::new(Fake("b", 1000, log.clone()))];
        let measured = std::cell::Cell::new(0);
        let cases = vec![Case::default(); PIECE];
        let results = run(
            &cases,
            2,
            false,
            &mut contenders,
            || measured.get() >= 2,
            |step| {
                measured.set(step.done);
            },
        );
        assert_eq!((results.rows.len(), results.gaps.len()), (3, 0));
        assert_eq!(*log.borrow(), [format!("a {PIECE}")]);
    }

    #[test]
    fn contenders_take_turns_and_lose_only_their_own_cases() -> Result<(), Failure> {
        let mut cases = vec![Case::default(); PIECE + 2];
        cases[0].bench = Bench::Memcpy;
        let log = Log::default();
        let mut contenders: Vec<Box<dyn Contender>> =
            vec![Box::new(Fake("a", 1000, log.clone())), Box::new(Fake("b", 1, log.clone()))];
        let mut steps = Vec::new();
        let results = run(
            &cases,
            2,
            false,
            &mut contenders,
            || false,
            |step| {
                steps.push((step.done, step.total));
            },
        );
        let piece = |name: &str, cases: usize| format!("{name} {cases}");
        let [first, second] = [PIECE - 1, 2].map(|cases| [piece("a", cases), piece("b", cases)]);
        let [[a, b], [c, d]] = [first, second];
        let turn = [a.clone(), b.clone(), d.clone(), c.clone()];
        let next = [b, a, c, d];
        assert_eq!(*log.borrow(), [turn, next].concat());
        let lost = 2 * (PIECE - 2 + 1);
        assert_eq!((results.rows.len(), results.gaps.len()), (4 * (PIECE + 1) - lost, lost));
        assert!(
            results.gaps.iter().all(|gap| {
                gap.contender == "b" && gap.why == Refusal::Lost("it died".to_owned())
            })
        );
        let total = 4 * (PIECE + 1);
        assert_eq!(steps.last(), Some(&(total, total)));
        Ok(())
    }
}
