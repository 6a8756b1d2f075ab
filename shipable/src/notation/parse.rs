//! The parser, by recursive descent: one function for each rule of the grammar.

use std::collections::HashMap;
use std::str::FromStr;

use crate::basic::Basic;
use crate::datatype::{Datatype, Distribution, Order};
use crate::error::{ParseError, ParseProblem};
use crate::limits::{MAX_LIST, MAX_TEXT};

/// Parses a datatype's notation, canonical or not.
///
/// ```
/// use shipable::{Datatype, notation};
/// let column = notation::parse("U7(V:d:8:1:10)")?;
/// assert_eq!(column, Datatype::vector(8, 1, 10, &Datatype::double())?);
/// assert_eq!(column.to_string(), "U1(V:d:8:1:10)");
///
/// let error = notation::parse("U1(V:d:8:+1:10)").unwrap_err();
/// assert_eq!(error.to_string(), "column 10: blocklength `+1` has a plus sign: leave it out");
/// # Ok::<(), shipable::Error>(())
/// ```
///
/// # Errors
/// [`ParseError`], which gives the column.
pub fn parse(text: &str) -> Result<Datatype, ParseError> {
    if text.len() > MAX_TEXT {
        return Err(ParseError {
            column: MAX_TEXT + 1,
            problem: ParseProblem::TooLong(text.len()),
        });
    }
    let mut parser = Parser { text, at: 0, depth: 0, defined: HashMap::new() };
    let datatype = parser.typeref()?;
    match parser.peek() {
        None => Ok(datatype),
        Some(_) => Err(parser.unexpected("the end of the text")),
    }
}

impl FromStr for Datatype {
    type Err = ParseError;

    /// Parses the [notation](crate::notation).
    fn from_str(text: &str) -> Result<Datatype, ParseError> {
        parse(text)
    }
}

type Result<T, E = ParseError> = std::result::Result<T, E>;

struct Parser<'a> {
    text: &'a str,
    /// The index of the next byte. All bytes before it are ASCII, so that a byte's index is its
    /// column.
    at: usize,
    /// The number of open definitions.
    depth: usize,
    defined: HashMap<i64, Definition>,
}

struct Definition {
    column: usize,
    /// `None` while the definition is open.
    datatype: Option<Datatype>,
}

/// The result of a constructor.
type Made = crate::Result<Datatype>;

