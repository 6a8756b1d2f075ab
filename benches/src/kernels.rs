//! Datatypes that applications exchange: the access patterns of the published datatype benchmarks
//! (WRF, MILC, NAS, FFT, LAMMPS, SPECFEM3D), in sizes that fit a second-level cache or exceed it by
//! little.
//!
//! Each type is used at origin and target. Portable types serve as target datatypes directly. Types
//! that need displacements in bytes, because they combine several arrays or overlap, are
//! locale-specific: the target builds and sends them, or the window has `target_types=same_layout`.

use longshore::{Datatype, Order};
use shipable::oracle::{Options, Random};

use crate::Failure;
use crate::case::Way;
use crate::types::Named;

/// All types of this module.
///
/// # Errors
/// Only invalid arguments of a constructor.
pub fn all() -> Result<Vec<Named>, Failure> {
    let of = |name: &'static str, description, datatype: Datatype, way| Named {
        name,
        description,
        notation: datatype.to_string(),
        count: 1,
        way,
        quick: ["milc_su3_zdown", "lammps_full", "lammps_atomic"].contains(&name),
    };
    Ok(vec![
        of(
            "wrf_x",
            "WRF: three columns of four 2-D, three 3-D and two 4-D arrays of floats, in a struct",
            weather(&X)?,
            Way::TypeSend,
        ),
        of("wrf_y", "WRF: three rows of the same arrays", weather(&Y)?, Way::TypeSend),
        of(
            "wrf_x_simple",
            "wrf_x as a simple struct, which is portable where the arrays follow each other",
            Datatype::simple_struct(&[1; 9], &halos(&X)?)?,
            Way::Portable,
        ),
        of(
            "milc_su3_zdown",
            "MILC: the sites of one parity in a z slice of a 16^4 lattice, 3 complex floats each, nested vectors",
            lattice()?,
            Way::Portable,
        ),
        of(
            "nas_mg_x",
            "NAS MG: the face of a 130^3 grid of doubles that is one point thick where fastest",
            face([1, 128, 128])?,
            Way::Portable,
        ),
        of("nas_mg_y", "NAS MG: the face along x and z", face([128, 1, 128])?, Way::Portable),
        of("nas_mg_z", "NAS MG: the face along x and y", face([128, 128, 1])?, Way::Portable),
        of(
            "nas_lu_x",
            "NAS LU: two layers of a 64^3 grid across x, 5 doubles a point",
            pencils([2, 64])?,
            Way::Portable,
        ),
        of("nas_lu_y", "NAS LU: two layers across y", pencils([64, 2])?, Way::Portable),
        of(
            "fft_rows",
            "FFT: the block of a matrix of complex doubles that another process has after a transpose, row by row",
            Datatype::vector(FFT, FFT, 2 * FFT, &Datatype::c_double_complex())?,
            Way::Portable,
        ),
        of(
            "fft_columns",
            "FFT: the same block, column by column: packing transposes it",
            columns()?,
            Way::SameLayout,
        ),
        of(
            "lammps_full",
            "LAMMPS: position, tag, type, mask, molecule and charge of 1024 of 8192 atoms, in six arrays",
            atoms(true)?,
            Way::SameLayout,
        ),
        of(
            "lammps_atomic",
            "LAMMPS: position, tag, type and mask of 1024 of 8192 atoms, in four arrays",
            atoms(false)?,
            Way::TypeSend,
        ),
        of(
            "specfem3d_oc",
            "SPECFEM3D: outer core, one float of each of 4096 points of a mesh",
            Datatype::indexed_block(1, &points(4096, 5), &Datatype::float())?,
            Way::Portable,
        ),
        of(
            "specfem3d_cm",
            "SPECFEM3D: crust and mantle, three floats of each of 4096 points, and of 1024 of the inner core",
            mesh()?,
            Way::TypeSend,
        ),
    ])
}

/// A halo of the weather code: a range of columns and rows in a patch of 64 x 64 with a border of
/// 4.
struct Halo {
    subsize: [i64; 2],
    start: [i64; 2],
}

const X: Halo = Halo { subsize: [3, 64], start: [4, 4] };
const Y: Halo = Halo { subsize: [64, 3], start: [4, 4] };
/// Points along an edge of the patch with its border.
const PATCH: i64 = 72;
/// Vertical levels.
const LEVELS: i64 = 28;
/// Kinds of moisture.
const KINDS: i64 = 2;

