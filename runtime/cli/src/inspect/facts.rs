//! Describes a datatype in words: its tree, signature, portability, form and programs.
//!
//! Every description is truncated at a stated length, because a datatype can be arbitrarily long.

use std::fmt::{self, Display, Write as _};

use shipable::datatype::Node;
use shipable::form::{self, Tag};
use shipable::{Architecture, Datatype, Form, Leaf};

use super::sheet::Layouts;
use super::terminal::{Screen, wrapped};

/// The width of the column of titles.
const INDENT: usize = 12;
/// The most letters of a program, of a form's text or of a signature.
const LETTERS: usize = 1200;
/// The most bytes of a form.
const BYTES: usize = 256;
/// The most lines of a tree.
const TREE: usize = 40;

/// Describes the datatype, one section after the other. `fields` are lines about the fields of a
/// struct, and `pair` is the type's relation in two representations.
pub fn describe(
    datatype: &Datatype,
    layouts: &Layouts,
    fields: Vec<String>,
    pair: Option<&str>,
    screen: Screen,
) -> String {
    let mut text = String::new();
    let mut say = |title: &str, lines: Vec<String>| {
        let mut title = format!("{title:INDENT$}");
        for line in lines {
            let head = screen.title(&title);
            let _ = writeln!(text, "{head}{}", line.trim_start_matches(' '));
            title = " ".repeat(INDENT);
        }
    };
    let wrap = |words: &str| wrapped(words, screen.width, INDENT);
    say("type", wrap(&truncated(datatype, LETTERS)));
    say("fields", fields.iter().map(|line| keep(line)).collect());
    let described = truncated(datatype.describe(), TREE * screen.width);
    let mut lines: Vec<String> = described.lines().take(TREE).map(keep).collect();
    if described.lines().nth(TREE).is_some() {
        lines.push(format!("... and more than {TREE} lines"));
    }
    say("tree", lines);
    let Some(first) = layouts.found.first() else { return text.replace(KEPT, " ") };
    say("signature", wrap(&signature(&first.form)));
    say("portable", wrap(&portability(&first.form)));
    if let Some(pair) = pair {
        say("relation", wrap(pair));
    }
    let builder = match first.form.tag() {
        Tag::Portable => String::new(),
        Tag::Locale => format!(" as {} builds it", first.architecture),
    };
    let encoded = first.form.encode();
    say("form", wrap(&format!("{}, {} bytes{builder}", first.form.tag(), encoded.len())));
    let nodes = truncated(&first.form, LETTERS);
    say("", wrap(nodes.split_once(": ").map_or("", |(_, nodes)| nodes)));
    say("", hexadecimal(&encoded, screen.width));
    for (title, lines) in programs(layouts) {
        say(&title, lines.iter().flat_map(|line| wrap(line)).collect());
    }
    text.replace(KEPT, " ")
}

/// Stands for a blank at which no line is broken or trimmed.
const KEPT: char = '\u{a0}';

fn keep(line: &str) -> String {
    line.replace(' ', &KEPT.to_string())
}

/// The basic types in the order of the type map, with repetitions counted.
fn signature(form: &Form) -> String {
    let count = form.signature().map(|signature| signature.count);
    let mut out = Truncated::new(LETTERS);
    let mut sequence = Sequence { nodes: form.nodes(), items: Vec::new() };
    sequence.count();
    // The error means that the text was truncated, which the text states itself.
    let _ = sequence.write(form.nodes().len() - 1, &mut out);
    match count {
        Ok(0) => "no basic items".to_owned(),
        Ok(1) => format!("1 basic item: {}", out.text),
        Ok(count) => format!("{count} basic items: {}", out.text),
        Err(error) => error.to_string(),
    }
}

struct Sequence<'a> {
    nodes: &'a [form::Node],
    /// Whether each node has any items.
    items: Vec<bool>,
}

impl Sequence<'_> {
    fn count(&mut self) {
        for node in self.nodes {
            let any = match node {
                form::Node::Leaf(Leaf::Basic(basic)) => !basic.is_marker(),
                form::Node::Leaf(_) => true,
                form::Node::Array { child, vectors, .. } => {
                    self.items[*child as usize] && !vectors.is_empty()
                }
                _ => node.children().any(|child| self.items[child as usize]),
            };
            self.items.push(any);
        }
    }

    fn write(&self, node: usize, out: &mut Truncated) -> fmt::Result {
        match &self.nodes[node] {
            form::Node::Leaf(Leaf::Basic(basic)) => match basic.pair() {
                Some((value, index)) => write!(out, "{}, {}", value.code(), index.code()),
                None => out.write_str(basic.code()),
            },
            form::Node::Leaf(leaf) => write!(out, "{leaf}"),
            form::Node::Array { child, vectors, .. } => {
                let copies =
                    vectors.iter().map(|it| u128::from(it.length) * u128::from(it.count)).sum();
                self.times(*child, copies, out)
            }
            form::Node::Simple { members } => {
                self.list(members.iter().map(|member| (member.child, member.length)), out)
            }
            form::Node::Struct { members, .. } => {
                self.list(members.iter().map(|member| (member.child, member.length)), out)
            }
        }
    }

    fn list(&self, members: impl Iterator<Item = (u32, u64)>, out: &mut Truncated) -> fmt::Result {
        let mut first = true;
        for (child, length) in members.filter(|(child, _)| self.items[*child as usize]) {
            if !std::mem::take(&mut first) {
                out.write_str(", ")?;
            }
            self.times(child, length.into(), out)?;
        }
        Ok(())
    }

    fn times(&self, child: u32, copies: u128, out: &mut Truncated) -> fmt::Result {
        if copies == 1 {
            return self.write(child as usize, out);
        }
        let single = match &self.nodes[child as usize] {
            form::Node::Leaf(Leaf::Basic(basic)) => !basic.is_pair(),
            form::Node::Leaf(_) => true,
            _ => false,
        };
        write!(out, "{copies} x {}", if single { "" } else { "(" })?;
        self.write(child as usize, out)?;
        if single { Ok(()) } else { out.write_char(')') }
    }
}

