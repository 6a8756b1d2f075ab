//! The framing of both flat forms: the magic, the length, and the checksum.

use std::fmt::Display;

use super::FlatError;

/// The length of `;` and the checksum.
const TAIL: usize = 9;
const DIGITS: usize = 8;

/// A flat form with a valid length and checksum.
pub(super) struct CheckedForm<'a> {
    /// The first bytes, which identify the kind of form.
    magic: &'static str,
    /// The text before the last `;` and the checksum.
    text: &'a str,
    /// The length of the whole form in bytes.
    pub length: usize,
}

/// Composes a flat form: `head`, the length of the whole, `rest`, and the checksum.
pub(super) fn close(head: String, rest: &str) -> String {
    let length = head.len() + DIGITS + rest.len() + DIGITS;
    let body = format!("{head}{length:08x}{rest}");
    let checksum = crc32fast::hash(body.as_bytes());
    format!("{body}{checksum:08x}")
}

/// Reads the form at the start of `bytes`: finds its end by its length, and verifies its checksum.
pub(super) fn open<'a>(
    bytes: &'a [u8],
    magic: &'static str,
    length_at: usize,
) -> Result<CheckedForm<'a>, FlatError> {
    let head = length_at + DIGITS;
    let begins = bytes.len().min(magic.len());
    if bytes[..begins] != magic.as_bytes()[..begins] {
        return Err(FlatError::Magic { expected: name(magic), found: beginning(bytes) });
    }
    if bytes.len() < head {
        return Err(FlatError::Truncated { found: bytes.len(), needed: head + TAIL });
    }
    let stated = &bytes[length_at..head];
    let no_length = || FlatError::Length(excerpt(&String::from_utf8_lossy(stated)));
    let length = hexadecimal(stated).ok_or_else(no_length)? as usize;
    // A `;` must end the length field.
    if length < head + TAIL || bytes.get(head).is_some_and(|&after| after != b';') {
        return Err(no_length());
    }
    let Some(whole) = bytes.get(..length) else {
        return Err(FlatError::Truncated { found: bytes.len(), needed: length });
    };
    let (body, stated) = whole.split_at(length - DIGITS);
    let computed = crc32fast::hash(body);
    if hexadecimal(stated) != Some(computed) {
        let stated = excerpt(&String::from_utf8_lossy(stated));
        return Err(FlatError::Checksum { stated, computed });
    }
    let not_closed =
        |problem: &str| FlatError::Field { field: "checksum", problem: problem.into() };
    let text = body.strip_suffix(b";").ok_or_else(|| not_closed("no `;` before it"))?;
    match std::str::from_utf8(text) {
        Ok(text) if text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(CheckedForm { magic, text, length })
        }
        _ => Err(not_closed("the bytes before it aren't ASCII without blanks")),
    }
}

impl<'a> CheckedForm<'a> {
    /// The fields after the magic.
    pub fn fields(&self) -> Fields<'a> {
        Fields(self.text[self.magic.len()..].split(';'))
    }
}

/// The fields that aren't read yet.
pub(super) struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    pub fn next(&mut self, field: &'static str) -> Result<&'a str, FlatError> {
        let missing = || FlatError::Field { field, problem: "it is missing".to_string() };
        self.0.next().ok_or_else(missing)
    }

    pub fn end(&mut self) -> Result<(), FlatError> {
        match self.0.next() {
            None => Ok(()),
            Some(more) => Err(FlatError::Field {
                field: "checksum",
                problem: format!("`{}` before it is an extra field", excerpt(&more)),
            }),
        }
    }
}

/// Parses exactly 8 lowercase digits.
fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let written = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let digits = std::str::from_utf8(digits).ok().filter(|text| written && text.len() == DIGITS)?;
    u32::from_str_radix(digits, 16).ok()
}

fn name(magic: &str) -> &'static str {
    match magic {
        "MDT1;" => "a packed datatype (MDT1;)",
        _ => "a packed communicator (MCM1;)",
    }
}

fn beginning(bytes: &[u8]) -> String {
    match bytes.get(..5) {
        Some(b"MDT1;") => "MDT1;, a packed datatype".to_string(),
        Some(b"MCM1;") => "MCM1;, a packed communicator".to_string(),
        Some([b'M', b'D', b'T', version, b';'] | [b'M', b'C', b'M', version, b';']) => {
            format!(
                "version {} of it, which is not known here",
                char::from(*version).escape_debug()
            )
        }
        _ => format!("`{}`", bytes[..bytes.len().min(5)].escape_ascii()),
    }
}

/// An excerpt for errors, since a hostile text may be long.
pub(super) fn excerpt(text: &dyn Display) -> String {
    crate::excerpt::excerpt(text, 60)
}