/// The halo in Fortran's arrays (i, j), (i, k, j) and (i, k, j, kind), in which i varies fastest.
fn halos(halo: &Halo) -> Result<Vec<Datatype>, Failure> {
    let ([columns, rows], [column, row]) = (halo.subsize, halo.start);
    let of = |sizes: &[i64], parts: &[i64], starts: &[i64]| {
        Datatype::subarray(sizes, parts, starts, Order::Fortran, &Datatype::float())
    };
    let flat = of(&[PATCH, PATCH], &[columns, rows], &[column, row])?;
    let deep = of(&[PATCH, LEVELS, PATCH], &[columns, LEVELS, rows], &[column, 0, row])?;
    let moist =
        of(&[PATCH, LEVELS, PATCH, KINDS], &[columns, LEVELS, rows, KINDS], &[column, 0, row, 0])?;
    let arrays = [vec![flat; 4], vec![deep; 3], vec![moist; 2]];
    Ok(arrays.concat())
}

/// Elements of each of the weather code's arrays.
const FIELDS: [i64; 9] = {
    let flat = PATCH * PATCH;
    let (deep, moist) = (flat * LEVELS, flat * LEVELS * KINDS);
    [flat, flat, flat, flat, deep, deep, deep, moist, moist]
};

fn weather(halo: &Halo) -> Result<Datatype, Failure> {
    Ok(Datatype::struct_(&[1; 9], &offsets(&FIELDS.map(|field| 4 * field)), &halos(halo)?)?)
}

/// The offsets of contiguous arrays with these sizes.
fn offsets(bytes: &[i64]) -> Vec<i64> {
    (0..bytes.len()).map(|array| bytes[..array].iter().sum()).collect()
}

/// Points along each edge of the lattice.
const LATTICE: i64 = 16;

fn lattice() -> Result<Datatype, Failure> {
    let vector_of_3_complex = Datatype::contiguous(6, &Datatype::float())?;
    // Half of the sites have one parity. x varies fastest, then y, z and time.
    let plane = LATTICE * LATTICE / 2;
    Ok(Datatype::vector(LATTICE, plane, LATTICE * plane, &vector_of_3_complex)?)
}

/// Points along each edge of the multigrid's finest grid, ghosts included.
const GRID: i64 = 130;

fn face(parts: [i64; 3]) -> Result<Datatype, Failure> {
    Ok(Datatype::subarray(&[GRID; 3], &parts, &[1; 3], Order::Fortran, &Datatype::double())?)
}

/// Points along x and y, with two ghosts on each side, and along z.
const PENCILS: [i64; 3] = [68, 68, 64];

fn pencils(parts: [i64; 2]) -> Result<Datatype, Failure> {
    let point = Datatype::contiguous(5, &Datatype::double())?;
    let parts = [parts[0], parts[1], PENCILS[2]];
    Ok(Datatype::subarray(&PENCILS, &parts, &[2, 2, 0], Order::Fortran, &point)?)
}

/// Edge of the block that one of two processes sends to the other. A row of the matrix is twice as
/// long.
const FFT: i64 = 256;

fn columns() -> Result<Datatype, Failure> {
    let complex = Datatype::c_double_complex();
    let column = Datatype::resized(0, 16, &Datatype::vector(FFT, 1, 2 * FFT, &complex)?)?;
    Ok(Datatype::contiguous(FFT, &column)?)
}

/// Atoms of a process.
const ATOMS: i64 = 8192;
/// Atoms near the border of a process.
const BORDER: usize = 1024;

fn atoms(full: bool) -> Result<Datatype, Failure> {
    let position = Datatype::contiguous(3, &Datatype::double())?;
    let mut arrays =
        vec![(position, 24), (Datatype::int(), 4), (Datatype::int(), 4), (Datatype::int(), 4)];
    if full {
        arrays.extend([(Datatype::int(), 4), (Datatype::double(), 8)]);
    }
    let places = points(BORDER, 11);
    let bytes: Vec<i64> = arrays.iter().map(|(_, bytes)| ATOMS * bytes).collect();
    let listed = arrays.iter().map(|(each, _)| Datatype::indexed_block(1, &places, each));
    let listed = listed.collect::<Result<Vec<_>, _>>()?;
    Ok(Datatype::struct_(&vec![1; listed.len()], &offsets(&bytes), &listed)?)
}

fn mesh() -> Result<Datatype, Failure> {
    let point = Datatype::contiguous(3, &Datatype::float())?;
    let regions = [points(4096, 5), points(1024, 5)];
    let last = regions[0].last().copied().unwrap_or_default();
    let listed = regions.map(|places| Datatype::indexed_block(1, &places, &point));
    let [crust, core] = listed;
    Ok(Datatype::struct_(&[1, 1], &[0, 12 * (last + 1)], &[crust?, core?])?)
}

