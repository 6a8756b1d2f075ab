//! The graph of imports between files, and its circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The names that one file takes from another one, each with the line of its first use.
type Names = BTreeMap<String, usize>;

/// Which file imports which, and by what names.
#[derive(Default)]
pub struct Imports(BTreeMap<PathBuf, BTreeMap<PathBuf, Names>>);

/// The parts of a folder that two of its files lie in: a file, or a folder with the file beside it
/// that has its name. `None` if they lie in one part, or if one of them is the folder's own file,
/// of which the parts are children.
fn parts(from: &Path, to: &Path) -> Option<(PathBuf, PathBuf)> {
    let same = from.components().zip(to.components()).take_while(|(one, other)| one == other);
    let depth = same.count();
    let part = |path: &Path| -> PathBuf {
        let part: PathBuf = path.components().take(depth + 1).collect();
        part.with_extension("")
    };
    let is_own = |part: &Path| {
        part.file_name().is_some_and(|name| name == "mod" || name == "lib" || name == "main")
    };
    let (from, to) = (part(from), part(to));
    (from != to && !is_own(&from) && !is_own(&to)).then_some((from, to))
}

impl Imports {
    /// Adds that `line` of file `from` names an item of file `to`. A file doesn't import itself.
    pub fn add(&mut self, from: &Path, to: &Path, name: &str, line: usize) {
        if from == to {
            return;
        }
        let names = self.0.entry(from.to_owned()).or_default().entry(to.to_owned()).or_default();
        let first = names.entry(name.to_owned()).or_insert(line);
        *first = line.min(*first);
    }

    /// The imports between the parts of each folder, whose names begin with the place in the file.
    pub fn between_parts(&self) -> Imports {
        let mut between = Imports::default();
        for (from, imports) in &self.0 {
            for (to, names) in imports {
                let Some((part, other)) = parts(from, to) else { continue };
                let file =
                    from.strip_prefix(&part).ok().filter(|file| !file.as_os_str().is_empty());
                let file = file.unwrap_or(from).display();
                for (name, line) in names {
                    between.add(&part, &other, &format!("{name} ({file}:{line})"), *line);
                }
            }
        }
        between
    }

    /// Pairs of files of which one imports the other.
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// The strongly connected components of more than one file, in the order of their first files.
    /// Any two files of such a set import each other, directly or by way of others.
    pub fn circles(&self) -> Vec<BTreeSet<PathBuf>> {
        let mut search = Search::of(self);
        for file in self.0.keys() {
            if !search.visited.contains_key(file.as_path()) {
                search.visit(file);
            }
        }
        search.circles.sort();
        search.circles
    }

    /// The files of a circle, its shortest way round, and the names that tie its files together.
    pub fn describe(&self, circle: &BTreeSet<PathBuf>, what: &str) -> String {
        let mut text = format!("A circle of {} {what}:\n", circle.len());
        let round = self.shortest_round(circle);
        for (file, next) in round.iter().zip(round.iter().cycle().skip(1)) {
            self.describe_import(file, next, &mut text);
        }
        let is_in_round = |file: &Path, to: &Path| {
            let at = round.iter().position(|&at| at == file);
            at.is_some_and(|at| round[(at + 1) % round.len()] == to)
        };
        let mut more = String::new();
        for (file, to) in self.within(circle).filter(|(file, to)| !is_in_round(file, to)) {
            self.describe_import(file, to, &mut more);
        }
        if !more.is_empty() {
            text += "  which is its shortest round. Its other imports:\n";
            text += &more;
        }
        text
    }

    fn describe_import(&self, file: &Path, to: &Path, text: &mut String) {
        let names = &self.0[file][to];
        let line = names.values().min().copied().unwrap_or(1);
        // The names of a folder's part have their places with them.
        let line = if file.extension().is_some() { format!(":{line}") } else { String::new() };
        let names: Vec<&str> = names.keys().map(String::as_str).collect();
        let (file, to, names) = (file.display(), to.display(), names.join(", "));
        // Writing to a string can't fail.
        let _ = writeln!(text, "    {file}{line} -> {to}: {names}");
    }

    /// The imports between files of a set.
    fn within<'a>(
        &'a self,
        set: &'a BTreeSet<PathBuf>,
    ) -> impl Iterator<Item = (&'a Path, &'a Path)> {
        let of_set = self.0.iter().filter(|(file, _)| set.contains(*file));
        let all = of_set.flat_map(|(file, imports)| imports.keys().map(move |to| (file, to)));
        all.filter(|(_, to)| set.contains(*to)).map(|(file, to)| (file.as_path(), to.as_path()))
    }

    /// A shortest path in a circle that ends where it begins, without its last file.
    fn shortest_round<'a>(&'a self, circle: &'a BTreeSet<PathBuf>) -> Vec<&'a Path> {
        let rounds = circle.iter().filter_map(|file| self.round_through(file, circle));
        rounds.min_by_key(Vec::len).unwrap_or_default()
    }

    fn round_through<'a>(
        &'a self,
        start: &'a Path,
        circle: &'a BTreeSet<PathBuf>,
    ) -> Option<Vec<&'a Path>> {
        // Breadth first: a file's predecessor is the first that reached it.
        let mut predecessor: BTreeMap<&Path, &Path> = BTreeMap::new();
        let mut reached = vec![start];
        let mut next = 0;
        while let Some(&file) = reached.get(next) {
            next += 1;
            for to in self.0.get(file)?.keys().filter(|to| circle.contains(*to)) {
                if to == start {
                    let mut round = vec![file];
                    while let Some(&before) = predecessor.get(round[round.len() - 1]) {
                        round.push(before);
                    }
                    round.reverse();
                    return Some(round);
                }
                if !reached.contains(&to.as_path()) {
                    predecessor.insert(to, file);
                    reached.push(to);
                }
            }
        }
        None
    }
}

/// Tarjan's search for strongly connected components:
///
/// 1. Files are numbered in the order of a depth-first search, and wait on a stack.
/// 2. A file's low number is the least that it reaches over files on the stack.
/// 3. A file whose low number is its own closes a component: the files above it on the stack.
struct Search<'a> {
    imports: &'a Imports,
    /// The numbers of files: their own, and the low one.
    visited: BTreeMap<&'a Path, (usize, usize)>,
    stack: Vec<&'a Path>,
    circles: Vec<BTreeSet<PathBuf>>,
}

impl<'a> Search<'a> {
    fn of(imports: &'a Imports) -> Search<'a> {
        Search { imports, visited: BTreeMap::new(), stack: Vec::new(), circles: Vec::new() }
    }

    /// Visits a file and all that it reaches, and returns its low number.
    fn visit(&mut self, file: &'a Path) -> usize {
        let number = self.visited.len();
        let mut low = number;
        self.visited.insert(file, (number, low));
        self.stack.push(file);
        for to in self.imports.0.get(file).into_iter().flat_map(BTreeMap::keys) {
            match self.visited.get(to.as_path()) {
                None => low = low.min(self.visit(to)),
                Some(&(other, _)) if self.stack.contains(&to.as_path()) => low = low.min(other),
                Some(_) => {}
            }
        }
        self.visited.insert(file, (number, low));
        if low == number {
            let from = self.stack.iter().rposition(|&other| other == file).unwrap_or(0);
            let component: BTreeSet<PathBuf> =
                self.stack.drain(from..).map(Path::to_owned).collect();
            if component.len() > 1 {
                self.circles.push(component);
            }
        }
        low
    }
}
