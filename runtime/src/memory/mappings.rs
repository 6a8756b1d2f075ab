//! What the system lists of this process: its mappings, and its threads.

use std::fs;

/// The system's table of mappings.
pub(crate) struct Mappings(String);

/// A row of the table.
pub(super) struct Row<'a> {
    /// The address of its first byte, and of the byte after its last one.
    pub first: usize,
    pub end: usize,
    access: &'a str,
    /// The byte of its file that is mapped at its start.
    pub offset: u64,
    inode: &'a str,
    name: &'a str,
}

impl Mappings {
    /// Reads the table. It is empty where the system has none.
    pub(crate) fn read() -> Mappings {
        Mappings(fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.0.lines().filter_map(Row::read)
    }

    /// Whether valgrind runs the process: it maps libraries of its own.
    pub(super) fn are_of_valgrind(&self) -> bool {
        self.rows().any(|row| row.name.contains("/vgpreload_"))
    }

    /// The parts of a memory that are mapped in some way, in their order: the address and the
    /// length of each.
    pub(super) fn parts<'a>(
        &'a self,
        start: usize,
        len: usize,
        is: impl Fn(&Row<'a>) -> bool,
    ) -> impl Iterator<Item = (usize, usize)> {
        let after = start.saturating_add(len);
        self.rows().filter(move |row| row.end > start && row.first < after && is(row)).map(
            move |row| {
                let first = row.first.max(start);
                (first, row.end.min(after) - first)
            },
        )
    }

    /// Whether all bytes of a memory are mapped in some way.
    pub(super) fn have<'a>(
        &'a self,
        start: usize,
        len: usize,
        is: impl Fn(&Row<'a>) -> bool,
    ) -> bool {
        self.parts(start, len, is).map(|(_, len)| len).sum::<usize>() == len
    }
}

impl<'a> Row<'a> {
    /// Reads `first-end access offset device inode name`, where the name may be missing.
    fn read(line: &'a str) -> Option<Row<'a>> {
        let mut fields = line.split_ascii_whitespace();
        let (first, end) = fields.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let (first, end, access) = (address(first)?, address(end)?, fields.next()?);
        let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
        let (inode, name) = (fields.nth(1)?, fields.next().unwrap_or_default());
        Some(Row { first, end, access, offset, inode, name })
    }

    /// Whether it is private, anonymous, and not of a stack.
    pub(super) fn is_plain(&self) -> bool {
        self.access == "rw-p" && self.inode == "0" && !self.name.starts_with("[stack")
    }

    /// Whether it is the memory that the C library shares out in small pieces.
    pub(super) fn is_heap(&self) -> bool {
        self.name == "[heap]"
    }

    /// Whether it is shared.
    pub(super) fn is_shared(&self) -> bool {
        self.access.ends_with('s')
    }

    /// Whether it can be read and written.
    pub(super) fn is_writable(&self) -> bool {
        self.access.starts_with("rw")
    }
}

/// Whether no thread of the program's but this one exists. This library's are known by their names.
pub(super) fn is_alone() -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return false };
    let others = threads.filter(|thread| {
        let name = thread.as_ref().ok().map(|thread| thread.path().join("comm"));
        let name = name.and_then(|name| fs::read(name).ok()).unwrap_or_default();
        !name.starts_with(b"longshore-")
    });
    // The name of this thread is the program's.
    others.count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_memory_are_found_by_their_mappings() {
        let mappings = Mappings(
            "1000-3000 rw-p 00000000 00:00 0 [heap]\n\
             3000-4000 rw-s 0000a000 00:01 77 /memfd:longshore (deleted)\n\
             5000-6000 rw-p 00000000 00:00 0\n\
             6000-7000 rw-p 00000000 00:00 0 [stack]\n"
                .to_owned(),
        );
        let plain = |start, len| mappings.have(start, len, Row::is_plain);
        assert!(plain(0x1000, 0x2000) && plain(0x2ff0, 0x10) && plain(0x5800, 0x800));
        assert!(!plain(0x1000, 0x2001) && !plain(0x4fff, 2) && !plain(0x5800, 0x801));
        let shared: Vec<_> = mappings.parts(0x2000, 0x4000, Row::is_shared).collect();
        assert_eq!(shared, [(0x3000, 0x1000)]);
        let files: Vec<_> = mappings.rows().map(|row| (row.offset, row.is_heap())).collect();
        assert_eq!(files, [(0, true), (0xa000, false), (0, false), (0, false)]);
    }
}
