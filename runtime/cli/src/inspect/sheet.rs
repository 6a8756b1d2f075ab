//! The model that both renderers draw: pictures of a datatype in several representations, to one
//! scale. Representations with equal layouts share one picture.

use std::ops::Range;
use std::rc::Rc;

use shipable::{Architecture, Basic, Bounds, Datatype, Error, Form, Leaf};

use super::memory::{Memory, gcd};
use super::picture::{Contents, Picture, PictureLimits, needed};
use super::strided::Address;

/// A datatype in the memory of an architecture. Equal forms and equal memories are shared.
pub struct Layout {
    /// The architecture.
    pub architecture: Architecture,
    /// The form that the datatype has after a commit on the architecture.
    pub form: Rc<Form>,
    /// The memory of the elements.
    pub memory: Rc<Memory>,
}

/// A datatype in several representations.
pub struct Layouts {
    /// The layouts on architectures that have the type, in the order of the command line.
    pub found: Vec<Layout>,
    /// The architectures that don't have the type, and the errors.
    pub failed: Vec<(Architecture, Error)>,
}

/// Representations with equal layouts of the datatype.
pub struct Group {
    /// The names of the representations.
    pub names: Vec<&'static str>,
    memory: Rc<Memory>,
    /// The bounds of one element.
    pub bounds: Bounds,
    /// The range from the least lower bound of all elements to their greatest upper bound.
    pub span: Range<Address>,
    /// The range from the first byte of data to the end of the last one.
    pub reach: Range<Address>,
    /// The picture of the memory.
    pub picture: Picture,
}

/// Pictures to one scale, with a common legend.
pub struct Sheet {
    /// One group for each distinct layout.
    pub groups: Vec<Group>,
    /// The types of the items, in the order of their first appearance.
    pub legend: Vec<Leaf>,
    /// Whether any gap is visible.
    pub gaps: bool,
    /// The number of units of the longest row.
    pub units: i64,
}

impl Layouts {
    /// Lays out `count` elements on each architecture.
    pub fn new(datatype: &Datatype, architectures: &[Architecture], count: u64) -> Layouts {
        let mut layouts = Layouts { found: Vec::new(), failed: Vec::new() };
        for &architecture in architectures {
            let laid = Form::compile(datatype, &architecture)
                .and_then(|form| Ok((Memory::new(&form, &architecture, count)?, form)));
            let (memory, form) = match laid {
                Ok(laid) => laid,
                Err(error) => {
                    layouts.failed.push((architecture, error));
                    continue;
                }
            };
            let form = shared(form, layouts.found.iter().map(|known| &known.form));
            let memory = shared(memory, layouts.found.iter().map(|known| &known.memory));
            layouts.found.push(Layout { architecture, form, memory });
        }
        layouts
    }

    /// A message for each architecture that doesn't have the type.
    pub fn failures(&self) -> Vec<String> {
        let failed = self.failed.iter().map(|(architecture, error)| match error {
            // This message names the architecture itself.
            Error::NoSuchKind { .. } => error.to_string(),
            _ => format!("{architecture}: {error}"),
        });
        failed.collect()
    }
}

/// The known value that equals `made`, if there is one; otherwise `made` itself.
fn shared<'a, T: PartialEq + 'a>(made: T, mut known: impl Iterator<Item = &'a Rc<T>>) -> Rc<T> {
    known.find(|known| ***known == made).map_or_else(|| Rc::new(made), Rc::clone)
}

