//! The frames of a stack that a user reads: the program's, and the calls that it has made.
//!
//! Frames are told apart by their functions and source files, as a debugger prints them. A thread
//! of frames that are all of libraries is shown by its name only. If no thread has a frame of the
//! program, all frames are shown, since something is hidden otherwise.

/// Where code of Longshore and of what it uses is from: what the frame of such code has in it.
const LIBRARIES: &[&str] = &[
    "longshore::",
    "longshore_job::",
    "longshore_launcher::",
    "longshore_transport::",
    "shipable::",
    "mpi_abi::",
    "rustix::",
    "nix::",
    "/rustc/",
    "/.cargo/registry/",
    "/sysdeps/",
    "runtime/src/",
    "runtime/abi/src/",
    "runtime/job/src/",
    "runtime/launcher/src/",
    "transport/src/",
    "shipable/src/",
    "/out/exports.rs",
    "/libmpi_abi.so",
    "/libc.so",
    "/libc-",
    "/ld-linux",
    "/libpthread",
    "./nptl/",
    "./csu/",
    "./io/",
];

/// Functions of the standard library and the C library.
const FUNCTIONS: &[&str] =
    &["std::", "core::", "alloc::", "<", "__rust", "__libc", "__GI_", "_start", "clone3"];

/// A frame: its lines, of which a debugger may print several.
struct Frame<'a> {
    lines: Vec<&'a str>,
}

impl Frame<'_> {
    /// The function, with its arguments, and the place.
    fn text(&self) -> &str {
        let line = self.lines.first().copied().unwrap_or_default();
        let text = line.split_once(' ').map_or(line, |(_, text)| text.trim_start());
        // gdb and eu-stack print the address first.
        match text.strip_prefix("0x") {
            Some(rest) => {
                let text = rest.split_once(' ').map_or("", |(_, text)| text.trim_start());
                text.strip_prefix("in ").unwrap_or(text)
            }
            None => text,
        }
    }

    /// Whether it is of a library.
    fn is_library(&self) -> bool {
        let is_known = |line: &&str| LIBRARIES.iter().any(|library| line.contains(library));
        FUNCTIONS.iter().any(|name| self.text().starts_with(name))
            || self.lines.iter().any(is_known)
    }

    /// Its number, and the function without what a compiler adds to its name.
    fn shortened(&self) -> String {
        let number = self.lines.first().and_then(|line| line.split(' ').next()).unwrap_or("#");
        let (text, mut place) = (self.text(), String::new());
        // A call of the library is known by its name.
        if !self.is_library() {
            self.lines[1..].iter().for_each(|line| place += &format!(" {}", line.trim()));
        }
        let text = match text.rfind(") at ").filter(|_| self.is_library()) {
            Some(end) => &text[..=end],
            None => text,
        };
        let is_rust = text.contains("::h") || text.contains(".rs:") || self.is_library();
        match text.rfind(" (").filter(|_| is_rust) {
            Some(end) => format!("{number} {}{}{place}", short(&text[..end]), &text[end..]),
            None => format!("{number} {text}{place}"),
        }
    }
}

/// The name of a function in Rust without its generic arguments and its hash.
fn short(name: &str) -> String {
    let (mut text, mut depth) = (String::new(), 0_i32);
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth <= 0 => text.push(character),
            _ => {}
        }
    }
    let is_hash = |part: &&str| {
        part.len() == 17
            && part.starts_with('h')
            && part[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<_> = text.split("::").filter(|it| !it.is_empty() && !is_hash(it)).collect();
    parts.join("::")
}

/// The lines of the stacks of a process, as a debugger prints them, shortened to what a user reads.
pub(super) fn shortened<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut threads: Vec<(Option<&str>, Vec<Frame<'_>>)> = Vec::new();
    for line in lines {
        match (line.starts_with('#'), threads.last_mut()) {
            (true, Some((_, frames))) => frames.push(Frame { lines: vec![line] }),
            (true, None) => threads.push((None, vec![Frame { lines: vec![line] }])),
            (false, Some((_, frames))) if line.starts_with(' ') => {
                frames.iter_mut().rev().take(1).for_each(|frame| frame.lines.push(line));
            }
            (false, _) => threads.push((Some(line), Vec::new())),
        }
    }
    let is_the_programs = |frame: &Frame<'_>| !frame.is_library();
    let is_known = threads.iter().any(|(_, frames)| frames.iter().any(is_the_programs));
    let mut shown = Vec::new();
    for (name, frames) in threads {
        shown.extend(name.map(str::to_owned));
        let is_next = |at: usize| frames.get(at + 1).is_some_and(is_the_programs);
        let is_shown = |at: usize| !is_known || is_the_programs(&frames[at]) || is_next(at);
        let kept: Vec<_> = (0..frames.len()).filter(|&at| is_shown(at)).collect();
        shown.extend(kept.iter().map(|&at| frames[at].shortened()));
        match frames.len() - kept.len() {
            0 => {}
            1 => shown.push("and 1 frame of a library: --stacks=full".to_owned()),
            left => shown.push(format!("and {left} frames of libraries: --stacks=full")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_with_the_frames_of_the_program() {
        let output = "\
Thread 1 (Thread 0x7f6d7e850200 (LWP 13341) \"hang\"):
#0  syscall () at ../sysdeps/unix/sysv/linux/x86_64/syscall.S:38
#1  0x00007f6d7e0f5b36 in longshore::waiter::Waiter::sleep::h65f7d1dce6402846 () at runtime/src/waiter.rs:287
#2  0x00007f6d7e133ddd in <core::panic::AssertUnwindSafe<F> as core::ops::FnOnce<()>>::call_once::h5f23f85240079265 () at /rustc/59/library/core/src/panic.rs:274
#3  0x00007f6d7dee94c4 in MPI_Recv () at target/debug/build/longshore-abi-76/out/exports.rs:3908
#4  0x000056468264c1a8 in await (rank=0) at hang.c:2
#5  0x000056468264c1ec in main (argc=1, argv=0x7fff927c8668) at hang.c:7
Thread 2 (Thread 0x7f6d7e850100 (LWP 13342) \"longshore\"):
#0  poll () from /lib/x86_64-linux-gnu/libc.so.6";
        let expected = [
            "Thread 1 (Thread 0x7f6d7e850200 (LWP 13341) \"hang\"):",
            "#3 MPI_Recv ()",
            "#4 await (rank=0) at hang.c:2",
            "#5 main (argc=1, argv=0x7fff927c8668) at hang.c:7",
            "and 3 frames of libraries: --stacks=full",
            "Thread 2 (Thread 0x7f6d7e850100 (LWP 13342) \"longshore\"):",
            "and 1 frame of a library: --stacks=full",
        ];
        assert_eq!(shortened(output.lines()), expected);
    }

    #[test]
    fn names_lose_generic_arguments_and_hashes() {
        let output = "#0  0x01 in longshore::p2p::<impl longshore::Communicator>::recv::hc0007abb112003b3 () at runtime/src/p2p.rs:109\n\
                      #1  0x02 in heat::step<alloc::vec::Vec<f64>, (u8, u8)>::hc0007abb112003b3 (n=3) at src/main.rs:4";
        let expected = ["#0 longshore::p2p::recv ()", "#1 heat::step (n=3) at src/main.rs:4"];
        assert_eq!(shortened(output.lines()), expected);
    }

    #[test]
    fn a_stack_without_frames_of_the_program_is_whole() {
        let output = "TID 8:\n#0  0x01 syscall\n    ../sysdeps/unix/syscall.S:38";
        assert_eq!(shortened(output.lines()), ["TID 8:", "#0 syscall"]);
    }
}
