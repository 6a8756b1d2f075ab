//! The arguments of calls, made from an input, and the handles that calls have returned.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::REACH;
use crate::table::{self, COMM_SELF, COMM_WORLD, Call, Parameter, Way};

/// The room of an argument that is an array, text or result.
const ROOM: usize = 16 << 10;
/// The most elements of an array.
const LONGEST: i64 = 8;
/// The memory that buffers lie in the middle of.
const ARENA: usize = 1 << 20;

const NULL: &[(&str, usize)] = &[
    ("comm", 0x100),
    ("win", 0x110),
    ("type", 0x200),
    ("group", 0x108),
    ("info", 0x130),
    ("op", 0x20),
    ("errh", 0x140),
    ("request", 0x180),
    ("message", 0x128),
    ("session", 0x120),
    ("file", 0x118),
];

const PREDEFINED: &[(&str, &[usize])] = &[
    ("comm", &[COMM_WORLD, COMM_SELF]),
    // INT, LONG, DOUBLE, CHAR, BYTE, DOUBLE_INT, LONG_DOUBLE, SHORT, 2INT, C_BOOL, PACKED
    ("type", &[0x209, 0x20a, 0x214, 0x243, 0x247, 0x229, 0x220, 0x208, 0x22b, 0x238, 0x207]),
    ("group", &[0x109]),
    ("info", &[0x131]),
    // SUM, MAX, BXOR, LAND, MAXLOC, REPLACE, NO_OP
    ("op", &[0x21, 0x23, 0x2a, 0x30, 0x39, 0x3c, 0x3d]),
    ("errh", &[0x143]),
    ("message", &[0x129]),
];

const TEXTS: [&[u8]; 10] = [
    b"\0",
    b"a\0",
    b"external32\0",
    b"mpi://WORLD\0",
    b"mpi://SELF\0",
    b"no_locks\0",
    b"true\0",
    b"mpi_minimum_memory_alignment\0",
    b"target_types\0",
    b"\xff\xfe not UTF-8\0",
];

/// The start of the arena, which stays: windows that can't be freed go on to use it.
fn arena() -> *mut u8 {
    static MADE: OnceLock<usize> = OnceLock::new();
    let start = MADE.get_or_init(|| vec![0u8; ARENA].leak().as_mut_ptr().expose_provenance());
    std::ptr::with_exposed_provenance_mut(*start)
}

/// A program in C, as far as an input describes it.
pub struct Program<'a> {
    bytes: &'a [u8],
    /// The state of the generator that goes on where the bytes end.
    random: u64,
    /// The handles that calls returned, freed ones among them, by their kinds.
    handles: BTreeMap<&'static str, Vec<usize>>,
    keyvals: Vec<i64>,
    rooms: Vec<Vec<u8>>,
    /// Memory of MPI_Alloc_mem.
    memory: Vec<usize>,
    /// Whether the call gets predefined types, and may get null or MPI_IN_PLACE as buffers.
    is_plain: bool,
}

impl<'a> Program<'a> {
    pub fn new(bytes: &'a [u8]) -> Program<'a> {
        let handles = BTreeMap::new();
        let (keyvals, rooms, memory) = (Vec::new(), Vec::new(), Vec::new());
        // FNV-1a.
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let random = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step) | 1;
        Program { bytes, random, handles, keyvals, rooms, memory, is_plain: false }
    }