impl Sheet {
    /// Makes the pictures, each of at most `lines` lines. `units(letters)` returns the number of
    /// units that fit into a row if the label of a unit has `letters` letters.
    pub fn new(layouts: &Layouts, lines: usize, units: impl Fn(usize) -> i64) -> Sheet {
        let memories = || layouts.found.iter().map(|layout| &*layout.memory);
        let unit = memories().map(Memory::unit).fold(0, gcd).max(1);
        let letters = memories()
            .flat_map(Memory::leaves)
            .map(|(leaf, size)| {
                label(leaf).len().div_ceil((i64::from(size) / unit).max(1) as usize)
            })
            .max()
            .unwrap_or(1);
        let units = units(letters).max(4);
        // A row of small units stays legible when it is full, but a row of larger units doesn't.
        let room = if unit <= 2 { units } else { (units / 2).max(4) };
        let single = memories().all(|memory| needed(memory) <= i128::from(room * unit));
        let limits = PictureLimits { units, lines, single };
        let mut groups: Vec<Group> = Vec::new();
        for layout in &layouts.found {
            let memory = &layout.memory;
            if let Some(known) = groups.iter_mut().find(|known| Rc::ptr_eq(&known.memory, memory)) {
                known.names.push(layout.architecture.name());
                continue;
            }
            let picture = Picture::new(memory, unit, limits);
            let group = Group {
                names: vec![layout.architecture.name()],
                memory: Rc::clone(memory),
                bounds: *memory.bounds(),
                span: memory.span(),
                reach: memory.reach(),
                picture,
            };
            match groups.iter_mut().find(|known| known.is_like(&group)) {
                Some(known) => known.names.extend(group.names),
                None => groups.push(group),
            }
        }
        let mut legend = Vec::new();
        for leaf in memories().flat_map(Memory::leaves).map(|(leaf, _)| leaf) {
            if !legend.contains(&leaf) {
                legend.push(leaf);
            }
        }
        let units = groups.iter().map(|group| group.picture.units()).max().unwrap_or(1);
        let rows = groups.iter().flat_map(|group| group.picture.rows());
        let gaps = rows.flat_map(|row| &row.cells).any(|cell| cell.holds == Contents::Gap);
        Sheet { groups, legend, gaps, units }
    }

    /// The index of an item's type in the legend, which decides its colour.
    pub fn colour(&self, leaf: Leaf) -> usize {
        self.legend.iter().position(|known| *known == leaf).unwrap_or(0)
    }
}

impl Group {
    fn is_like(&self, other: &Group) -> bool {
        let numbers = |group: &Group| {
            let Bounds { lb, ub, size, .. } = group.bounds;
            (lb, ub, size, group.span.clone(), group.reach.clone())
        };
        numbers(self) == numbers(other) && self.picture == other.picture
    }

    /// The sizes and bounds as text: `size 9, extent 16 from lb 0 to ub 16, true extent 16 from 0
    /// to 16`.
    pub fn figures(&self, count: u64) -> String {
        let Bounds { lb, ub, size, true_lb, true_ub, .. } = self.bounds;
        let mut text =
            format!("size {size}, extent {} from lb {lb} to ub {ub}", self.bounds.extent());
        if size > 0 {
            let extent = self.bounds.true_extent();
            text += &format!(", true extent {extent} from {true_lb} to {true_ub}");
        }
        if count != 1 {
            text += &format!("; {count} elements from {} to {}", self.span.start, self.span.end);
        }
        text
    }

    /// The bounds to mark: address, names, and whether they are upper bounds. Equal bounds share a
    /// mark.
    pub fn marks(&self) -> Vec<(Address, String, bool)> {
        let mut marks: Vec<(Address, String, bool)> = Vec::new();
        let mut mark = |at: Address, name: &str, upper: bool| match marks
            .iter_mut()
            .find(|(known, _, side)| (*known, *side) == (at, upper))
        {
            Some((_, names, _)) => *names += &format!(", {name}"),
            None => marks.push((at, name.to_owned(), upper)),
        };
        mark(self.span.start, "lb", false);
        mark(self.span.end, "ub", true);
        if self.bounds.size > 0 {
            mark(self.reach.start, "true lb", false);
            mark(self.reach.end, "true ub", true);
        }
        marks
    }
}

/// The label of an item's cell.
pub fn label(leaf: Leaf) -> &'static str {
    match leaf {
        Leaf::Basic(basic) => basic.code(),
        Leaf::F90Real { .. } => "FR",
        Leaf::F90Complex { .. } => "FC",
        Leaf::F90Integer { .. } => "FI",
    }
}

/// The MPI name of a type.
pub fn name(leaf: Leaf) -> String {
    let parameter = |n: Option<u32>| n.map_or("undefined".to_owned(), |n| n.to_string());
    match leaf {
        Leaf::Basic(basic) => Basic::mpi_name(basic).to_owned(),
        Leaf::F90Real { precision, range } => {
            format!("f90 real, precision {}, range {}", parameter(precision), parameter(range))
        }
        Leaf::F90Complex { precision, range } => {
            format!("f90 complex, precision {}, range {}", parameter(precision), parameter(range))
        }
        Leaf::F90Integer { range } => format!("f90 integer, range {range}"),
    }
}
