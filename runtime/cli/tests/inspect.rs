//! `longshore inspect` as a command: its output, its pictures and its error messages.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use roxmltree::Document;

fn inspect(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.arg("inspect").args(words).output().unwrap()
}

fn printed(words: &[&str]) -> String {
    let output = inspect(words);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{words:?}: {} {error}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The picture, without the description after it.
fn picture(words: &[&str]) -> String {
    let text = printed(words);
    text.split_once("\n\ntype ").unwrap().0.to_owned()
}

#[test]
fn a_struct_has_a_picture_for_each_distinct_layout() {
    let drawn = printed(&["U7(SS:2:c/1,d/1)", "--arch", "x86-64,i686", "--arch", "s390x,m68k"]);
    assert_eq!(
        drawn,
        "\
x86-64, s390x
  size 9, extent 16 from lb 0 to ub 16, true extent 16 from 0 to 16
      0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16
      c--.....................d-----------------------

i686
  size 9, extent 12 from lb 0 to ub 12, true extent 12 from 0 to 12
      0  1  2  3  4  5  6  7  8  9  10 11 12
      c--.........d-----------------------

m68k
  size 9, extent 10 from lb 0 to ub 10, true extent 10 from 0 to 10
      0  1  2  3  4  5  6  7  8  9  10
      c--...d-----------------------

  c MPI_CHAR   d MPI_DOUBLE   . gap

type        U1(SS:2:c/1,d/1)
tree        U1: simple struct, count 2
              blocklength 1: MPI_CHAR
              blocklength 1: MPI_DOUBLE
signature   2 basic items: c, d
portable    yes: none of its constructors counts bytes
form        portable, 12 bytes
            0 = c; 1 = d; 2 = {0, 1}
            50 03 00 01 00 10 05 02 02 01 01 01
program     x86-64, s390x: extent 16 { 1 @0; 8 @8 }
            i686: extent 12 { 1 @0; 8 @4 }
            m68k: extent 10 { 1 @0; 8 @2 }
            to unpack a stream of x86-64:
            i686: extent 12 { 1 @0; 8 @4 }
            s390x: extent 16 { 1 @0; swap8 1 @8 }
            m68k: extent 10 { 1 @0; swap8 1 @2 }
"
    );
}

#[test]
fn bounds_that_differ_from_the_true_bounds_are_marked() {
    let drawn = picture(&["U1(RZ:U2(S:2:i/1/4,s/1/10):-2:20)", "--arch", "x86-64"]);
    assert_eq!(
        drawn,
        "\
x86-64
  size 6, extent 20 from lb -2 to ub 18, true extent 8 from 4 to 12
      -2 0  2  4  6  8  10 12 14 16 18
      .........i-----...s--.........
      ^lb      ^true lb          ub^
                   true ub^

  i MPI_INT   s MPI_SHORT   . gap"
    );
}

#[test]
fn bounds_of_a_negative_extent_are_marked_at_the_ends() {
    assert_eq!(
        picture(&["U1(RZ:d:8:-16)", "--arch", "x86-64"]),
        "\
x86-64
  size 8, extent -16 from lb 8 to ub -8, true extent 8 from 0 to 8
      -8 0  8
         d--
   ub^      ^lb
         ^true lb
    true ub^

  d MPI_DOUBLE"
    );
    let image = printed(&["U1(RZ:d:8:-16)", "--svg", "-"]);
    assert_eq!(
        image.matches("class=\"bound\"").count(),
        3,
        "two bars, and one in the legend:\n{image}"
    );
}

#[test]
fn a_picture_without_cells_has_no_empty_lines() {
    let drawn = picture(&["LB", "--arch", "x86-64"]);
    assert_eq!(drawn, "x86-64\n  size 0, extent 0 from lb 0 to ub 0\n  nothing to draw");
    let nowhere = inspect(&["U1(FR:18:4000)", "--arch", "ppc64le"]);
    assert!(nowhere.stdout.starts_with(b"ppc64le has no type"));
}

#[test]
fn large_types_are_folded_and_orders_numbered() {
    let drawn = picture(&["U1(V:U2(SS:2:c/1,d/1):1000:2:5)", "--arch", "x86-64"]);
    assert_eq!(
        drawn,
        "\
x86-64
  size 18000, extent 79952 from lb 0 to ub 79952, true extent 79952 from 0 to
  79952
         +0    +2    +4    +6    +8    +10   +12   +14   +16
      0  c--.....................d-----------------------
     16  c--.....................d-----------------------
         : 3 rows without data, to 80
         : the 3 lines above 998 times more, to 79920
  79920  c--.....................d-----------------------
  79936  c--.....................d-----------------------

  c MPI_CHAR   d MPI_DOUBLE   . gap"
    );
    let transposed = picture(&["U1(HV:U2(V:d:3:1:4):4:1:8)", "--arch", "x86-64"]);
    assert_eq!(
        transposed,
        "\
x86-64
  size 96, extent 96 from lb 0 to ub 96, true extent 96 from 0 to 96
      +0    +8    +16   +24   +32
   0  d0----d3----d6----d9----
  32  d1----d4----d7----d10---
  64  d2----d5----d8----d11---
  The numbers are the places in the type map, whose order isn't memory's.

  d MPI_DOUBLE"
    );
}

#[test]
fn architectures_without_the_type_are_reported_and_the_others_shown() {
    let drawn = printed(&["U1(FR:18:4000)", "--arch", "i686,ppc64le"]);
    assert!(drawn.starts_with("i686\n  size 12"), "{drawn}");
    assert!(drawn.contains("ppc64le has no type for FR:18:4000"), "{drawn}");
    let nowhere = inspect(&["U1(FR:18:4000)", "--arch", "ppc64le"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nowhere.stdout).contains("ppc64le has no type"));
    let huge = inspect(&["U1(V:d:9:1:4000000000000000000)", "--arch", "native"]);
    assert_eq!(huge.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&huge.stdout).contains("does not fit 64 bits"));
}

