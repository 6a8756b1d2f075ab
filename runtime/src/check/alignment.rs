//! Items that aren't aligned to their type: mostly displacements that are counted in other units
//! than the window's.

use super::Line;
use super::site;

/// An operation, as far as its alignment matters.
pub(crate) struct Placed<'a> {
    pub call: &'static str,
    pub line: Option<Line>,
    /// The origin and the target, numbered in the job.
    pub ranks: (u32, u32),
    pub window: u32,
    /// The predefined type of the items.
    pub item: &'a str,
    pub displacement: i64,
    /// The target's displacement unit.
    pub unit: u32,
    /// The alignment of the items, and the extent of the type.
    pub align: i64,
    pub extent: i64,
}

impl Placed<'_> {
    /// The byte of the window at which the first element begins, if its items aren't aligned there.
    fn byte(&self) -> Option<i64> {
        let byte = self.displacement.checked_mul(self.unit.into())?;
        (self.align > 1 && byte % self.align != 0).then_some(byte)
    }

    /// The kind of the report, and its text, if the items aren't aligned.
    pub(crate) fn report(&self) -> Option<(String, String)> {
        let byte = self.byte()?;
        let Placed { call, line, ranks, window, item, displacement, unit, align, extent } = *self;
        let site = site(line);
        let units = if unit == 1 { "of 1 byte".to_owned() } else { format!("of {unit} bytes") };
        let remedy = match displacement.checked_mul(extent) {
            Some(place) if place % align == 0 && extent != i64::from(unit) => format!(
                "if it counts elements, make the window with displacement unit {extent}, which makes it byte {place}, \
                 or multiply it by {extent}"
            ),
            _ => format!("use a displacement whose byte is a multiple of {align}"),
        };
        let text = format!(
            "check: rule 14, window {window} of rank {}: an item that isn't aligned to its type\n\
             check:   {call} by rank {} at {site}: {item}, aligned to {align} bytes, at byte {byte}\n\
             check:   displacement {displacement} is in units {units}; {remedy}\n",
            ranks.1, ranks.0
        );
        Some((format!("14 {call} {site}"), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(displacement: i64, unit: u32) -> Option<String> {
        let (ranks, window, align, extent) = ((0, 1), 3, 8, 8);
        let (call, line, item) = ("put", None, "MPI_DOUBLE");
        let placed = Placed { call, line, ranks, window, item, displacement, unit, align, extent };
        placed.report().map(|(_, text)| text)
    }

    #[test]
    fn a_displacement_in_elements_gets_the_unit_that_would_be_right() {
        assert_eq!(report(0, 1), None);
        assert_eq!(report(16, 1), None);
        assert_eq!(report(3, 8), None);
        let text = report(1, 1).unwrap();
        assert!(text.contains("MPI_DOUBLE, aligned to 8 bytes, at byte 1\n"), "{text}");
        assert!(text.contains("displacement 1 is in units of 1 byte; "), "{text}");
        assert!(text.contains("displacement unit 8, which makes it byte 8, "), "{text}");
    }
}
