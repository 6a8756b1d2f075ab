//! Descriptors: the text of an architecture in flat forms and greetings.
//!
//! The fields, joined by commas, have this order. A width is written as `size.alignment`:
//!
//! ```text
//! e=l,s2.2,i4.4,l8.8,ll8.8,p8.8,w4.4,f4.4,d8.8,ld16.16x87,b1.1,
//! I4.4,R4.4,D8.8,L4.4t1,q16,c=s,cs=ascii,sr=natural          (all on one line)
//! ```
//!
//! - byte order;
//! - short, int, long, long long, pointer, wchar_t, float, double;
//! - long double, with its format;
//! - _Bool;
//! - Fortran's INTEGER, REAL, DOUBLE PRECISION, LOGICAL with its representation of true;
//! - the alignment of other 16-byte scalars;
//! - the sign of char, the charset, the struct rule.
//!
//! external32 and XDR are described by their names.

use super::{Architecture, ByteOrder, FloatFormat, Fortran, StructRule, Width};
use crate::error::{Error, Result};

const FORMATS: [(FloatFormat, &str); 5] = [
    (FloatFormat::X87, "x87"),
    (FloatFormat::M68k, "x87be"),
    (FloatFormat::Binary128, "q128"),
    (FloatFormat::DoubleDouble, "dd128"),
    (FloatFormat::Binary64, "d64"),
];

/// The length limit of a descriptor; the known ones have about 120 bytes. It bounds errors that
/// quote a peer's descriptor.
const LONGEST: usize = 400;

impl Architecture {
    /// The descriptor. Equal representations have equal descriptors.
    ///
    /// ```
    /// use shipable::Architecture;
    /// let text = Architecture::S390X.descriptor();
    /// assert!(text.starts_with("e=b,s2.2,i4.4,l8.8"));
    /// assert_eq!(Architecture::from_descriptor(&text)?, Architecture::S390X);
    /// # Ok::<(), shipable::Error>(())
    /// ```
    pub fn descriptor(&self) -> String {
        for named in [Architecture::EXTERNAL32, Architecture::XDR] {
            if *self == named {
                return named.name.to_string();
            }
        }
        let format = FORMATS.iter().find(|(format, _)| *format == self.long_double_format);
        let width = |code: &str, width: Width| format!("{code}{}.{}", width.size, width.align);
        let fortran = &self.fortran;
        [
            format!("e={}", if self.order == ByteOrder::Little { "l" } else { "b" }),
            width("s", self.short),
            width("i", self.int),
            width("l", self.long),
            width("ll", self.long_long),
            width("p", self.pointer),
            width("w", self.wchar),
            width("f", self.float),
            width("d", self.double),
            width("ld", self.long_double) + format.map_or("?", |(_, name)| name),
            width("b", self.bool),
            width("I", fortran.integer),
            width("R", fortran.real),
            width("D", fortran.double_precision),
            width("L", fortran.logical) + &format!("t{}", fortran.truth),
            format!("q{}", self.quad_align),
            format!("c={}", if self.char_signed { "s" } else { "u" }),
            "cs=ascii".to_string(),
            match self.rule {
                StructRule::Natural => "sr=natural".to_string(),
                StructRule::Power => "sr=power".to_string(),
            },
        ]
        .join(",")
    }

    /// Parses a descriptor, which may come from a hostile peer or a damaged file.
    ///
    /// # Errors
    /// [`Error::Descriptor`] for a field that is missing, unknown or out of range, such as an
    /// unknown float format or charset, or a size that no type has.
    pub fn from_descriptor(text: &str) -> Result<Architecture> {
        for named in [Architecture::EXTERNAL32, Architecture::XDR] {
            if text == named.name {
                return Ok(named);
            }
        }
        if text.len() > LONGEST {
            let descriptor = text.chars().take(LONGEST / 4).collect::<String>() + "...";
            let problem = format!("{} bytes, where none has more than {LONGEST}", text.len());
            return Err(Error::Descriptor { descriptor, problem });
        }
        let read = Fields(text.split(',')).architecture().and_then(|described| {
            described.validate()?;
            Ok(described)
        });
        let described =
            read.map_err(|problem| Error::Descriptor { descriptor: text.to_string(), problem })?;
        let known = Architecture::all().iter().find(|known| **known == described);
        Ok(known.copied().unwrap_or(described))
    }