    /// The next byte.
    fn choice(&mut self) -> usize {
        if let Some((first, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            return usize::from(*first);
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32) as usize % 256
    }

    /// The number of a function.
    pub fn number(&mut self) -> usize {
        self.choice() + 256 * self.choice()
    }

    pub fn call(&mut self, call: &Call) {
        self.is_plain = self.choice() % 4 == 0;
        self.rooms.clear();
        let arguments: Vec<i64> =
            call.parameters.iter().map(|parameter| self.argument(call, parameter)).collect();
        let code = (call.function)(&arguments);
        assert!(table::is_known(code), "{} returned {code}", call.name);
        for (parameter, argument) in call.parameters.iter().zip(&arguments) {
            self.take(parameter, *argument);
        }
        if call.name == "MPI_Alloc_mem" && arguments[2] != 0 {
            let place: *const usize = std::ptr::with_exposed_provenance(arguments[2] as usize);
            // SAFETY: the argument was a room with an address.
            self.memory.push(unsafe { place.read_unaligned() });
        }
        if call.name == "MPI_Win_test" {
            let (group, win) = (self.handle("group"), self.handle("win"));
            table::expose(group, win);
        }
    }

    /// Keeps what a call has written to its results.
    fn take(&mut self, parameter: &Parameter, argument: i64) {
        if parameter.way == Way::In || argument == 0 {
            return;
        }
        let place: *const usize = std::ptr::with_exposed_provenance(argument as usize);
        if parameter.kind == "keyval" {
            // SAFETY: the argument was a room with a number.
            self.keyvals.push(i64::from(unsafe { place.cast::<i32>().read_unaligned() }));
        }
        if !parameter.is_handle {
            return;
        }
        let many = if parameter.is_array { LONGEST as usize } else { 1 };
        for at in 0..many {
            // SAFETY: the argument was a room with so many handles.
            let handle = unsafe { place.add(at).read_unaligned() };
            let known = self.handles.entry(parameter.kind).or_default();
            if handle >= 4096 && !known.contains(&handle) {
                known.push(handle);
                if parameter.kind == "win" {
                    table::quiet(handle);
                }
            }
        }
    }

    /// A handle of a kind: one that a call has returned, a predefined one, null, or a wrong one.
    fn handle(&mut self, kind: &str) -> usize {
        let choice = self.choice();
        let predefined = PREDEFINED.iter().find(|row| row.0 == kind).map_or(&[][..], |row| row.1);
        let known = self.handles.get(kind).map_or(&[][..], Vec::as_slice);
        let pick = choice / 8;
        match choice {
            0..8 => NULL.iter().find(|row| row.0 == kind).map_or(0, |row| row.1),
            8..12 => [0, 1, 0x101, 0x209, 0xfff, 0x1000, 0x1001, usize::MAX][self.choice() % 8],
            12..16 => {
                let pick = self.choice();
                let all: Vec<usize> = self.handles.values().flatten().copied().collect();
                all.get(pick % all.len().max(1)).copied().unwrap_or(0)
            }
            16..80 if !predefined.is_empty() => predefined[pick % predefined.len()],
            _ if !known.is_empty() => known[pick % known.len()],
            _ if !predefined.is_empty() => predefined[pick % predefined.len()],
            _ => NULL.iter().find(|row| row.0 == kind).map_or(0, |row| row.1),
        }
    }

    /// A type for a call with buffers, whose data lie within the arena.
    fn near_type(&mut self) -> usize {
        let datatype = self.handle("type");
        let is_near = table::reach(datatype).is_none_or(|reach| reach <= REACH);
        let predefined = PREDEFINED.iter().find(|row| row.0 == "type").map_or(&[][..], |row| row.1);
        let is_predefined = predefined.contains(&datatype);
        match is_near && (is_predefined || !self.is_plain) {
            true => datatype,
            false => predefined[datatype % predefined.len()],
        }
    }

    /// Zeroed memory, whose address it returns.
    fn room(&mut self) -> usize {
        let mut room = vec![0; ROOM];
        let address = room.as_mut_ptr().expose_provenance();
        self.rooms.push(room);
        address
    }

    /// Writes numbers or handles to a room.
    fn fill(&mut self, address: usize, element: usize, values: &[i64]) {
        let room: *mut u8 = std::ptr::with_exposed_provenance_mut(address);
        for (at, value) in values.iter().enumerate() {
            let bytes = value.to_ne_bytes();
            // SAFETY: the address is that of a room, which has place for all values.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), room.add(at * element), element)
            };
        }
    }

    fn buffer(&mut self) -> i64 {
        let choice = self.choice();
        match choice {
            0..8 if self.is_plain => (choice % 2) as i64,
            _ => (arena().expose_provenance() + ARENA / 2 + choice) as i64,
        }
    }

    /// A number. Those of calls with arrays or buffers are as small as these.
    fn small(&mut self, is_bound: bool) -> i64 {
        const ANY: [i64; 16] = [
            -1,
            i32::MAX as i64,
            i32::MIN as i64,
            1 << 20,
            1 << 40,
            i64::MAX,
            i64::MIN,
            64,
            127,
            255,
            1024,
            4096,
            16384,
            211,
            301,
            302,
        ];
        let choice = self.choice();
        match choice {
            0..224 => (choice % 14) as i64 - 1,
            _ if is_bound => (choice % 12) as i64 - 3,
            _ => ANY[choice % 16],
        }
    }

