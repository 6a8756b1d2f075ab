//! The language of the program, and the source lines of its calls.
//!
//! A call of Rust code has its line from the compiler, at no cost. A program in another language
//! calls through an interface, whose own lines say nothing to its user. So where a call is observed
//! or checked, the interface is asked for the program's line. That takes a walk up the stack, so it
//! must be asked within the call.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;

#[doc(inline)]
pub use longshore_job::Language;
pub(crate) use longshore_job::language;

/// The source location of a call in Rust code.
pub(crate) type Caller = &'static Location<'static>;

/// A source line of a program in another language.
#[derive(Debug)]
pub struct SourceLine {
    /// The source file, or the place in the program's file if the line isn't known.
    pub file: String,
    /// The line. 0 if it isn't known.
    pub line: u32,
    /// The column. 0 if it isn't known.
    pub column: u32,
}

/// An interface in another language, through which the program calls.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// The language of the program.
    pub language: Language,
    /// Finds the program's line that has made the current call of this thread. If its argument is
    /// false, it waits for no interpreter, and finds nothing where it would have to.
    pub line: fn(bool) -> Option<&'static SourceLine>,
}

static INTERFACE: OnceLock<Interface> = OnceLock::new();

impl Interface {
    /// Lets all errors and reports of this process speak the program's language. The first call
    /// counts: it is made before `init`.
    ///
    /// ```
    /// use longshore::{Interface, Language};
    ///
    /// Interface { language: Language::C, line: |_| None }.register();
    /// let error = longshore::init()?.world().send(&[1u8], 99, 0).unwrap_err();
    /// assert!(error.to_string().contains("or MPI_PROC_NULL"));
    /// # Ok::<(), longshore::Error>(())
    /// ```
    pub fn register(self) {
        // A later interface changes nothing.
        if INTERFACE.set(self).is_ok() {
            longshore_job::speak(self.language);
        }
    }
}

thread_local! {
    /// The program's line whose call this thread has waited in for long, if it was found. `None`
    /// if it hasn't been looked for.
    static WAITING: Cell<Option<Option<&'static SourceLine>>> = const { Cell::new(None) };
}

/// Whether the program's line has to be looked for by [`lingers`].
pub(crate) fn is_line_wanted() -> bool {
    INTERFACE.get().is_some() && WAITING.get().is_none()
}

/// This thread has waited in its call for long, so the program's line is looked for, once. The
/// debug information may have to be read, so neither is the engine locked nor relies the progress
/// thread on this one. An interpreter isn't waited for: the thread that it runs may need this wait
/// to end. `known` is the line if the call is observed.
pub(crate) fn lingers(known: Option<Line>) {
    let known = match known {
        Some(Line::Program(line)) => Some(line),
        _ => INTERFACE.get().and_then(|interface| (interface.line)(false)),
    };
    WAITING.set(Some(known));
}

/// The call in which this thread waited has ended.
pub(crate) fn has_waited() {
    WAITING.set(None);
}

/// The source line of a call, as people read it.
#[derive(Clone, Copy)]
pub(crate) enum Line {
    /// A line of Rust code. In a program of another language it is the interface's.
    Rust(Caller),
    /// A line of a program in another language.
    Program(&'static SourceLine),
}

impl Line {
    /// The program's line of the current call, which Rust code knows by this location.
    #[inline]
    pub(crate) fn of(caller: Caller) -> Line {
        Line::Rust(caller).found()
    }

    /// The program's line of a call that this thread has waited in for long, if it is known.
    pub(crate) fn of_waiting(caller: Caller) -> Option<Line> {
        match INTERFACE.get() {
            Some(_) => WAITING.get().flatten().map(Line::Program),
            None => Some(Line::Rust(caller)),
        }
    }

    /// The program's line, if this one is the interface's line of the current call.
    #[inline]
    pub(crate) fn found(self) -> Line {
        match (self, INTERFACE.get()) {
            (Line::Rust(_), Some(interface)) => (interface.line)(true).map_or(self, Line::Program),
            _ => self,
        }
    }

    pub(crate) fn file(self) -> &'static str {
        match self {
            Line::Rust(caller) => caller.file(),
            Line::Program(line) => &line.file,
        }
    }

    /// The line's number. 0 if it isn't known.
    pub(crate) fn line(self) -> u32 {
        match self {
            Line::Rust(caller) => caller.line(),
            Line::Program(line) => line.line,
        }
    }

    /// A number that differs between lines that differ.
    pub(crate) fn key(self) -> usize {
        match self {
            Line::Rust(caller) => std::ptr::from_ref::<Location<'_>>(caller).addr(),
            Line::Program(line) => std::ptr::from_ref(line).addr(),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Rust(caller) => caller.fmt(f),
            Line::Program(line) => line.fmt(f),
        }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column] {
            match number {
                0 => return Ok(()),
                number => write!(f, ":{number}")?,
            }
        }
        Ok(())
    }
}