    /// Checks that the crate supports these sizes and alignments.
    pub(super) fn validate(&self) -> Result<(), String> {
        let fortran = &self.fortran;
        let check = |name: &str, width: Width, sizes: &[u8]| {
            // Array elements must be aligned, and lie without gaps.
            let aligned = width.align.is_power_of_two() && width.size % width.align == 0;
            match sizes.contains(&width.size) && aligned {
                true => Ok(()),
                false => Err(format!("{name} of {} bytes aligned to {}", width.size, width.align)),
            }
        };
        let integers = &[1, 2, 4, 8, 16];
        check("short", self.short, &[2, 4, 8])?;
        check("int", self.int, &[2, 4, 8])?;
        check("long", self.long, &[4, 8])?;
        check("long long", self.long_long, &[8])?;
        check("pointer", self.pointer, &[4, 8])?;
        check("wchar_t", self.wchar, &[1, 2, 4])?;
        check("float", self.float, &[4])?;
        check("double", self.double, &[8])?;
        check("_Bool", self.bool, &[1, 2, 4])?;
        check("INTEGER", fortran.integer, integers)?;
        check("REAL", fortran.real, &[4, 8, 16])?;
        check("DOUBLE PRECISION", fortran.double_precision, &[8, 16])?;
        check("LOGICAL", fortran.logical, integers)?;
        check("16-byte scalar", Width { size: 16, align: self.quad_align }, &[16])?;
        let ranked = |[less, more]: [&str; 2], narrow: Width, wide: Width| match narrow.size
            <= wide.size
        {
            true => Ok(()),
            false => Err(format!("{less} of {} bytes and {more} of {}", narrow.size, wide.size)),
        };
        ranked(["a short", "an int"], self.short, self.int)?;
        ranked(["an int", "a long"], self.int, self.long)?;
        let long_double: (&[u8], Option<ByteOrder>) = match self.long_double_format {
            FloatFormat::X87 => (&[12, 16], Some(ByteOrder::Little)),
            FloatFormat::M68k => (&[12], Some(ByteOrder::Big)),
            FloatFormat::Binary128 | FloatFormat::DoubleDouble => (&[16], None),
            FloatFormat::Binary64 => (&[8], None),
            FloatFormat::Binary32 | FloatFormat::Binary16 | FloatFormat::Bfloat16 => (&[], None),
        };
        check("long double", self.long_double, long_double.0)?;
        if long_double.1.is_some_and(|order| order != self.order) {
            return Err("a long double of the other byte order".to_string());
        }
        let size = u32::from(fortran.logical.size);
        if fortran.truth == 0 || (size < 8 && fortran.truth >> (8 * size) != 0) {
            return Err(format!(".TRUE. as {} in a LOGICAL of {size} bytes", fortran.truth));
        }
        Ok(())
    }
}

/// The fields of a descriptor that aren't read yet.
struct Fields<'a>(std::str::Split<'a, char>);

impl<'a> Fields<'a> {
    fn architecture(mut self) -> Result<Architecture, String> {
        let order = match self.next("e=")? {
            "l" => ByteOrder::Little,
            "b" => ByteOrder::Big,
            other => return Err(format!("byte order `{other}`: expected l or b")),
        };
        let [short, int, long, long_long, pointer, wchar, float, double] =
            self.widths(["s", "i", "l", "ll", "p", "w", "f", "d"])?;
        let (long_double, format) = self.width("ld", |c| c.is_ascii_lowercase())?;
        let (long_double_format, _) = *FORMATS
            .iter()
            .find(|(_, name)| *name == format)
            .ok_or_else(|| format!("long double format `{format}` is not known here"))?;
        let [bool, integer, real, double_precision] = self.widths(["b", "I", "R", "D"])?;
        let (logical, truth) = self.width("L", |c| c == 't')?;
        let fortran = Fortran {
            integer,
            real,
            double_precision,
            logical,
            truth: number(truth.strip_prefix('t').unwrap_or(truth))?,
        };
        let quad_align = number(self.next("q")?)?;
        let char_signed = match self.next("c=")? {
            "s" => true,
            "u" => false,
            other => return Err(format!("sign of char `{other}`: expected s or u")),
        };
        match self.next("cs=")? {
            "ascii" => {}
            other => return Err(format!("charset `{other}` is not known here, only ascii is")),
        }
        let rule = match self.next("sr=")? {
            "natural" => StructRule::Natural,
            "power" => StructRule::Power,
            other => return Err(format!("struct rule `{other}`: expected natural or power")),
        };
        match self.0.next() {
            Some(more) => Err(format!("`{more}` after the last field")),
            None => Ok(Architecture {
                name: "described",
                order,
                char: Width { size: 1, align: 1 },
                short,
                int,
                long,
                long_long,
                pointer,
                wchar,
                float,
                double,
                long_double,
                long_double_format,
                bool,
                fortran,
                quad_align,
                char_signed,
                rule,
            }),
        }
    }

