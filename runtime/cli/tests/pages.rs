//! Checks that the pages of the documentation show the current output and pictures of their
//! commands.
//!
//! With LONGSHORE_UPDATE=1, the pictures are rewritten.

use std::path::{Path, PathBuf};
use std::process::Command;

const PAGES: [&str; 1] = ["docs/datatypes.md"];

/// The calls that the tables of a page name in their first column. A name such as `_unlock` follows
/// one that it shares the beginning with.
fn calls(page: &str) -> Vec<(String, String)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let mut calls = Vec::new();
    for cell in rows {
        let mut before = String::new();
        for word in cell.split(|c| !is_name(c)) {
            let lower = |text: &str| text.bytes().any(|byte| byte.is_ascii_lowercase());
            if word.starts_with("MPI_") && lower(word) {
                before = word.split('_').take(2).collect::<Vec<_>>().join("_");
                calls.push((before.clone(), word.to_owned()));
            } else if word.starts_with('_') && lower(word) && !before.is_empty() {
                calls.push((before.clone(), word.to_owned()));
            }
        }
    }
    calls
}

/// The text of all source files in a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| match path.is_dir() {
        true => sources(&path),
        false => std::fs::read_to_string(&path).unwrap_or_default(),
    });
    texts.collect()
}

#[test]
fn every_call_of_mpi_that_the_page_maps_is_found_in_the_api_by_its_name() {
    let folders = ["runtime/src", "runtime/file/src", "shipable/src"];
    let source: String = folders.map(|folder| sources(&root().join(folder))).concat();
    let aliases: Vec<&str> =
        source.split("doc(alias = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let page = std::fs::read_to_string(root().join("docs/mpi.md")).unwrap();
    let calls = calls(&page);
    assert!(calls.len() > 150, "{}", calls.len());
    let missing: Vec<_> = calls
        .iter()
        .filter(|(before, call)| {
            !aliases.iter().any(|alias| alias.starts_with(before) && alias.ends_with(call.as_str()))
        })
        .collect();
    assert!(missing.is_empty(), "no `#[doc(alias)]` names {missing:?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commands that a page shows: the words of each, and the lines of its output.
fn commands(page: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let blocks = page.split("```console\n").skip(1);
    let shown = blocks.map(|block| {
        let (block, _) = block.split_once("\n```").expect("every block ends");
        let (command, output) = block.split_once('\n').unwrap_or((block, ""));
        let command =
            command.strip_prefix("$ longshore ").expect("every block begins with a command");
        (
            shlex::split(command).expect("every quote is closed"),
            output.lines().map(str::to_owned).collect(),
        )
    });
    shown.collect()
}

/// Whether `shown` matches `printed`. A line of three dots stands for any lines.
fn shows(shown: &[String], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((dots, rest)), _) if dots == "..." => {
            (0..=printed.len()).any(|skip| shows(rest, &printed[skip..]))
        }
        (Some((line, shown)), Some((same, printed))) => line == same && shows(shown, printed),
        _ => false,
    }
}

#[test]
fn pages_show_what_commands_print_and_draw() {
    let update = std::env::var_os("LONGSHORE_UPDATE").is_some();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(scratch.join("docs/pictures")).unwrap();
    let mut drawn = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let commands = commands(&text);
        assert!(!commands.is_empty());
        for (words, shown) in commands {
            let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
            let output = command.args(&words).current_dir(&scratch).output().unwrap();
            let printed = [output.stdout, output.stderr].concat();
            let printed = String::from_utf8(printed).unwrap();
            let lines: Vec<&str> = printed.lines().collect();
            assert!(shows(&shown, &lines), "{page}: longshore {words:?} prints now\n{printed}");
            let svg = words.iter().position(|word| word == "--svg");
            drawn.extend(svg.map(|at| words[at + 1].clone()));
        }
        for picture in &drawn {
            let name = picture.strip_prefix("docs/").unwrap_or(picture);
            assert!(text.contains(&format!("]({name})")), "{page} doesn't show {picture}");
        }
    }
    for picture in &drawn {
        let now = std::fs::read_to_string(scratch.join(picture)).unwrap();
        if update {
            std::fs::write(root().join(picture), &now).unwrap();
        }
        let kept = std::fs::read_to_string(root().join(picture)).unwrap_or_default();
        assert!(
            kept == now,
            "{picture} isn't what the command draws now: run the test with LONGSHORE_UPDATE=1 to rewrite it"
        );
    }
    for file in std::fs::read_dir(root().join("docs/pictures")).unwrap() {
        let name = format!("docs/pictures/{}", file.unwrap().file_name().to_string_lossy());
        assert!(drawn.contains(&name), "{name} is drawn by no command on a page");
    }
}

#[test]
fn omitted_lines_are_any_lines() {
    let shown = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(shows(&shown(&["a", "...", "c"]), &["a", "b", "b", "c"]));
    assert!(shows(&shown(&["...", "b", "..."]), &["b"]));
    assert!(!shows(&shown(&["a", "...", "c"]), &["a", "b"]));
    assert!(!shows(&shown(&["a"]), &["a", "b"]));
}
