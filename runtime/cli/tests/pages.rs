//! Checks that the pages of the documentation show the current output and pictures of their
//! commands.
//!
//! With LONGSHORE_UPDATE=1, the pictures are rewritten.

use std::path::{Path, PathBuf};
use std::process::Command;

const PAGES: [&str; 1] = ["docs/datatypes.md"];

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