    fn next(&mut self, code: &str) -> Result<&'a str, String> {
        let field = self.0.next().ok_or_else(|| format!("field `{code}` is missing"))?;
        field.strip_prefix(code).ok_or_else(|| format!("`{field}` where `{code}` is expected"))
    }

    /// Reads widths without a suffix.
    fn widths<const N: usize>(&mut self, codes: [&str; N]) -> Result<[Width; N], String> {
        let mut widths = [Width { size: 0, align: 0 }; N];
        for (width, code) in widths.iter_mut().zip(codes) {
            (*width, _) = self.width(code, |_| false)?;
        }
        Ok(widths)
    }

    /// Reads a width, and the suffix from the first character that `suffix` accepts.
    fn width(
        &mut self,
        code: &str,
        suffix: impl Fn(char) -> bool,
    ) -> Result<(Width, &'a str), String> {
        let field = self.next(code)?;
        let (numbers, rest) = field.split_at(field.find(suffix).unwrap_or(field.len()));
        let (size, align) = numbers
            .split_once('.')
            .ok_or_else(|| format!("`{code}{field}` is not size.alignment"))?;
        Ok((Width { size: number(size)?, align: number(align)? }, rest))
    }
}

fn number<T: std::str::FromStr + ToString>(digits: &str) -> Result<T, String> {
    let value: T = digits.parse().map_err(|_| format!("`{digits}` is not a number in range"))?;
    match value.to_string() == digits {
        true => Ok(value),
        false => Err(format!("`{digits}` is not in plain decimal")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_round_trip() {
        for architecture in Architecture::all() {
            let text = architecture.descriptor();
            assert_eq!(Architecture::from_descriptor(&text), Ok(*architecture), "{text}");
        }
    }

    #[test]
    fn invalid_descriptors_are_refused() {
        let good = Architecture::X86_64.descriptor();
        let bad = [
            ("e=l", "e=m", "byte order"),
            ("ld16.16x87", "ld16.16vax", "not known"),
            ("ld16.16x87", "ld8.8x87", "long double of 8 bytes"),
            ("e=l", "e=b", "other byte order"),
            ("cs=ascii", "cs=ebcdic", "charset"),
            ("i4.4", "i3.4", "int of 3 bytes"),
            ("i4.4", "i4.3", "aligned to 3"),
            ("i4.4", "i4.8", "aligned to 8"),
            ("i4.4", "i+4.4", "plain decimal"),
            ("i4.4", "i4.4x", "not a number"),
            ("i4.4,", "", "is expected"),
            (",sr=natural", "", "missing"),
            ("sr=natural", "sr=natural,x", "after the last"),
            ("t1", "t0", ".TRUE."),
            ("t1", "t4294967296", ".TRUE."),
            ("t1", "tt1", "not a number"),
        ];
        for (from, to, says) in bad {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good);
            let error = Architecture::from_descriptor(&text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        let error = Architecture::from_descriptor(&"e=l,".repeat(1 << 20)).unwrap_err().to_string();
        assert!(error.len() < 400 && error.contains("4194304 bytes"), "{error}");
    }

    #[test]
    fn descriptors_of_unnamed_architectures_round_trip() {
        let fortran = Fortran { truth: 0xffff_ffff, ..*Architecture::X86_64.fortran() };
        let changed = Architecture::X86_64.with_fortran(fortran).unwrap();
        assert_ne!(changed, Architecture::X86_64);
        let read = Architecture::from_descriptor(&changed.descriptor()).unwrap();
        assert!(read.same_representation(&changed));
        assert_eq!(read.name(), "described");
    }
}
