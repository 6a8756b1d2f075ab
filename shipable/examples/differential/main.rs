//! Compares this crate's datatypes with those of an MPI library.
//!
//! Usage: `differential PROGRAM [--types N] [--seed S] [--type TEXT]`, where PROGRAM is `types.c`
//! compiled with the library. `ci/differential` compiles and runs everything.
//!
//! Random types are sent to the library in the notation. It builds each type, and answers questions
//! about it: its bounds, envelope and contents; the notation rebuilt from its contents; the bytes
//! that it packs and unpacks, in its own representation and in external32; and the number of
//! elements in the beginnings of a message. Each answer must equal this crate's.
//!
//! `known.rs` lists the known differences of libraries from the standard, with their reasons. Every
//! run first verifies that they still exist. `--type` asks about one type and prints the answers of
//! both sides.

mod case;
mod known;
mod ours;
mod peer;
mod quirks;
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::process::ExitCode;

use case::{Asked, Case, Field};
use known::{Difference, Theirs};
use peer::{Answer, Library, Peer};
use random::Cases;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// The number of distinct failures to print, each with its smallest type.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let (mut program, mut types, mut seed, mut text) = (None, 2000_u64, 1, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} takes a value"));
        match word.as_str() {
            "--types" => types = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            "--type" => text = Some(value()?),
            _ if program.is_none() && !word.starts_with('-') => program = Some(word),
            _ => return Err(format!("unknown argument {word}").into()),
        }
    }
    let program =
        program.ok_or("usage: differential PROGRAM [--types N] [--seed S] [--type TEXT]")?;
    let mut peer = Peer::start(program.into())?;
    let library = peer.library().clone();
    println!("{}, MPI {}.{}", library.name, library.standard.0, library.standard.1);
    if let Some(text) = text {
        show(&mut peer, &Case::new(text.parse()?, 1, false, seed)?)?;
        return Ok(true);
    }

    println!("{types} types from seed {seed}");
    let mut tally = Tally::default();
    tally.introduction(&library);
    let known = known::of(&library);
    for difference in &known {
        tally.verify(&mut peer, difference)?;
    }
    let mut cases = Cases::new(seed, &library);
    let batch: Vec<Case> = (0..types).map(|_| cases.next()).collect::<Result<_, _>>()?;
    let asked: Vec<Asked> = batch.par_iter().map(|case| known::ask(case, &known)).collect();
    let answers = peer.ask(batch.iter().zip(&asked))?;
    // Our own answers take most of the time, and each depends on its case only.
    let compared = batch.par_iter().zip(&asked).zip(&answers);
    let compared = compared.map(|((case, asked), answer)| {
        differences(case, asked, answer, &known).map_err(|error| format!("{case}: {error}"))
    });
    let compared: Vec<_> = compared.collect();
    for ((case, asked), wrong) in batch.iter().zip(&asked).zip(compared) {
        let wrong = wrong?;
        tally.answers += asked.fields.len();
        tally.excuse(case, &known);
        let fields: Vec<_> = wrong.iter().map(|wrong| wrong.field).collect();
        if wrong.is_empty() {
            tally.passed += 1;
        } else if known::is_rare(case, &fields, &known)? {
            println!("\n{case}\n{}\n  (the oracle agrees with ours)", lines(&wrong));
            tally.rare += 1;
        } else {
            let small = smallest(&mut peer, &cases, case, wrong[0].field, &known)?;
            tally.fail(small.unwrap_or_else(|| format!("{case}\n{}", lines(&wrong))));
        }
    }
    if tally.rare > 1 + types / known::RARE {
        tally.fail(format!(
            "{} of {types} types have wrong answers for no known reason",
            tally.rare
        ));
    }
    tally.report(&library, &known);
    Ok(tally.failed == 0)
}

/// Asks all questions about one type, and prints both sides' answers.
fn show(peer: &mut Peer, case: &Case) -> Result<(), Box<dyn Error>> {
    println!("{case}");
    let asked = case.asked();
    let answers = peer.ask([(case, &asked)].into_iter())?;
    for field in &asked.fields {
        let ours = ours::answer(case, *field)?;
        let theirs = ours::comparable(case, *field, answers[0].get(*field));
        println!("{:10} {} {ours}", field.name(), if ours == theirs { "both" } else { "ours" });
        if ours != theirs {
            println!("{:10} their {theirs}", "");
        }
    }
    println!("{:10} {}", "in all", answers[0].ending());
    Ok(())
}

/// An answer that isn't the expected one.
struct Wrong {
    /// The question; `None` if the process died, or if the type couldn't be built or freed.
    field: Option<Field>,
    text: String,
}