    fn number_of(&mut self, call: &Call, parameter: &Parameter) -> i64 {
        let has_data = call.has("buf") && !call.has("win");
        let has_array = call.parameters.iter().any(|parameter| parameter.is_array);
        match parameter.kind {
            "count" | "number" | "length" | "disp" | "bytes" if has_data || has_array => {
                self.small(true)
            }
            "count" | "number" if call.has("buf") => self.small(true),
            "large" if has_data => self.small(true),
            // Memory of windows and of MPI_Alloc_mem.
            "aint" if call.has("ptr") || call.has("buf") && call.name.contains("Win_") => {
                (self.choice() * 16) as i64 - 16
            }
            // Room for text.
            "int" if call.has("text") => (self.choice() * 8) as i64 - 8,
            "keyval" => {
                let pick = self.choice();
                self.keyvals
                    .get(pick % (self.keyvals.len() + 2))
                    .copied()
                    .unwrap_or(501 + pick as i64)
            }
            "rank" | "root" => match self.choice() {
                0..192 => 0,
                192..216 => -3,
                other => (other % 8) as i64 - 5,
            },
            "assert" => match self.choice() {
                0..224 => 0,
                other => 1 << (other % 20),
            },
            "int" if parameter.name == "lock_type" => 301 + (self.choice() % 9 / 4) as i64,
            "int" if parameter.name == "order" => 12 + (self.choice() % 9 / 4) as i64 * 3,
            "int" if parameter.name == "split_type" => 220 + (self.choice() % 6) as i64,
            "int" if parameter.name == "typeclass" => 191 + (self.choice() % 5) as i64,
            "int" if has_array => self.small(true),
            "double" => 0,
            _ => self.small(false),
        }
    }

    fn argument(&mut self, call: &Call, parameter: &Parameter) -> i64 {
        let kind = parameter.kind;
        let is_typed = kind == "type" && (call.has("buf") || call.has("win"));
        match kind {
            "buf" => return self.buffer(),
            "argc" | "argv" | "pargv" | "argvs" => return 0,
            _ if kind.contains("fn:") => {
                return table::function(kind) * i64::from(self.choice() % 8 != 0);
            }
            _ => {}
        }
        // One in 64 results is a null pointer.
        if parameter.way != Way::In && self.choice() % 64 == 0 {
            return 0;
        }
        match (kind, parameter.way) {
            ("text", Way::In) => {
                return TEXTS[self.choice() % TEXTS.len()].as_ptr().expose_provenance() as i64;
            }
            ("ptr", Way::In) => return self.choice() as i64,
            ("text" | "status" | "ptr", _) => {
                // An attribute's value is no place.
                let is_value = call.name.contains("set_attr") || call.name.contains("Attr_put");
                return if is_value { self.choice() as i64 } else { self.room() as i64 };
            }
            _ => {}
        }
        if !parameter.is_array && parameter.way == Way::In {
            return match (parameter.is_handle, is_typed) {
                (true, true) => self.near_type() as i64,
                (true, false) => self.handle(kind) as i64,
                _ => self.number_of(call, parameter),
            };
        }
        let room = self.room();
        if parameter.way != Way::Out {
            // The first, the last and the step of each range.
            let many = match (parameter.is_array, kind) {
                (false, _) => 1,
                (_, "triples") => 3 * LONGEST,
                _ => LONGEST,
            };
            let values: Vec<i64> = (0..many)
                .map(|_| match (parameter.is_handle, is_typed) {
                    (true, true) => self.near_type() as i64,
                    (true, false) => self.handle(kind) as i64,
                    _ => self.number_of(call, parameter),
                })
                .collect();
            let element = if kind == "triples" { 4 } else { parameter.element };
            self.fill(room, element, &values);
        }
        room as i64
    }

    /// Frees all that is left, so that inputs don't depend on each other.
    pub fn end(mut self) {
        let mut handles = std::mem::take(&mut self.handles);
        let mut of = |kind: &str| handles.remove(kind).unwrap_or_default();
        of("request").into_iter().for_each(table::end_request);
        let comms = of("comm");
        for win in of("win") {
            table::end_window(win);
        }
        for kind in ["type", "group", "info", "op", "errh", "session"] {
            of(kind).into_iter().for_each(|handle| table::free(kind, handle));
        }
        for comm in [COMM_SELF, COMM_WORLD].into_iter().chain(comms.iter().copied()) {
            table::drain(comm, arena());
        }
        comms.into_iter().for_each(|comm| table::free("comm", comm));
        self.memory.into_iter().for_each(table::free_memory);
    }
}
