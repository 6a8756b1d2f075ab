//! Hexadecimal dumps of two memories side by side, with the bytes that an operation moved
//! highlighted.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

/// Bytes in one row of one side: one double, or two ints.
const ROW: usize = 8;
/// Rows that are shown. Longer memories end with a line that counts their bytes.
const MOST_ROWS: usize = 12;

const MOVED: Style = AnsiColor::Green.on_default().bold();
const QUIET: Style = AnsiColor::BrightBlack.on_default();

/// One side of the dump: the memory of one rank.
pub struct Side<'a> {
    /// A description of the rank that has the memory.
    pub title: String,
    /// The bytes of the memory, in the rank's representation.
    pub bytes: &'a [u8],
    /// For each byte, whether the operation read or wrote it. Has the length of `bytes`.
    pub moved: Vec<bool>,
}

impl<'a> Side<'a> {
    /// Memory of which the operation moved every byte.
    pub fn all(title: impl Into<String>, bytes: &'a [u8]) -> Side<'a> {
        Side { title: title.into(), bytes, moved: vec![true; bytes.len()] }
    }

    /// Memory after an operation. Bytes that differ from `before` count as moved.
    pub fn changed(title: impl Into<String>, before: &[u8], bytes: &'a [u8]) -> Side<'a> {
        let moved = bytes.iter().enumerate().map(|(at, byte)| before.get(at) != Some(byte));
        Side { title: title.into(), bytes, moved: moved.collect() }
    }

    fn rows(&self) -> usize {
        self.bytes.len().div_ceil(ROW)
    }

    /// A row such as `0040  3f f1 99 99 99 99 99 9a  ?.......`. All rows have the same width.
    fn row(&self, row: usize, colour: bool) -> String {
        let mut text = String::new();
        let start = row * ROW;
        if start >= self.bytes.len() {
            return " ".repeat(ROW * 4 + 7);
        }
        let _ = write!(text, "{start:04x}  ");
        let mut shown = String::new();
        for at in start..start + ROW {
            match self.bytes.get(at) {
                Some(byte) => {
                    let moved = self.moved.get(at).copied().unwrap_or(false);
                    let cell = format!("{byte:02x}");
                    let printable = byte.is_ascii_graphic() || *byte == b' ';
                    shown.push(match *byte {
                        _ if !moved && !colour => '·',
                        byte if printable => char::from(byte),
                        _ => '.',
                    });
                    let style = if moved { MOVED } else { QUIET };
                    let _ = match colour {
                        true => write!(text, "{style}{cell}{style:#} "),
                        // Without colour, dots replace the bytes that did not move. Brackets around
                        // the moved bytes would shift the columns.
                        false if moved => write!(text, "{cell} "),
                        false => write!(text, "·· "),
                    };
                }
                None => {
                    text.push_str("   ");
                    shown.push(' ');
                }
            }
        }
        let _ = write!(text, " {shown}");
        text
    }
}

/// Draws `left` and `right` beside each other, with one line for each eight bytes.
pub fn side_by_side(left: &Side<'_>, right: &Side<'_>, colour: bool) -> Vec<String> {
    let width = ROW * 4 + 7;
    let rows = left.rows().max(right.rows());
    let mut lines = vec![format!("{:width$}    {}", left.title, right.title).trim_end().to_owned()];
    for row in 0..rows.min(MOST_ROWS) {
        let line = format!("{}    {}", left.row(row, colour), right.row(row, colour));
        lines.push(line.trim_end().to_owned());
    }
    if rows > MOST_ROWS {
        lines.push(format!("... {} bytes here, {} there", left.bytes.len(), right.bytes.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_unmoved_bytes_are_dots() {
        let before = [0u8; 12];
        let mut after = before;
        after[8..12].copy_from_slice(b"\x40\x49\x0f\xdb");
        let left = Side::all("rank 0", &[0xdb, 0x0f, 0x49, 0x40]);
        let right = Side::changed("rank 1", &before, &after);
        let lines = side_by_side(&left, &right, false);
        assert_eq!(
            lines,
            [
                "rank 0                                     rank 1",
                "0000  db 0f 49 40              ..I@        0000  ·· ·· ·· ·· ·· ·· ·· ··  ········",
                "                                           0008  40 49 0f db              @I..",
            ]
        );
    }

    #[test]
    fn long_memory_is_cut_and_its_bytes_are_counted() {
        let bytes = [7u8; 400];
        let lines = side_by_side(&Side::all("a", &bytes), &Side::all("b", &bytes[..8]), false);
        assert_eq!(lines.len(), 1 + MOST_ROWS + 1);
        assert_eq!(lines.last().map(String::as_str), Some("... 400 bytes here, 8 there"));
    }
}
