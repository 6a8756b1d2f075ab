//! Named datatypes, for the command line and for reports: those of most comparisons of MPI
//! libraries.

use longshore::{Datatype, Order};
use shipable::oracle::{Options, Random};

use crate::Failure;
use crate::case::Way;

/// A datatype with a name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name, one word.
    pub name: &'static str,
    /// A description of the type.
    pub description: &'static str,
    /// One element, in its canonical notation.
    pub notation: String,
    /// Elements that one operation moves.
    pub count: u64,
    /// The kind of target datatype that operations use for it.
    pub way: Way,
    /// Whether a quick run measures it.
    pub quick: bool,
}

/// The types of most comparisons of MPI libraries, in the order of their letters `a` to `g`, and a
/// portable struct.
///
/// # Errors
/// Only invalid arguments of a constructor.
pub fn all() -> Result<Vec<Named>, Failure> {
    let double = Datatype::double();
    let (lengths, places) = blocks(BLOCKS, true);
    let edge = EDGE as i64;
    let subarray = |whole: &[i64], part: &[i64]| {
        Datatype::subarray(whole, part, &vec![0; whole.len()], Order::C, &double)
    };
    let members = [Datatype::char(), Datatype::double(), Datatype::int(), Datatype::short()];
    let of = |name, description, datatype: Datatype, count, way| Named {
        name,
        description,
        notation: datatype.to_string(),
        count,
        way,
        quick: ["indexed", "struct"].contains(&name),
    };
    Ok(vec![
        of(
            "vector1",
            "vector of 1 double, stride 2 (1 MiB)",
            Datatype::vector(1 << 17, 1, 2, &double)?,
            1,
            Way::Portable,
        ),
        of(
            "vector8",
            "vector of 8 doubles, stride 16 (1 MiB)",
            Datatype::vector(1 << 14, 8, 16, &double)?,
            1,
            Way::Portable,
        ),
        of(
            "indexed",
            "indexed, 1024 random blocks of 1 to 8 ints",
            Datatype::indexed(&lengths, &places, &Datatype::int())?,
            1,
            Way::Portable,
        ),
        of(
            "struct",
            "struct {char, double, int, short[3]} by displacements",
            Datatype::struct_(&[1, 1, 1, 3], &[0, 8, 16, 20], &members)?,
            10_000,
            Way::TypeSend,
        ),
        of(
            "subarray",
            "512 x 512 of 1024 x 1024 doubles",
            subarray(&[1024, 1024], &[512, 512])?,
            1,
            Way::Portable,
        ),
        of(
            "face",
            "face of 128^3 doubles, 1 thick where fastest",
            subarray(&[edge; 3], &[edge, edge, 1])?,
            1,
            Way::Portable,
        ),
        of("contiguous", "doubles (1 MiB)", double.clone(), 1 << 17, Way::Portable),
        of(
            "simple_struct",
            "struct {char, double, int, short[3]}, portable",
            Datatype::simple_struct(&[1, 1, 1, 3], &members)?,
            10_000,
            Way::Portable,
        ),
    ])
}

/// Indexed types with many blocks, to measure long commits.
///
/// # Errors
/// Only invalid arguments of a constructor.
pub fn many_blocks() -> Result<[Named; 2], Failure> {
    let of = |name, description, count| {
        let (lengths, places) = blocks(count, false);
        let datatype = Datatype::indexed(&lengths, &places, &Datatype::int())?;
        let notation = datatype.to_string();
        let way = Way::Portable;
        Ok::<_, Failure>(Named { name, description, notation, count: 1, way, quick: false })
    };
    Ok([
        of("blocks", "indexed, 16384 random blocks of 1 to 8 ints", 1 << 14)?,
        of("million", "indexed, 1048576 random blocks of 1 to 8 ints", 1 << 20)?,
    ])
}

/// Blocks of the type `indexed`.
pub const BLOCKS: usize = 1024;
/// Doubles along each edge of the cube of `face`.
pub const EDGE: usize = 128;

/// Random blocks of 1 to 8 elements with gaps: their lengths and displacements.
pub fn blocks(count: usize, shuffled: bool) -> (Vec<i64>, Vec<i64>) {
    // A fixed seed: every run has the same blocks.
    let mut random = Random::new(3, Options::default());
    let lengths = (0..count).map(|_| 1 + random.below(8) as i64).collect();
    let mut places: Vec<i64> =
        (0..count).map(|at| at as i64 * 16 + random.below(8) as i64).collect();
    for at in (1..places.len()).rev().filter(|_| shuffled) {
        places.swap(at, random.below(at as u64 + 1) as usize);
    }
    (lengths, places)
}
