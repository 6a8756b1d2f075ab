//! The fields of a struct as a text, from which an error names the field of an item.
//!
//! The text has the shape of a Rust type. A type is the lengths of its arrays, and then either its
//! fields or the number of its basic items if that isn't 1:
//!
//! ```text
//! type   = ('*' length)* [ ':' items | '(' fields ')' ]
//! fields = [ name type (',' name type)* ]
//! ```
//!
//! So `(tag,corners*3(x,y),range:2)` are nine items. The fifth one is `corners[1].y`. Such a text
//! may come from a peer, so it can be any text.

use std::fmt::Write;
use std::sync::Arc;

use crate::limits::MAX_DEPTH;

/// The fields of the type of a program. The text is made or parsed only for an error.
#[derive(Clone, Debug, Default)]
pub(crate) enum Fields {
    /// The type has no fields that are known.
    #[default]
    Unknown,
    /// This function returns the text.
    Of(fn() -> String),
    /// The text. It is boxed so that a program without one, as most are, is smaller.
    Text(Box<Arc<str>>),
}

impl Fields {
    /// The text, if it names a field.
    pub(crate) fn text(&self) -> Option<Arc<str>> {
        let text = match self {
            Fields::Unknown => return None,
            Fields::Of(text) => text().into(),
            Fields::Text(text) => Arc::clone(&**text),
        };
        text.contains('(').then_some(text)
    }

    /// The path of an item of `count` elements, such as `corners[1].y`, or `[7].corners[1].y` if
    /// `count` isn't 1. `None` if the text doesn't describe elements of `items` items.
    pub(crate) fn path(&self, item: u64, count: u64, items: u64) -> Option<String> {
        let text = self.text()?;
        let (shape, rest) = Shape::parse(&text, MAX_DEPTH)?;
        if !rest.is_empty() || shape.items != items || items == 0 {
            return None;
        }
        let mut path = String::new();
        if count != 1 {
            write!(path, "[{}]", item / items).ok()?;
        }
        shape.follow(item % items, &mut path)?;
        Some(path)
    }
}

/// A type.
struct Shape<'a> {
    lengths: Vec<u64>,
    fields: Vec<(&'a str, Shape<'a>)>,
    /// The items of one element of the arrays.
    inner: u64,
    /// All items.
    items: u64,
}

impl<'a> Shape<'a> {
    /// The type at the start of a text, and the rest of the text. `None` if it is no type, or too
    /// large.
    fn parse(text: &'a str, depth: usize) -> Option<(Shape<'a>, &'a str)> {
        let depth = depth.checked_sub(1)?;
        let (mut lengths, mut rest) = (Vec::new(), text);
        while let Some(after) = rest.strip_prefix('*') {
            let (length, after) = number(after)?;
            lengths.push(length);
            rest = after;
        }
        let (mut fields, mut inner) = (Vec::new(), 1u64);
        if let Some(after) = rest.strip_prefix(':') {
            (inner, rest) = number(after)?;
        } else if let Some(mut after) = rest.strip_prefix('(') {
            inner = 0;
            while !after.starts_with(')') {
                if !fields.is_empty() {
                    after = after.strip_prefix(',')?;
                }
                let (name, of) = after.split_at(after.find(['*', ':', '(', ',', ')'])?);
                let (shape, next) = Shape::parse(of, depth).filter(|_| !name.is_empty())?;
                inner = inner.checked_add(shape.items)?;
                fields.push((name, shape));
                after = next;
            }
            rest = &after[1..];
        }
        let items = lengths.iter().try_fold(inner, |items, length| items.checked_mul(*length))?;
        Some((Shape { lengths, fields, inner, items }, rest))
    }

    /// Adds the path of an item, counted from the start of this type.
    fn follow(&self, mut item: u64, path: &mut String) -> Option<()> {
        let mut step = self.items;
        for length in &self.lengths {
            step = step.checked_div(*length)?;
            write!(path, "[{}]", item.checked_div(step)?).ok()?;
            item %= step;
        }
        debug_assert_eq!(step, self.inner);
        for (name, shape) in &self.fields {
            if item < shape.items {
                let dot = if path.is_empty() { "" } else { "." };
                write!(path, "{dot}{name}").ok()?;
                return shape.follow(item, path);
            }
            item -= shape.items;
        }
        Some(())
    }
}

/// The number at the start of a text, and the rest of the text.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str, item: u64, count: u64, items: u64) -> Option<String> {
        Fields::Text(Box::new(text.into())).path(item, count, items)
    }

    #[test]
    fn an_item_has_a_path() {
        let text = "(tag,corners*3(x,y),range:2,table*2*3)";
        let paths: Vec<_> = (0..15).map(|item| path(text, item, 1, 15).unwrap()).collect();
        let expected = [
            "tag",
            "corners[0].x",
            "corners[0].y",
            "corners[1].x",
            "corners[1].y",
            "corners[2].x",
            "corners[2].y",
            "range",
            "range",
            "table[0][0]",
            "table[0][1]",
            "table[0][2]",
            "table[1][0]",
            "table[1][1]",
            "table[1][2]",
        ];
        assert_eq!(paths, expected);
        assert_eq!(path(text, 34, 3, 15).unwrap(), "[2].corners[1].y");
        assert_eq!(path("*4(a*2,b())", 5, 1, 8).unwrap(), "[2].a[1]");
        assert_eq!(path("((0,1:0,2),end)", 1, 1, 3), None);
        assert_eq!(path("(pair(0,1:0,2),end)", 1, 1, 3).unwrap(), "pair.2");
    }

    #[test]
    fn any_text_is_harmless() {
        for text in ["", "*3", ":2", "(", ")", "(a", "(a,", "(a)b", "(a*)", "(a:)", "()", "(a,,b)"]
        {
            assert_eq!(path(text, 0, 1, 1), None, "{text}");
        }
        // No such item, another number of items, and more than a u64 can count.
        assert_eq!(path("(a*0)", 0, 1, 0), None);
        assert_eq!(path("(a,b)", 0, 1, 3), None);
        assert_eq!(path("(a*4294967296*4294967296)", 0, 1, 1), None);
        assert_eq!(path("(a:18446744073709551615,b)", 0, 1, 1), None);
        let deep = "(a".repeat(100_000);
        assert_eq!(path(&deep, 0, 1, 1), None);
        let nested = format!("{}{}", "(a".repeat(255), ")".repeat(255));
        assert_eq!(path(&nested, 0, 1, 1).unwrap().len(), 2 * 255 - 1);
    }
}
