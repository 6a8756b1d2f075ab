//! Compares the model of memory with the oracle, which lists every item, and checks the drawn text.

use shipable::oracle::{self, Options, Random, cases, each_seed};
use shipable::{Architecture, Basic, Datatype, Form, Leaf};

use super::memory::{Item, Memory};
use super::picture::{Contents, FoldReason, Line, Picture, PictureLimits};
use super::sheet::Layouts;
use super::strided::{Address, Effort};
use super::terminal::{self, Screen};
use super::{facts, pointed};

const SCREEN: Screen = Screen { width: 80, colour: false };

fn parsed(text: &str) -> Datatype {
    text.parse().unwrap()
}

fn memory(datatype: &Datatype, architecture: &Architecture, count: u64) -> Option<Memory> {
    let form = Form::compile(datatype, architecture).ok()?;
    Memory::new(&form, architecture, count).ok()
}

/// The items that the oracle lists, with pairs as two items and complex numbers as one.
fn expected(datatype: &Datatype, architecture: &Architecture, count: u64) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for scalar in oracle::expand(datatype, architecture, count).unwrap() {
        let pair = match scalar.leaf {
            Leaf::Basic(basic) => basic.pair(),
            _ => None,
        };
        let leaf = match (pair, scalar.component) {
            (Some((value, _)), 0) => value.into(),
            (Some((_, index)), _) => index.into(),
            (None, _) => scalar.leaf,
        };
        match items.last_mut() {
            Some(last) if pair.is_none() && scalar.component > 0 => last.size += scalar.scalar.size,
            _ => items.push(Item {
                leaf,
                at: scalar.offset.into(),
                size: scalar.scalar.size,
                index: items.len() as u128,
            }),
        }
    }
    items
}

/// A random type, often with so many copies that its picture is folded.
fn random(random: &mut Random) -> Datatype {
    let inner = random.datatype();
    let more = random.below(200) as i64;
    let wrapped = match random.below(5) {
        0 => Datatype::contiguous(more, &inner),
        1 => Datatype::vector(more, 2, 3, &inner),
        2 => Datatype::hvector(more, 1, 1000, &inner),
        3 => Datatype::vector(more / 10, 1, -7, &Datatype::contiguous(5, &inner).unwrap()),
        _ => Ok(inner),
    };
    wrapped.unwrap()
}

#[test]
fn memory_has_the_items_that_the_oracle_lists() {
    each_seed(400, |seed| {
        let mut dice = Random::new(seed, Options { disjoint: seed % 2 == 0, ..Options::default() });
        let (datatype, architecture) = (random(&mut dice), dice.architecture());
        let count = dice.below(4);
        if datatype.signature().count > 20_000 {
            return;
        }
        let Some(memory) = memory(&datatype, &architecture, count) else { return };
        let what = format!("seed {seed}: {count} x {datatype} on {architecture}");
        let items = expected(&datatype, &architecture, count);
        let found = memory.items_in(Address::MIN / 4..Address::MAX / 4, &mut Effort::picture());
        assert_eq!(found.unwrap(), items, "{what}");
        assert_eq!(memory.items(), items.len() as u128, "{what}");
        let reach = memory.reach();
        for _ in 0..8 {
            let span = (reach.end - reach.start) as u64 + 32;
            let start = reach.start - 16 + i128::from(dice.below(span));
            let window = start..start + i128::from(dice.below(64)) + 1;
            let meets = |item: &&Item| {
                item.at < window.end && item.at + i128::from(item.size) > window.start
            };
            let there: Vec<Item> = items.iter().filter(meets).copied().collect();
            assert_eq!(memory.items_in(window, &mut Effort::picture()).unwrap(), there, "{what}");
            let ends_later = items.iter().filter(|item| item.at + i128::from(item.size) > start);
            let next = ends_later.map(|item| item.at.max(start)).min();
            assert_eq!(
                memory.next(start, &mut Effort::picture()).unwrap(),
                next,
                "{what} at {start}"
            );
        }
    });
}

