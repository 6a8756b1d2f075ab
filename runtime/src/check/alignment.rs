//! Items that aren't aligned to their type: mostly displacements that are counted in other units
//! than the window's.

use super::Line;
use super::site;
use crate::error::call_name;

/// All alignments of items divide this number of bytes. Where a rank's memory begins is known
/// modulo it.
pub(crate) const LINE: u64 = 64;

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
    /// The bytes from the last multiple of [`LINE`] to the target's memory.
    pub lead: i64,
    /// The true lower bound of the type, where its first item in memory begins.
    pub first: i64,
    /// The alignment of the items, and the extent of the type.
    pub align: i64,
    pub extent: i64,
}

impl Placed<'_> {
    /// Whether a multiple of `unit` bytes, added to the address of the memory and of the first item
    /// in the type, is an aligned address.
    fn is_aligned_by(&self, unit: i64) -> Option<bool> {
        let byte = self.displacement.checked_mul(unit)?.checked_add(self.first)?;
        Some(byte.checked_add(self.lead)? % self.align == 0)
    }

    /// Whether the displacement moves the first item off its alignment. A type, or memory, whose
    /// items are unaligned at displacement 0 is made so on purpose.
    fn is_wrong(&self) -> bool {
        let is_known = self.align > 1 && LINE as i64 % self.align == 0;
        let moved = self.displacement.checked_mul(self.unit.into());
        let moves = moved.is_some_and(|moved| moved % self.align != 0);
        is_known && moves && self.is_aligned_by(self.unit.into()) == Some(false)
    }

    /// The kind of the report, and its text, if the items aren't aligned.
    pub(crate) fn report(&self) -> Option<(String, String)> {
        if !self.is_wrong() {
            return None;
        }
        let Placed { call, line, ranks, window, item, displacement, .. } = *self;
        let Placed { unit, lead, first, align, extent, .. } = *self;
        let byte = displacement.checked_mul(unit.into())?.checked_add(first)?;
        let site = site(line);
        let units = if unit == 1 { "of 1 byte".to_owned() } else { format!("of {unit} bytes") };
        let (memory, lead) = match lead % align {
            0 => (String::new(), 0),
            lead => (format!(" of memory that begins {lead} bytes after a multiple of it"), lead),
        };
        let remedy = match self.is_aligned_by(extent) {
            Some(true) if extent != i64::from(unit) => format!(
                "if it counts elements, make the window with displacement unit {extent}, which makes it byte {}, \
                 or multiply it by {extent}",
                displacement * extent + first
            ),
            _ if lead == 0 => format!("use a displacement whose byte is a multiple of {align}"),
            _ => format!(
                "use a displacement whose byte is {} more than a multiple of {align}",
                align - lead
            ),
        };
        let call = call_name(call, true);
        let text = format!(
            "check: rule 14, window {window} of rank {}: an item that isn't aligned to its type\n\
             check:   {call} by rank {} at {site}: {item}, aligned to {align} bytes, at byte {byte}{memory}\n\
             check:   displacement {displacement} is in units {units}; {remedy}\n",
            ranks.1, ranks.0
        );
        Some((format!("14 {call} {site}"), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report on a put of MPI_DOUBLE into memory that begins at byte `lead` of a line, with a
    /// type whose first item begins at byte `first`.
    fn report_at(displacement: i64, unit: u32, lead: i64, first: i64) -> Option<String> {
        let (ranks, window, align, extent) = ((0, 1), 3, 8, 8);
        let (call, line, item) = ("put", None, "MPI_DOUBLE");
        let placed = Placed {
            call,
            line,
            ranks,
            window,
            item,
            displacement,
            unit,
            lead,
            first,
            align,
            extent,
        };
        placed.report().map(|(_, text)| text)
    }

    fn report(displacement: i64, unit: u32) -> Option<String> {
        report_at(displacement, unit, 0, 0)
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

    #[test]
    fn a_displacement_may_be_unaligned_if_the_first_item_is_not() {
        // The member at byte 4 of each struct of 12 bytes, and memory at byte 4 of a line.
        assert_eq!(report_at(1, 12, 0, 4), None);
        assert_eq!(report_at(4, 1, 0, -4), None);
        assert_eq!(report_at(4, 1, 4, 0), None);
        // Neither type nor memory is aligned, whatever the displacement.
        assert_eq!(report_at(0, 1, 4, 0), None);
        assert_eq!(report_at(8, 1, 0, 4), None);
        let text = report_at(5, 1, 0, 4).unwrap();
        assert!(text.contains(", at byte 9\n"), "{text}");
        let text = report_at(3, 1, 4, 0).unwrap();
        assert!(text.contains(" at byte 3 of memory that begins 4 bytes after a multiple of it\n"));
        assert!(text.ends_with("; use a displacement whose byte is 4 more than a multiple of 8\n"));
    }
}