fn lines(wrong: &[Wrong]) -> String {
    wrong.iter().map(|wrong| wrong.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The answers to a case that aren't the expected ones.
fn differences(
    case: &Case,
    asked: &Asked,
    answer: &Answer,
    known: &[Difference],
) -> Result<Vec<Wrong>, Box<dyn Error>> {
    let mut wrong = Vec::new();
    for &field in &asked.fields {
        let theirs = ours::comparable(case, field, answer.get(field));
        let expected = known::expected(case, field, known)?;
        if expected != theirs {
            let name = field.name();
            let (expected, theirs) = excerpts(&expected, &theirs);
            let text = format!("  {name:10} expected {expected}\n  {:10} theirs   {theirs}", "");
            wrong.push(Wrong { field: Some(field), text });
        }
    }
    if !answer.whole() {
        wrong.push(Wrong { field: None, text: format!("  {}", answer.ending()) });
    }
    Ok(wrong)
}

/// Excerpts of two long texts, around their first difference.
fn excerpts(ours: &str, theirs: &str) -> (String, String) {
    const SHOWN: usize = 160;
    let first = ours.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count();
    let start = if first > SHOWN / 2 { first - SHOWN / 4 } else { 0 };
    let part = |text: &str| {
        let end = text.len().min(start + SHOWN);
        let dots = |cut| if cut { ".." } else { "" };
        format!("{}{}{}", dots(start > 0), &text[start.min(end)..end], dots(end < text.len()))
    };
    (part(ours), part(theirs))
}

/// The smallest part of a case's type that gets a wrong answer to this question, with the answer.
fn smallest(
    peer: &mut Peer,
    cases: &Cases,
    case: &Case,
    field: Option<Field>,
    known: &[Difference],
) -> Result<Option<String>, Box<dyn Error>> {
    let mut parts = vec![case.datatype.clone()];
    let mut at = 0;
    while at < parts.len() {
        let children: Vec<_> = parts[at].node().children().to_vec();
        parts.extend(children);
        at += 1;
    }
    parts.sort_by_key(|part| part.to_string().len());
    parts.dedup();
    for part in parts {
        let part = cases.rebuild(&part)?;
        for count in 1..=case.count {
            let part = Case { x87: case.x87, ..Case::new(part.clone(), count, case.large, 1)? };
            let mut asked = known::ask(&part, known);
            if let Some(field) = field {
                let last = asked.fields.iter().position(|&one| one == field);
                asked.fields.truncate(last.map_or(0, |last| last + 1));
            }
            let answers = peer.ask([(&part, &asked)].into_iter())?;
            let wrong = differences(&part, &asked, &answers[0], known)?;
            if wrong.iter().any(|wrong| wrong.field == field) {
                return Ok(Some(format!("{part}\n{}", lines(&wrong))));
            }
        }
    }
    Ok(None)
}

/// The results of all comparisons.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// The number of types with wrong answers for an unknown reason.
    rare: u64,
    shown: BTreeSet<String>,
    /// The number of answers that a known difference affects, by its name.
    excused: BTreeMap<&'static str, usize>,
    answers: usize,
}

impl Tally {
    /// Counts a failure, and prints it unless an equal one was printed before.
    fn fail(&mut self, failure: String) {
        self.failed += 1;
        if self.shown.len() < SHOWN && self.shown.insert(failure.clone()) {
            println!("\n{failure}");
        }
    }

    /// Compares the predefined types' sizes, and the types found by class and size.
    fn introduction(&mut self, library: &Library) {
        for problem in ours::introduction(library) {
            self.fail(problem);
        }
        self.passed += 1;
    }

    /// Fails if a known difference no longer exists.
    fn verify(&mut self, peer: &mut Peer, known: &Difference) -> Result<(), Box<dyn Error>> {
        let (text, field, expected) = known.example;
        let case = Case::new(text.parse()?, 1, false, 1)?;
        let mut asked = Asked { fields: vec![field] };
        if field == Field::Elements {
            asked.fields.insert(0, Field::Pack);
        }
        let answers = peer.ask([(&case, &asked)].into_iter())?;
        let theirs = ours::comparable(&case, field, answers[0].get(field));
        let holds = match expected {
            Theirs::Answer(answer) => answer == theirs,
            Theirs::Error => theirs.starts_with("error "),
            Theirs::Death => answers[0].died(),
        };
        let ours = ours::answer(&case, field)?;
        match holds && ours != theirs {
            true => self.passed += 1,
            false => self.fail(format!(
                "the known difference '{}' no longer exists: {} of {text}\n  expected {expected:?}\n  \
                 theirs   {theirs:?}\n  ours     {ours:?}",
                known.name,
                field.name()
            )),
        }
        Ok(())
    }

    /// Counts the answers that known differences affect.
    fn excuse(&mut self, case: &Case, known: &[Difference]) {
        for difference in known {
            *self.excused.entry(difference.name).or_default() += difference.affects(case).len();
        }
    }

    fn report(&self, library: &Library, known: &[Difference]) {
        println!(
            "\n{} answers of {} compared. Known differences, and the answers to random types that they affect:",
            self.answers, library.name
        );
        for difference in known {
            println!(
                "  {}: {} (MPI-5.0 section {}); {} answers",
                difference.name,
                difference.behaviour,
                difference.section,
                self.excused.get(difference.name).copied().unwrap_or(0),
            );
        }
        let ok = if self.failed == 0 { "ok" } else { "FAILED" };
        println!(
            "test result: {ok}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out",
            self.passed, self.failed
        );
    }
}
