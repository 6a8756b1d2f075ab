//! Prose: comments, doc comments and Markdown.
//!
//! Two rules are checked: lines of at most 100 columns, and subjects of commits of at most 72. The
//! other rules need a reader. For them the check lists the sentences that a reader should look at
//! first, by their words, openings and lengths, and doesn't fail.

mod columns;
pub mod comments;
pub mod markdown;
pub mod passage;
mod sentences;
pub mod sources;
mod subjects;

use std::path::Path;

use subjects::Subjects;

/// Lists the sentences to look at, then the lines and subjects that are too long, and returns
/// whether there are none of these. `base` is a file with the hash of the last commit whose subject
/// isn't judged.
///
/// # Errors
/// A description of the first file that can't be read, or of a git command that fails.
pub fn run(base: &str) -> Result<bool, String> {
    let mut doubts = Vec::new();
    let mut overlong = Vec::new();
    for source in sources::all(Path::new("."))? {
        let passages = source.language.passages(&source.text);
        let found = sentences::doubtful(&passages);
        for doubt in &found {
            println!("{}:{}: {}: {}", source.path, doubt.line, doubt.reason, doubt.sentence);
        }
        if !found.is_empty() {
            doubts.push((found.len(), source.path.clone()));
        }
        for line in columns::overlong(&passages) {
            overlong.push(format!("{}:{}: {} columns", source.path, line.number, line.columns));
        }
    }
    doubts.sort_by(|(a, one), (b, other)| b.cmp(a).then(one.cmp(other)));
    if !doubts.is_empty() {
        let total: usize = doubts.iter().map(|(count, _)| count).sum();
        println!("\nSentences to look at, {total} in {} files:", doubts.len());
        doubts.iter().for_each(|(count, path)| println!("{count:6} {path}"));
    }

    let long_subjects = match subjects::since(Path::new("."), Path::new(base))? {
        Subjects::Judged(long) => long,
        Subjects::Unknown(why) => {
            println!("\nThe subjects of commits aren't judged: {why}.");
            Vec::new()
        }
    };
    report("Lines of prose over 100 columns. Wrap them", &overlong);
    report("Subjects of commits over 72 columns. Reword them", &long_subjects);
    Ok(overlong.is_empty() && long_subjects.is_empty())
}

fn report(title: &str, findings: &[String]) {
    if !findings.is_empty() {
        println!("\n{title}, {} in all:", findings.len());
        findings.iter().for_each(|finding| println!("    {finding}"));
    }
}