/// `count` ascending indices with random gaps of 0 to `most` between them, the same in every run.
fn points(count: usize, most: u64) -> Vec<i64> {
    let mut random = Random::new(7, Options::default());
    let mut next = 0;
    (0..count)
        .map(|_| {
            let point = next + random.below(most + 1) as i64;
            next = point + 1;
            point
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use longshore::Architecture;
    use longshore::shipable::{Committed, oracle};

    use super::*;

    /// The byte offsets of the data, in the order of the application's own loops.
    fn loops(name: &str) -> Vec<i64> {
        let mut at = Vec::new();
        match name {
            "wrf_x" | "wrf_y" | "wrf_x_simple" => {
                let Halo { subsize, start } = if name == "wrf_y" { Y } else { X };
                let mut base = 0;
                for (levels, kinds, arrays) in [(1, 1, 4), (LEVELS, 1, 3), (LEVELS, KINDS, 2)] {
                    for _ in 0..arrays {
                        for kind in 0..kinds {
                            for j in start[1]..start[1] + subsize[1] {
                                for k in 0..levels {
                                    for i in start[0]..start[0] + subsize[0] {
                                        at.push(
                                            base + 4
                                                * (i + PATCH * (k + levels * (j + PATCH * kind))),
                                        );
                                    }
                                }
                            }
                        }
                        base += 4 * PATCH * PATCH * levels * kinds;
                    }
                }
            }
            "milc_su3_zdown" => {
                for time in 0..16 {
                    for site in 0..128 {
                        at.extend((0..6).map(|float| 4 * (float + 6 * (site + 128 * 16 * time))));
                    }
                }
            }
            "nas_mg_x" | "nas_mg_y" | "nas_mg_z" => {
                let along = |letter| if name.ends_with(letter) { 1..2 } else { 1..129 };
                for z in along('z') {
                    for y in along('y') {
                        at.extend(along('x').map(|x| 8 * (x + 130 * (y + 130 * z))));
                    }
                }
            }
            "nas_lu_x" | "nas_lu_y" => {
                let across = |letter| if name.ends_with(letter) { 2..4 } else { 2..66 };
                for z in 0..64 {
                    for y in across('y') {
                        for x in across('x') {
                            at.extend((0..5).map(|m| 8 * (m + 5 * (x + 68 * (y + 68 * z)))));
                        }
                    }
                }
            }
            "fft_rows" => {
                (0..256)
                    .for_each(|row| at.extend((0..256).map(|column| 16 * (column + 512 * row))));
            }
            "fft_columns" => {
                (0..256)
                    .for_each(|column| at.extend((0..256).map(|row| 16 * (column + 512 * row))));
            }
            "lammps_full" | "lammps_atomic" => {
                let [int, double] = [(4, 1), (8, 1)];
                let full = [(8, 3), int, int, int, int, double];
                let arrays = if name == "lammps_full" { 6 } else { 4 };
                let mut base = 0;
                for (bytes, each) in &full[..arrays] {
                    for atom in points(BORDER, 11) {
                        at.extend((0..*each).map(|part| base + bytes * (part + each * atom)));
                    }
                    base += bytes * each * ATOMS;
                }
            }
            "specfem3d_oc" => at.extend(points(4096, 5).iter().map(|point| 4 * point)),
            "specfem3d_cm" => {
                let crust = points(4096, 5);
                let base = 12 * (crust[4095] + 1);
                at.extend(
                    crust.iter().flat_map(|point| (0..3).map(move |part| 4 * (part + 3 * point))),
                );
                let core = points(1024, 5);
                at.extend(
                    core.iter()
                        .flat_map(|point| (0..3).map(move |part| base + 4 * (part + 3 * point))),
                );
            }
            _ => panic!("{name} has no loops"),
        }
        at
    }

    #[test]
    fn types_select_the_data_of_the_applications_loops() -> Result<(), Failure> {
        for kernel in all()? {
            let datatype: Datatype = kernel.notation.parse()?;
            let items = oracle::expand(&datatype, &Architecture::X86_64, kernel.count)?;
            let first = items.iter().filter(|item| item.component == 0);
            let places: Vec<i64> = first.map(|item| item.offset).collect();
            assert_eq!(places, loops(kernel.name), "{}", kernel.name);
        }
        Ok(())
    }

    #[test]
    fn no_type_overlaps_itself() -> Result<(), Failure> {
        for kernel in all()? {
            let overlaps = oracle::overlaps(&kernel.notation.parse()?, &Architecture::X86_64, 1)?;
            assert!(!overlaps, "{}", kernel.name);
        }
        Ok(())
    }

    #[test]
    fn exactly_the_portable_types_are_used_as_portable() -> Result<(), Failure> {
        for kernel in all()? {
            let committed = Committed::new(&kernel.notation.parse()?, &Architecture::X86_64)?;
            let portable = committed.tag() == longshore::Tag::Portable;
            assert_eq!(portable, kernel.way == Way::Portable, "{}", kernel.name);
        }
        Ok(())
    }
}