/// The rows of a picture after unfolding, with the type of every byte; `None` for rows that the
/// picture omits.
fn unfolded(picture: &Picture) -> Vec<(Address, Option<Vec<Option<Leaf>>>)> {
    let mut rows: Vec<(Address, Option<Vec<Option<Leaf>>>)> = Vec::new();
    // The index of the first row of each line.
    let mut firsts = Vec::new();
    for line in &picture.lines {
        firsts.push(rows.len());
        match line {
            Line::Row(row) => {
                let mut bytes = Vec::new();
                for cell in &row.cells {
                    let leaf = match cell.holds {
                        Contents::Item { leaf, .. } => Some(leaf),
                        Contents::Shared => Some(Leaf::Basic(Basic::Packed)),
                        Contents::Gap | Contents::Outside => None,
                    };
                    bytes.extend(vec![leaf; cell.length as usize]);
                }
                rows.push((row.start, Some(bytes)));
            }
            Line::Fold { start, rows: many, reason } => {
                let repeated = match *reason {
                    FoldReason::Repeats { lines, times } => {
                        let period = rows[firsts[firsts.len() - 1 - lines]..].to_vec();
                        assert_eq!(*many, times * period.len() as u128);
                        period
                    }
                    FoldReason::Empty => vec![(0, Some(vec![None; picture.pitch as usize]))],
                    FoldReason::TooMany | FoldReason::Tangled => vec![(0, None)],
                };
                for at in 0..*many as usize {
                    let address = start + at as i128 * i128::from(picture.pitch);
                    rows.push((address, repeated[at % repeated.len()].1.clone()));
                }
            }
        }
    }
    rows
}

#[test]
fn a_fold_describes_the_rows_that_it_replaces() {
    let mut folds = [0; 4];
    let tried = cases(400);
    for seed in 0..tried {
        let mut dice = Random::new(seed, Options { disjoint: seed % 2 == 0, ..Options::default() });
        let (datatype, architecture) = (random(&mut dice), dice.architecture());
        let count = dice.below(50) * dice.below(2) + 1;
        if datatype.signature().count * count > 100_000 {
            continue;
        }
        let Some(memory) = memory(&datatype, &architecture, count) else { continue };
        if memory.reach().end - memory.reach().start > 1 << 22 {
            continue;
        }
        let what = format!("seed {seed}: {count} x {datatype} on {architecture}");
        let lines = PictureLimits::LEAST + dice.below(20) as usize;
        let limits =
            PictureLimits { units: 16 + dice.below(60) as i64, lines, single: dice.chance(2) };
        let picture = Picture::new(&memory, memory.unit(), limits);
        assert!(picture.lines.len() <= lines, "{what}: {} lines", picture.lines.len());
        for line in &picture.lines {
            if let Line::Fold { reason, .. } = line {
                folds[match reason {
                    FoldReason::Repeats { lines: 1, .. } => 0,
                    FoldReason::Repeats { .. } => 1,
                    FoldReason::Empty => 2,
                    FoldReason::TooMany | FoldReason::Tangled => 3,
                }] += 1;
            }
        }

        let rows = unfolded(&picture);
        let Some(&(origin, _)) = rows.first() else {
            assert!(memory.items() == 0 && memory.span().is_empty(), "{what}: nothing is drawn");
            continue;
        };
        let pitch = picture.pitch as usize;
        for (at, (start, _)) in rows.iter().enumerate() {
            assert_eq!(*start, origin + (at * pitch) as i128, "{what}: rows follow each other");
        }
        let mut bytes: Vec<Option<Leaf>> = vec![None; rows.len() * pitch];
        for item in expected(&datatype, &architecture, count) {
            let first = usize::try_from(item.at - origin).expect("all items are in the picture");
            for byte in &mut bytes[first..first + usize::from(item.size)] {
                *byte = Some(if byte.is_none() { item.leaf } else { Basic::Packed.into() });
            }
        }
        for (wanted, (start, drawn)) in bytes.chunks(pitch).zip(&rows) {
            if let Some(drawn) = drawn {
                assert_eq!(drawn, wanted, "{what}: the row at {start} of\n{picture:#?}");
            }
        }
    }
    assert!(tried < 400 || folds.iter().all(|&n| n > 0), "every kind of fold is met: {folds:?}");
}

