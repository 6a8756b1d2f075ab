//! Heat spreads over a plate that is divided into tiles, one for each rank.
//!
//! In each step a rank puts the edges of its tile into the halos of its neighbours, between post,
//! start, complete and wait. So each rank synchronises with its neighbours only.
//!
//! A tile is stored row by row, so its eastern and western edges are strided vectors at the origin
//! and at the target. One portable vector type of doubles describes both.

use std::error::Error;

use longshore::{Assert, Buffer, Communicator, Datatype, Info, Origin, PROC_NULL, Rank, Window};

use crate::show::Show;

/// Rows of a tile, without the halo.
const ROWS: usize = 6;
/// Columns of a tile, without the halo.
const COLUMNS: usize = 5;
/// Columns of a tile with the halo.
const WIDTH: usize = COLUMNS + 2;
const STEPS: usize = 12;

/// Runs the example on any number of ranks.
///
/// # Errors
/// An error of the communication, or a value that differs from a serial computation.
pub fn run(rank: &Rank) -> Result<(), Box<dyn Error>> {
    let world = rank.world();
    let show = Show::new(rank);
    let grid = Grid::of(world);
    let column =
        rank.commit(&Datatype::vector(ROWS as i64, 1, WIDTH as i64, &Datatype::double())?)?;
    let row = rank.commit(&Datatype::contiguous(COLUMNS as i64, &Datatype::double())?)?;
    show.step(&format!(
        "Stencil: a plate of {} x {} on {} x {} ranks, {STEPS} steps",
        grid.rows * ROWS,
        grid.columns * COLUMNS,
        grid.rows,
        grid.columns
    ))?;
    show.say(&format!("columns are {column}, rows {row}"))?;

    let mut window = Window::allocate(world, 8 * at(ROWS + 2, 0), 8, &Info::default())?;
    // A copy of the tile outside the window: the origin buffer of the puts.
    let mut tile: Buffer<f64> = rank.buffer((ROWS + 2) * WIDTH)?;
    tile.write(0, &plate(&grid, grid.row * ROWS, grid.column * COLUMNS, ROWS, COLUMNS))?;
    window.write(0, &tile.to_vec()?)?;

    // For each edge: its type, its position in the tile, the neighbour, and its position there.
    let [north, south, west, east] = grid.neighbours();
    let edges = [
        (&row, at(1, 1), north, at(ROWS + 1, 1)),
        (&row, at(ROWS, 1), south, at(0, 1)),
        (&column, at(1, 1), west, at(1, COLUMNS + 1)),
        (&column, at(1, COLUMNS), east, at(1, 0)),
    ];
    let present: Vec<i32> =
        [north, south, west, east].into_iter().filter(|&rank| rank != PROC_NULL).collect();
    let neighbours = world.group().incl(&present)?;
    let mut field = vec![0.0; (ROWS + 2) * WIDTH];
    for step in 0..STEPS {
        window.post(&neighbours, Assert::NONE)?;
        window.start(&neighbours, Assert::NONE, |epoch| {
            for (datatype, from, neighbour, to) in edges {
                // `Origin::at` counts bytes, the target displacement counts doubles. A put to
                // PROC_NULL does nothing.
                let edge = Origin::typed(&tile, 1, datatype).at(8 * from);
                epoch.put(edge, neighbour, to, 1, datatype)?;
            }
            Ok(())
        })?;
        window.wait()?;
        if step == 0 && world.size() > 1 {
            show.wire(0)?;
        }
        window.read(0, &mut field)?;
        field = relax(&field, WIDTH);
        window.write(0, &field)?;
        tile.write(0, &field)?;
    }

    let (rows, columns) = (grid.rows * ROWS, grid.columns * COLUMNS);
    let serial =
        (0..STEPS).fold(plate(&grid, 0, 0, rows, columns), |plate, _| relax(&plate, columns + 2));
    let same = (1..=ROWS).all(|row| {
        let whole = (grid.row * ROWS + row) * (columns + 2) + grid.column * COLUMNS + 1;
        let mine = &field[row * WIDTH + 1..][..COLUMNS];
        mine.iter().zip(&serial[whole..]).all(|(a, b)| a.to_bits() == b.to_bits())
    });
    show.check("every value equals that of a serial computation, to the last bit", same)?;
    window.free()?;
    Ok(())
}

/// The grid of tiles, and this rank's position in it. Ranks are numbered row by row. The grid is as
/// nearly square as the number of ranks allows.
struct Grid {
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

impl Grid {
    fn of(world: &Communicator) -> Grid {
        let (me, size) = (world.rank() as usize, world.size() as usize);
        let rows = (1..=size).rfind(|rows| rows * rows <= size && size % rows == 0).unwrap_or(1);
        let columns = size / rows;
        Grid { rows, columns, row: me / columns, column: me % columns }
    }

    /// The neighbours to the north, south, west and east; `PROC_NULL` at an edge of the plate.
    fn neighbours(&self) -> [i32; 4] {
        let rank = |row: Option<usize>, column: Option<usize>| match (row, column) {
            (Some(row), Some(column)) if row < self.rows && column < self.columns => {
                (row * self.columns + column) as i32
            }
            _ => PROC_NULL,
        };
        let (row, column) = (Some(self.row), Some(self.column));
        [
            rank(self.row.checked_sub(1), column),
            rank(Some(self.row + 1), column),
            rank(row, self.column.checked_sub(1)),
            rank(row, Some(self.column + 1)),
        ]
    }
}

/// The index of a cell in a tile with its halo.
fn at(row: usize, column: usize) -> i64 {
    (row * WIDTH + column) as i64
}

/// A section of the initial plate, with a border of one cell: cold outside the plate, and NaN where
/// a neighbour will put its values.
fn plate(grid: &Grid, top: usize, left: usize, rows: usize, columns: usize) -> Vec<f64> {
    let (high, wide) = (grid.rows * ROWS, grid.columns * COLUMNS);
    let value = |row: usize, column: usize| {
        let border = row == 0 || row > rows || column == 0 || column > columns;
        match ((top + row).checked_sub(1), (left + column).checked_sub(1)) {
            (Some(row), Some(column)) if row < high && column < wide => match border {
                true => f64::NAN,
                false => f64::from(((row * 31 + column * 17) % 97) as u32) / 7.0,
            },
            _ => 0.0,
        }
    };
    let width = columns + 2;
    (0..(rows + 2) * width).map(|cell| value(cell / width, cell % width)).collect()
}

/// One step: each value becomes the mean of itself and its four neighbours.
fn relax(field: &[f64], width: usize) -> Vec<f64> {
    let mut next = field.to_vec();
    for row in 1..field.len() / width - 1 {
        for cell in row * width + 1..(row + 1) * width - 1 {
            let around =
                field[cell - width] + field[cell + width] + field[cell - 1] + field[cell + 1];
            next[cell] = (field[cell] + around) / 5.0;
        }
    }
    next
}