/// A rule for the text after a constructor's code.
type Rule = fn(&mut Parser<'_>) -> Result<Made>;

/// The codes and rules of the constructors. A table keeps the stack frame of a nesting level small.
const CONSTRUCTORS: [(&str, Rule); 19] = [
    ("V", |parser| parser.vector(Datatype::vector)),
    ("HV", |parser| parser.vector(Datatype::hvector)),
    ("HVI", |parser| parser.vector(Datatype::hvector_integer)),
    ("X", |parser| parser.indexed(Datatype::indexed)),
    ("HX", |parser| parser.indexed(Datatype::hindexed)),
    ("HXI", |parser| parser.indexed(Datatype::hindexed_integer)),
    ("XB", |parser| parser.indexed_block(Datatype::indexed_block)),
    ("HXB", |parser| parser.indexed_block(Datatype::hindexed_block)),
    ("S", |parser| parser.structure(Datatype::struct_)),
    ("SI", |parser| parser.structure(Datatype::struct_integer)),
    ("SS", |parser| parser.simple_struct()),
    ("D", |parser| Ok(Datatype::dup(&parser.after(':')?.typeref()?))),
    ("RZ", |parser| parser.resized()),
    ("SA", |parser| parser.subarray()),
    ("DA", |parser| parser.darray()),
    ("FR", |parser| parser.real_kind(Datatype::f90_real)),
    ("FC", |parser| parser.real_kind(Datatype::f90_complex)),
    ("FI", |parser| Ok(Datatype::f90_integer(parser.after(':')?.digits("range")?))),
    ("VI", |parser| parser.value_index()),
];

impl<'a> Parser<'a> {
    // Rules of the grammar.

    fn typeref(&mut self) -> Result<Datatype> {
        let start = self.at;
        let word = self.word();
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.at = start;
            return Err(self.unexpected("a type (a basic type's code, or U and a number)"));
        }
        match word.strip_prefix('U') {
            Some(digits) if is_number(digits) => {
                self.at = start + 1;
                let number = self.natural("type number")?;
                match self.peek() {
                    Some('(') => self.definition(number, start),
                    _ => self.reference(number, start),
                }
            }
            _ => Basic::from_code(word)
                .map(Datatype::basic)
                .ok_or_else(|| error(start, ParseProblem::UnknownBasic(excerpt(word)))),
        }
    }

    fn definition(&mut self, number: i64, start: usize) -> Result<Datatype> {
        if let Some(first) = self.defined.get(&number) {
            let column = first.column;
            return Err(error(start, ParseProblem::Redefined { number, column }));
        }
        // A definition at the depth limit is valid if it has no children, such as an empty struct.
        if self.depth + 1 > Datatype::MAX_DEPTH {
            return Err(error(start, ParseProblem::TooDeep));
        }
        self.defined.insert(number, Definition { column: start + 1, datatype: None });
        self.depth += 1;
        self.expect('(')?;
        let datatype = self.description()?;
        self.expect(')')?;
        self.depth -= 1;
        let known = Definition { column: start + 1, datatype: Some(datatype.clone()) };
        self.defined.insert(number, known);
        Ok(datatype)
    }

    fn reference(&self, number: i64, start: usize) -> Result<Datatype> {
        match self.defined.get(&number) {
            Some(Definition { datatype: Some(datatype), .. }) => Ok(datatype.clone()),
            Some(&Definition { column, datatype: None }) => {
                Err(error(start, ParseProblem::Cycle { number, column }))
            }
            None => Err(error(start, ParseProblem::Undefined(number))),
        }
    }

    fn description(&mut self) -> Result<Datatype> {
        let start = self.at;
        let made = match self.word() {
            count if count.starts_with(|c: char| c.is_ascii_digit()) => {
                self.at = start;
                self.contiguous()
            }
            word => match CONSTRUCTORS.iter().find(|(code, _)| *code == word) {
                Some((_, rule)) => rule(self),
                None => {
                    self.at = start;
                    let codes: String =
                        CONSTRUCTORS.iter().map(|(code, _)| format!(" {code}:")).collect();
                    Err(self.unexpected(&format!("a count or a constructor (one of{codes})")))
                }
            },
        };
        made?.map_err(|refused| error(start, ParseProblem::Refused(Box::new(refused))))
    }

    fn contiguous(&mut self) -> Result<Made> {
        let count = self.natural("count")?;
        Ok(Datatype::contiguous(count, &self.typeref()?))
    }

    fn structure(&mut self, make: fn(&[i64], &[i64], &[Datatype]) -> Made) -> Result<Made> {
        let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
        let mut children = Vec::new();
        self.list("members", |parser| {
            children.push(parser.typeref()?);
            lengths.push(parser.after('/')?.natural("blocklength")?);
            displacements.push(parser.after('/')?.integer("displacement")?);
            Ok(())
        })?;
        Ok(make(&lengths, &displacements, &children))
    }

    fn simple_struct(&mut self) -> Result<Made> {
        let (mut lengths, mut children) = (Vec::new(), Vec::new());
        self.list("members", |parser| {
            children.push(parser.typeref()?);
            lengths.push(parser.after('/')?.natural("blocklength")?);
            Ok(())
        })?;
        Ok(Datatype::simple_struct(&lengths, &children))
    }

    fn resized(&mut self) -> Result<Made> {
        let child = self.after(':')?.typeref()?;
        let lb = self.after(':')?.integer("lower bound")?;
        let extent = self.after(':')?.integer("extent")?;
        Ok(Datatype::resized(lb, extent, &child))
    }

    fn value_index(&mut self) -> Result<Made> {
        let value = self.after(':')?.typeref()?;
        let index = self.after(':')?.typeref()?;
        Ok(Datatype::value_index(&value, &index))
    }

    fn vector(&mut self, make: fn(i64, i64, i64, &Datatype) -> Made) -> Result<Made> {
        let child = self.after(':')?.typeref()?;
        let count = self.after(':')?.natural("count")?;
        let blocklength = self.after(':')?.natural("blocklength")?;
        let stride = self.after(':')?.integer("stride")?;
        Ok(make(count, blocklength, stride, &child))
    }

    fn indexed(&mut self, make: fn(&[i64], &[i64], &Datatype) -> Made) -> Result<Made> {
        let child = self.after(':')?.typeref()?;
        let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
        self.list("blocks", |parser| {
            lengths.push(parser.natural("blocklength")?);
            displacements.push(parser.after('/')?.integer("displacement")?);
            Ok(())
        })?;
        Ok(make(&lengths, &displacements, &child))
    }

    fn indexed_block(&mut self, make: fn(i64, &[i64], &Datatype) -> Made) -> Result<Made> {
        let child = self.after(':')?.typeref()?;
        let count = self.announced()?;
        let blocklength = self.after(':')?.natural("blocklength")?;
        let mut displacements = Vec::new();
        self.items("blocks", count, |parser| {
            displacements.push(parser.integer("displacement")?);
            Ok(())
        })?;
        Ok(make(blocklength, &displacements, &child))
    }

    fn subarray(&mut self) -> Result<Made> {
        let child = self.after(':')?.typeref()?;
        let order = self.order()?;
        let (mut sizes, mut subsizes, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        self.list("dimensions", |parser| {
            sizes.push(parser.natural("size")?);
            subsizes.push(parser.after('/')?.natural("subsize")?);
            starts.push(parser.after('/')?.natural("start")?);
            Ok(())
        })?;
        Ok(Datatype::subarray(&sizes, &subsizes, &starts, order, &child))
    }

    fn darray(&mut self) -> Result<Made> {
        let child = self.after(':')?.typeref()?;
        let order = self.order()?;
        let size = self.after(':')?.natural("size")?;
        let rank = self.after(':')?.natural("rank")?;
        let (mut gsizes, mut distribs) = (Vec::new(), Vec::new());
        let (mut dargs, mut psizes) = (Vec::new(), Vec::new());
        self.list("dimensions", |parser| {
            gsizes.push(parser.natural("gsize")?);
            let distribution = parser.after('/')?.distribution()?;
            distribs.push(distribution);
            dargs.push(parser.after('/')?.or_star(|parser| match distribution {
                // The constructor ignores this argument.
                Distribution::None => parser.integer("distribution argument"),
                _ => parser.natural("distribution argument"),
            })?);
            psizes.push(parser.after('/')?.natural("psize")?);
            Ok(())
        })?;
        Ok(Datatype::darray(size, rank, &gsizes, &distribs, &dargs, &psizes, order, &child))
    }

    fn real_kind(&mut self, make: fn(Option<u32>, Option<u32>) -> Made) -> Result<Made> {
        let precision = self.after(':')?.or_star(|parser| parser.digits("precision"))?;
        let range = self.after(':')?.or_star(|parser| parser.digits("range"))?;
        Ok(make(precision, range))
    }

    fn order(&mut self) -> Result<Order> {
        let order = match self.after(':')?.peek() {
            Some('C') => Order::C,
            Some('F') => Order::Fortran,
            _ => return Err(self.unexpected("an order (C or F)")),
        };
        self.at += 1;
        Ok(order)
    }

    fn distribution(&mut self) -> Result<Distribution> {
        let distribution = match self.peek() {
            Some('B') => Distribution::Block,
            Some('C') => Distribution::Cyclic,
            Some('N') => Distribution::None,
            _ => return Err(self.unexpected("a distribution (B, C or N)")),
        };
        self.at += 1;
        Ok(distribution)
    }

    // Lists.

    /// Parses `:n` and, if n isn't 0, `:item,item`.
    fn list(&mut self, of: &'static str, item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let count = self.announced()?;
        self.items(of, count, item)
    }

    /// Parses the stated length of a list. The list may have another length.
    fn announced(&mut self) -> Result<usize> {
        let start = self.after(':')?.at;
        let count = self.natural("length of the list")?;
        match usize::try_from(count) {
            Ok(count) if count <= MAX_LIST => Ok(count),
            _ => Err(error(start, ParseProblem::TooMany(count))),
        }
    }

    fn items(
        &mut self,
        of: &'static str,
        said: usize,
        mut item: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        for listed in 0..said {
            let separator = if listed == 0 { ':' } else { ',' };
            if self.peek() == Some(')') {
                return Err(error(self.at, ParseProblem::List { of, said, listed }));
            }
            self.expect(separator)?;
            item(self)?;
        }
        let another = if said == 0 { ':' } else { ',' };
        match self.peek() == Some(another) {
            true => Err(error(self.at, ParseProblem::List { of, said, listed: said + 1 })),
            false => Ok(()),
        }
    }

    // Numbers.

    /// Parses a number that isn't negative.
    fn natural(&mut self, quantity: &'static str) -> Result<i64> {
        let start = self.at;
        let number = self.integer(quantity)?;
        match number {
            0.. => Ok(number),
            _ => Err(self.number(start, quantity, "is negative: it has to be zero or more")),
        }
    }

    fn digits(&mut self, quantity: &'static str) -> Result<u32> {
        let start = self.at;
        let number = self.natural(quantity)?;
        u32::try_from(number).map_err(|_| self.number(start, quantity, "is larger than any kind's"))
    }

    fn integer(&mut self, quantity: &'static str) -> Result<i64> {
        let start = self.at;
        let signed = matches!(self.peek(), Some('-' | '+'));
        self.at += usize::from(signed);
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            self.at = start;
            return Err(self.unexpected(&format!("a number ({quantity})")));
        }
        self.at += digits;
        let text = &self.text[start..self.at];
        let problem = match text.as_bytes() {
            [b'+', ..] => "has a plus sign: leave it out",
            [b'-', b'0'] => "has a sign: write 0",
            [b'0', _, ..] | [b'-', b'0', ..] => "has a leading zero: leave it out",
            _ => match text.parse() {
                Ok(number) => return Ok(number),
                Err(_) => "does not fit 64 bits",
            },
        };
        Err(self.number(start, quantity, problem))
    }

    fn or_star<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Option<T>> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(None)
            }
            _ => item(self).map(Some),
        }
    }

    // Characters.

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes the longest sequence of letters and digits.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        self.at += length;
        &rest[..length]
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        match self.peek() {
            Some(found) if found == wanted => {
                self.at += 1;
                Ok(())
            }
            _ => Err(self.unexpected(&format!("`{wanted}`"))),
        }
    }

    /// Expects a character and continues after it.
    fn after(&mut self, separator: char) -> Result<&mut Self> {
        self.expect(separator)?;
        Ok(self)
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = match self.peek() {
            None => "the end of the text".to_string(),
            Some(c) if c.is_whitespace() => "a blank: the notation has none".to_string(),
            Some(c) if c.is_ascii_alphanumeric() => {
                let word = self.rest().bytes().take_while(u8::is_ascii_alphanumeric).count();
                format!("`{}`", excerpt(&self.rest()[..word]))
            }
            Some(c) => format!("`{}`", c.escape_debug()),
        };
        error(self.at, ParseProblem::Unexpected { expected: expected.to_string(), found })
    }

    /// The error for the number that was just read and starts at `start`.
    fn number(&self, start: usize, quantity: &'static str, problem: &'static str) -> ParseError {
        let text = excerpt(&self.text[start..self.at]);
        error(start, ParseProblem::Number { what: quantity, text, problem })
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An excerpt for errors, since a hostile text may be long.
fn excerpt(text: &str) -> String {
    crate::excerpt::excerpt(&text, 40)
}

/// The error at an index; its column is one more.
fn error(at: usize, problem: ParseProblem) -> ParseError {
    ParseError { column: at + 1, problem }
}