#[test]
fn huge_types_are_drawn_quickly_and_in_few_lines() {
    for text in [
        "U1(1000000000000d)",
        "U1(V:i:1000000000000:1:3)",
        "U1(HV:U2(V:d:1000000:1:1000):1000000:1:8000000000)",
        "U1(HV:U2(V:d:1000000:1:1000000):1000000:1:8)",
        "U1(SA:f:F:3:100000/90000/5,100000/90000/5,100/90/5)",
        "U1(S:2:c/1/0,d/1/9000000000000000000)",
        "U1(V:U2(V:U3(V:U4(V:i:1000:1:2):1000:1:2):1000:1:2):1000:1:2)",
        "U1(V:U2(V:U3(V:U4(V:i:1000:1:0):1000:1:0):1000:1:0):1000:1:0)",
    ] {
        let layouts = Layouts::new(&parsed(text), &[Architecture::X86_64], 3);
        let drawn = terminal::draw(&layouts, 3, 24, SCREEN);
        assert!(drawn.lines().count() < 40, "{text}:\n{drawn}");
        let said = facts::describe(&parsed(text), &layouts, Vec::new(), None, SCREEN);
        assert!(said.lines().count() < 60, "{text}:\n{said}");
    }
}

#[test]
fn a_truncated_description_states_its_limit() {
    let places: Vec<i64> = (0..100_000).map(|at| at * at % 1_000_003 * 2).collect();
    let scattered = Datatype::indexed_block(1, &places, &Datatype::double()).unwrap();
    let layouts = Layouts::new(&scattered, &[Architecture::X86_64], 1);
    let text = terminal::draw(&layouts, 1, 24, SCREEN)
        + &facts::describe(&scattered, &layouts, Vec::new(), None, SCREEN);
    assert!(text.len() < 12_000, "{}", text.len());
    for stated in ["rows not drawn, to ", "(cut at 1200 letters)", " bytes more"] {
        assert!(text.contains(stated), "{stated} in\n{text}");
    }
}

#[test]
fn colours_do_not_change_the_letters() {
    for text in [
        "U1(V:d:4:1:5)",
        "U1(SS:3:c/2,d/1,LD/1)",
        "U1(HV:U2(V:d:4:1:5):5:1:8)",
        "U1(S:2:d/1/0,i/1/4)",
    ] {
        let layouts = Layouts::new(&parsed(text), &[Architecture::X86_64, Architecture::M68K], 1);
        let plain = terminal::draw(&layouts, 1, 24, SCREEN);
        let drawn = terminal::draw(&layouts, 1, 24, Screen { colour: true, ..SCREEN });
        assert!(drawn.contains("\u{1b}[48;5;117m") || drawn.contains(";117m"), "{drawn:?}");
        let mut visible = String::new();
        for (at, part) in drawn.split('\u{1b}').enumerate() {
            visible += if at == 0 { part } else { part.split_once('m').unwrap().1 };
        }
        // With colours, blanks replace dashes and shades replace dots. The legend differs in width.
        let letters = |text: &str| -> Vec<String> {
            let rows = text.lines().take_while(|line| !line.contains("MPI_"));
            rows.map(|row| row.replace('░', ".").replace('-', " ").trim_end().to_owned()).collect()
        };
        assert_eq!(letters(&visible), letters(&plain), "{text}");
    }
}

#[test]
fn parse_errors_point_at_their_column() {
    let error = "U1(V:d:8:+1:10)".parse::<Datatype>().unwrap_err();
    let drawn = pointed("U1(V:d:8:+1:10)", error.column, &error.problem.to_string());
    assert_eq!(
        drawn,
        "  U1(V:d:8:+1:10)\n           ^ column 10: blocklength `+1` has a plus sign: leave it out"
    );
    let long = format!("U1(X:d:2000:{}1/x)", "1/0,".repeat(1999));
    let error = long.parse::<Datatype>().unwrap_err();
    let drawn = pointed(&long, error.column, "no");
    let (text, mark) = drawn.split_once('\n').unwrap();
    assert!(text.len() < 100, "{text}");
    assert_eq!(text.as_bytes()[mark.find('^').unwrap()], b'x', "{drawn}");
    assert_eq!(pointed("", 1, "empty"), "  \n  ^ column 1: empty");
    assert_eq!(pointed("d\u{7}\n", 2, "odd"), "  d??\n   ^ column 2: odd");
}