#[test]
fn wrong_types_and_options_are_refused_with_an_explanation() {
    for (words, said) in [
        (vec!["U1(S:1:i/1/0"], "  U1(S:1:i/1/0\n              ^ column 13: expected"),
        (vec!["q"], "  q\n  ^ column 1: no basic type has the code `q`"),
        (vec![""], "  \n  ^ column 1:"),
        (vec!["U1(V:d:-1:1:1)"], "         ^ column 8: count `-1`"),
        (vec!["i", "--arch", "vax"], "use one of x86-64, i686, s390x"),
        (vec!["i", "--arch", "native,vax"], "no architecture is called `vax`"),
        (vec!["i", "--arch", "e=l,s2.2"], "field `i` is missing"),
        (vec!["i", "--count", "-1"], "invalid value"),
        (vec!["i", "--lines", "3"], "3 is not in 12.."),
        (vec![], "<TYPE>"),
    ] {
        let output = inspect(&words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(said), "{words:?}: {said:?} in\n{error}");
    }
    let output = inspect(&["i", "--svg", "/no such folder/picture.svg"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no such folder/picture.svg: "));
}

#[test]
fn a_type_is_read_from_standard_input() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
    command.args(["inspect", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let places: Vec<String> = (0..50_000_i64).map(|at| (at * at).to_string()).collect();
    let text = format!("U1(XB:d:50000:1:{})\n", places.join(","));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let drawn = String::from_utf8(output.stdout).unwrap();
    assert!(drawn.contains("50000 basic items: 50000 x d"), "{drawn}");
    assert!(drawn.len() < 10_000, "{}", drawn.len());
}

#[test]
fn svg_is_well_formed_and_inside_its_page() {
    for words in [
        vec!["U1(SS:2:c/1,d/1)", "--arch", "all"],
        vec!["U1(RZ:U2(SS:2:c/1,d/1):-3:24)", "--count", "3"],
        vec!["U1(1000000d)"],
        vec!["U1(HV:U2(V:d:4:1:5):5:1:8)"],
        vec!["U1(S:2:d/1/2000000000000,i/1/4)"],
        vec!["U1(S:2:d/1/0,i/1/4)"],
        vec!["U1(FR:18:4000)", "--arch", "all"],
        vec!["U1(S:8:i8/1/0,cB/1/1,c/1/2,sc/1/3,uc/1/4,u8/1/5,CH/1/6,L1/1/7)"],
        vec!["LB"],
    ] {
        let image = printed(&[&words[..], &["--svg", "-"]].concat());
        let document = Document::parse(&image).unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let root = document.root_element();
        assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
        let number = |node: roxmltree::Node, name| -> Option<f64> {
            Some(node.attribute(name)?.parse().expect("a number"))
        };
        let (width, height) = (number(root, "width").unwrap(), number(root, "height").unwrap());
        assert!(height < 8000.0, "{words:?}: {height}");
        for node in root.descendants().filter(roxmltree::Node::is_element) {
            assert!(node.attribute("href").is_none(), "{words:?}: a reference in {node:?}");
            let tag = node.tag_name().name();
            if let (Some(x), Some(y)) = (number(node, "x"), number(node, "y")) {
                let letters = node.text().map_or(0, |text| text.trim().chars().count()) as f64;
                let (left, right) = match (tag, number(node, "width"), node.attribute("class")) {
                    (_, Some(wide), _) => (x, x + wide),
                    (_, _, Some(class)) if class.contains("cell") => {
                        (x - letters * 3.7, x + letters * 3.7)
                    }
                    _ if node.attribute("text-anchor") == Some("end") => (x - letters * 7.3, x),
                    (_, _, Some("title")) => (x, x + letters * 7.9),
                    _ => (x, x + letters * 7.3),
                };
                assert!(
                    left >= 0.0 && right <= width,
                    "{words:?}: {node:?} from {left} to {right}"
                );
                assert!(y >= 0.0 && y <= height, "{words:?}: {node:?}");
            }
        }
    }
}

#[test]
fn a_pair_of_representations_is_compared() {
    let relation = |words: &[&str]| {
        let text = printed(words);
        let lines = text.lines().skip_while(|line| !line.starts_with("relation"));
        let lines = lines.take_while(|line| line.starts_with([' ', 'r']));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).skip(1).collect();
        words.join(" ")
    };
    let record = "U1(S:2:c/1/0,d/1/8)";
    assert_eq!(
        relation(&[record, "--pair", "x86-64", "aarch64"]),
        "equal on x86-64 and on aarch64"
    );
    assert_eq!(
        relation(&[record, "--pair", "x86-64", "i686"]),
        "moved on x86-64 and on i686: member 1 (MPI_DOUBLE) lies at offset 8 on x86-64 and at \
         offset 4 on i686"
    );
    assert_eq!(
        relation(&["U1(1LD)", "--pair", "x86-64", "aarch64"]),
        "converted on x86-64 and on aarch64"
    );
    for (words, says) in [
        (&["U1(1d)", "--pair", "x86-64"][..], "2 values"),
        (&["U1(1d)", "--pair", "x86-64", "vax"][..], "vax"),
        (&["U1(1d)", "--pair", "x86-64", "external32"][..], "no rank can have"),
    ] {
        let refused = inspect(words);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && text.contains(says), "{words:?}: {text}");
    }
}

#[test]
fn records_of_a_file_are_printed_and_a_cut_one_is_named() {
    let path = std::env::temp_dir().join(format!("longshore-records-{}", std::process::id()));
    let record = |number: i32, value: f64| {
        [&number.to_be_bytes()[..], &[0; 4], &value.to_be_bytes()].concat()
    };
    let bytes = [record(7, 2.5), record(-8, -0.125)].concat();
    std::fs::write(&path, &bytes).unwrap();
    let name = path.to_str().unwrap();
    let words = ["U1(S:2:i/1/0,d/1/8)", "--file", name, "--count", "9"];
    let text = printed(&words);
    assert!(text.contains("records of 16 bytes in external32, 32 bytes"), "{text}");
    assert!(
        text.ends_with("offset  i d\n           0  7 2.5\n          16  -8 -0.125\n"),
        "{text}"
    );
    let text = printed(&["d", "--file", name, "--representation", "s390x"]);
    assert!(text.contains("in s390x"), "{text}");
    std::fs::write(&path, &bytes[..27]).unwrap();
    let output = inspect(&words);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        error.contains("ends at byte 27, inside of record 1, which begins at byte 16"),
        "{error}"
    );
    let output = inspect(&["d", "--file", name, "--representation", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    std::fs::remove_file(&path).unwrap();
}