/// Whether the form is portable; if not, which constructor is the reason.
fn portability(form: &Form) -> String {
    let Some(culprit) = form.culprit() else {
        return "yes: none of its constructors counts bytes".to_owned();
    };
    let (reason, advice) = match culprit.node() {
        Node::Hvector { .. } => ("its stride is in bytes", "VECTOR strides in extents"),
        Node::Hindexed { .. } => ("its displacements are in bytes", "INDEXED counts extents"),
        Node::HindexedBlock { .. } => {
            ("its displacements are in bytes", "INDEXED_BLOCK counts extents")
        }
        Node::Struct { .. } => (
            "its members' displacements are in bytes",
            "a simple struct, SS, leaves them to each machine's C",
        ),
        Node::Resized { .. } => {
            ("its bounds are in bytes", "a stride of VECTOR, or a larger simple struct, may do")
        }
        Node::ValueIndex { .. } => {
            ("MPI has no name for this pair", "the named pairs are portable")
        }
        _ => ("it contains such a type", "build it of portable types"),
    };
    format!("no: {} in {}: {reason} ({advice})", combiner(culprit), truncated(culprit, 120))
}

/// The programs that the form is lowered to, each distinct one once, with titles.
fn programs(layouts: &Layouts) -> Vec<(String, Vec<String>)> {
    let lower = |memory: &super::sheet::Layout, stream: &Architecture| match memory
        .form
        .lower(&memory.architecture, stream)
    {
        Ok(program) => truncated(&program, LETTERS),
        Err(error) => error.to_string(),
    };
    let mut sections = Vec::new();
    let mut own: Vec<(Vec<&str>, String)> = Vec::new();
    let add = |list: &mut Vec<(Vec<&'static str>, String)>, name, program: String| match list
        .iter_mut()
        .find(|(_, known)| *known == program)
    {
        Some((names, _)) => names.push(name),
        None => list.push((vec![name], program)),
    };
    for layout in &layouts.found {
        add(&mut own, layout.architecture.name(), lower(layout, &layout.architecture));
    }
    let lines = |list: Vec<(Vec<&str>, String)>| -> Vec<String> {
        list.into_iter()
            .map(|(names, program)| format!("{}: {program}", names.join(", ")))
            .collect()
    };
    sections.push(("program".to_owned(), lines(own)));
    if let [first, rest @ ..] = &layouts.found[..] {
        let mut theirs = Vec::new();
        for layout in rest.iter().filter(|layout| layout.architecture != first.architecture) {
            add(&mut theirs, layout.architecture.name(), lower(layout, &first.architecture));
        }
        if !theirs.is_empty() {
            let mut section = vec![format!("to unpack a stream of {}:", first.architecture)];
            section.extend(lines(theirs));
            sections.push((String::new(), section));
        }
    }
    sections
}

/// The bytes in hexadecimal, a multiple of eight in each line.
fn hexadecimal(bytes: &[u8], width: usize) -> Vec<String> {
    let each = (width.saturating_sub(INDENT) / 3).max(8) / 8 * 8;
    let mut lines: Vec<String> = bytes[..bytes.len().min(BYTES)]
        .chunks(each)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "))
        .collect();
    if bytes.len() > BYTES {
        lines.push(format!("... and {} bytes more", bytes.len() - BYTES));
    }
    lines
}

/// The name of the outermost constructor.
fn combiner(datatype: &Datatype) -> &'static str {
    let name = datatype.combiner().mpi_name();
    name.split_once("COMBINER_").map_or(name, |(_, name)| name)
}

/// The text of `value`, truncated at `most` letters. A truncated text ends with a note.
pub fn truncated(value: impl Display, most: usize) -> String {
    let mut out = Truncated::new(most);
    // The error means that the text was truncated, which the text states itself.
    let _ = write!(out, "{value}");
    out.text
}

/// A writer that fails after `most` letters, so that a long `Display` stops early.
struct Truncated {
    text: String,
    most: usize,
}

impl Truncated {
    fn new(most: usize) -> Truncated {
        Truncated { text: String::new(), most }
    }
}

impl fmt::Write for Truncated {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.most.saturating_sub(self.text.len());
        let fits = (0..=room.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        self.text.push_str(&text[..fits.unwrap_or(0)]);
        if text.len() <= room {
            return Ok(());
        }
        let _ = fmt::Write::write_fmt(
            &mut self.text,
            format_args!(" ... (cut at {} letters)", self.most),
        );
        Err(fmt::Error)
    }
}
