//! The library's side: `types.c` as a process, which is restarted if the library dies.

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use crate::case::{Asked, Case, Field};

/// The library, as it describes itself.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// Its name and version.
    pub name: String,
    /// The version of MPI that it supports.
    pub standard: (u32, u32),
    /// The sizes of its predefined types, by their codes.
    pub basics: HashMap<String, u32>,
    /// The predefined types that `MPI_Type_match_size` returns, by class and size.
    pub matches: HashMap<String, String>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    lines: HashMap<String, String>,
    /// The exit status, if the process died during this request.
    death: Option<ExitStatus>,
}

impl Answer {
    /// The answer to one question; empty if the process died before it.
    pub fn get(&self, field: Field) -> String {
        self.lines.get(field.name()).cloned().unwrap_or_default()
    }

    /// Whether the process died during this request.
    pub fn died(&self) -> bool {
        self.death.is_some()
    }

    /// Whether the type was built and freed without an error.
    pub fn whole(&self) -> bool {
        ["type", "free"].iter().all(|name| self.lines.get(*name).is_some_and(|line| line == "ok"))
    }

    /// A description of building, freeing and the process's end.
    pub fn ending(&self) -> String {
        let line = |name: &str| self.lines.get(name).map_or("", String::as_str);
        let death = self.death.map_or(String::new(), |status| format!(", then died: {status}"));
        format!("type: {}, free: {}{death}", line("type"), line("free"))
    }
}

/// The library's process.
pub struct Peer {
    program: PathBuf,
    child: Child,
    output: BufReader<ChildStdout>,
    library: Library,
}

impl Peer {
    pub fn start(program: PathBuf) -> Result<Peer, Box<dyn Error>> {
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut peer = Peer { program, child, output, library: Library::default() };
        let lines = peer.answer().map_err(|_| "the library died before it described itself")?.lines;
        let line =
            |name: &str| lines.get(name).ok_or(format!("the library didn't report its {name}"));
        let pairs = |name| -> Result<_, String> {
            Ok(line(name)?.split_whitespace().filter_map(|pair| pair.split_once(':')))
        };
        let (major, minor) = line("standard")?.split_once('.').ok_or("no version of MPI")?;
        peer.library = Library {
            name: line("library")?.split_whitespace().collect::<Vec<_>>().join(" "),
            standard: (major.parse()?, minor.parse()?),
            basics: pairs("basics")?
                .map(|(code, size)| Ok((code.to_owned(), size.parse()?)))
                .collect::<Result<_, std::num::ParseIntError>>()?,
            matches: pairs("matches")?
                .map(|(key, code)| (key.to_owned(), code.to_owned()))
                .collect(),
        };
        Ok(peer)
    }

    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Sends all requests and returns their answers in order. If the process dies, a new process
    /// gets the remaining requests.
    pub fn ask<'a>(
        &mut self,
        requests: impl Iterator<Item = (&'a Case, &'a Asked)>,
    ) -> Result<Vec<Answer>, Box<dyn Error>> {
        let requests: Vec<String> = requests.map(|(case, asked)| case.request(asked)).collect();
        let mut answers: Vec<Answer> = Vec::with_capacity(requests.len());
        while answers.len() < requests.len() {
            let mut input = BufWriter::new(self.child.stdin.take().ok_or("no input")?);
            let rest = &requests[answers.len()..];
            let mut death = None;
            // A thread writes, because both sides would block if nobody read answers meanwhile.
            let input = std::thread::scope(|scope| {
                let writer = scope.spawn(move || {
                    // After a write error, the remaining requests go to the next process.
                    let _ = rest.iter().try_for_each(|request| input.write_all(request.as_bytes()));
                    let _ = input.flush();
                    input
                });
                while answers.len() < requests.len() && death.is_none() {
                    let answer = self.answer().or_else(|cut_short| {
                        death = Some(self.child.wait()?);
                        Ok::<_, std::io::Error>(Answer { death, ..cut_short })
                    })?;
                    answers.push(answer);
                }
                writer.join().map_err(|_| std::io::Error::other("the writer of requests panicked"))
            })?;
            match death {
                Some(_) => *self = Peer::start(self.program.clone())?,
                None => self.child.stdin = input.into_inner().ok(),
            }
        }
        Ok(answers)
    }

    /// Reads an answer up to its final dot. If the process ends first, the error holds the lines so
    /// far.
    fn answer(&mut self) -> Result<Answer, Answer> {
        let mut answer = Answer::default();
        let mut line = String::new();
        loop {
            line.clear();
            match self.output.read_line(&mut line) {
                Ok(1..) if line == ".\n" => return Ok(answer),
                Ok(1..) => {
                    let (name, rest) =
                        line.trim_end_matches('\n').split_once('\t').unwrap_or((&line, ""));
                    answer.lines.insert(name.to_owned(), rest.to_owned());
                }
                _ => return Err(answer),
            }
        }
    }
}
