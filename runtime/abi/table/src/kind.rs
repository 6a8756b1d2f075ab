//! The kinds of parameters: for each, its types in C and in Rust.

/// The version of a function: with counts that are ints, or with large counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `MPI_Send`.
    Int,
    /// `MPI_Send_c`.
    Large,
}

/// The kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    name: String,
    is_array: bool,
    may_be_null: bool,
    is_unchecked: bool,
}

/// A row for each kind of number: its types in C, and in Rust, of the two versions.
const NUMBERS: &[(&str, [&str; 2], [&str; 2])] = &[
    // Any int, and those that are checked or converted in a way of their own.
    ("int", ["int", "int"], ["c_int", "c_int"]),
    // The first, the last and the step of a range of ranks.
    ("triples", ["int", "int"], ["[c_int; 3]", "[c_int; 3]"]),
    ("flag", ["int", "int"], ["c_int", "c_int"]),
    ("rank", ["int", "int"], ["c_int", "c_int"]),
    ("root", ["int", "int"], ["c_int", "c_int"]),
    ("tag", ["int", "int"], ["c_int", "c_int"]),
    ("keyval", ["int", "int"], ["c_int", "c_int"]),
    ("assert", ["int", "int"], ["c_int", "c_int"]),
    // The length of an array, never negative.
    ("length", ["int", "int"], ["c_int", "c_int"]),
    // A count that is never negative, and a number that may be.
    ("count", ["int", "MPI_Count"], ["c_int", "Count"]),
    ("number", ["int", "MPI_Count"], ["c_int", "Count"]),
    // A displacement or its unit.
    ("disp", ["int", "MPI_Aint"], ["c_int", "Aint"]),
    ("bytes", ["MPI_Aint", "MPI_Count"], ["Aint", "Count"]),
    ("aint", ["MPI_Aint", "MPI_Aint"], ["Aint", "Aint"]),
    ("large", ["MPI_Count", "MPI_Count"], ["Count", "Count"]),
    ("offset", ["MPI_Offset", "MPI_Offset"], ["Count", "Count"]),
    ("double", ["double", "double"], ["f64", "f64"]),
    ("T_cb_safety", ["MPI_T_cb_safety", "MPI_T_cb_safety"], ["c_int", "c_int"]),
    ("T_source_order", ["MPI_T_source_order", "MPI_T_source_order"], ["c_int", "c_int"]),
];

/// The kinds of handles, with their types in C and in Rust.
const HANDLES: &[(&str, &str, &str)] = &[
    ("comm", "MPI_Comm", "Comm"),
    ("win", "MPI_Win", "Win"),
    ("type", "MPI_Datatype", "Type"),
    ("group", "MPI_Group", "Group"),
    ("info", "MPI_Info", "Info"),
    ("op", "MPI_Op", "Op"),
    ("errh", "MPI_Errhandler", "Errhandler"),
    ("request", "MPI_Request", "Request"),
    ("message", "MPI_Message", "Message"),
    ("session", "MPI_Session", "Session"),
    ("file", "MPI_File", "File"),
];

impl Kind {
    /// Parses a kind of a table: a name, `[]` for an array, `?` for a handle that may be null, `~`
    /// for a handle that is passed on unchecked.
    pub(crate) fn parse(text: &str) -> Kind {
        let (text, is_array) = match text.strip_suffix("[]") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (name, may_be_null) = match text.strip_suffix('?') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let (name, is_unchecked) = match name.strip_suffix('~') {
            Some(name) => (name, true),
            None => (name, false),
        };
        Kind { name: name.to_owned(), is_array, may_be_null, is_unchecked }
    }

    /// Its name in the table, such as `count`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is an array of its kind.
    pub fn is_array(&self) -> bool {
        self.is_array
    }

    /// Whether a null handle is a legal value.
    pub fn may_be_null(&self) -> bool {
        self.may_be_null
    }

    /// Whether the handle is passed on as it is.
    pub fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }

    /// The Rust type of the objects of a kind of handle.
    pub fn object(&self) -> Option<&'static str> {
        HANDLES.iter().find(|row| row.0 == self.name).map(|row| row.2)
    }

    /// The name of the null handle of a kind of handle, without `MPI_`.
    pub(crate) fn null(&self) -> Option<String> {
        let object = match self.object()? {
            "Type" => "DATATYPE".to_owned(),
            object => object.to_uppercase(),
        };
        Some(format!("{object}_NULL"))
    }

    /// Whether a parameter of this kind gives its function a version with large counts.
    pub fn has_large(&self) -> bool {
        self.name.starts_with("cfn:")
            || NUMBERS.iter().any(|(name, c, _)| *name == self.name && c[0] != c[1])
    }

    /// Whether it is a number that the Rust code takes as an i64.
    pub fn is_wide(&self) -> bool {
        matches!(
            self.name.as_str(),
            "count" | "number" | "disp" | "bytes" | "aint" | "large" | "offset"
        )
    }

    /// The type of a value in C.
    pub(crate) fn c(&self, width: Width) -> String {
        if let Some(row) = NUMBERS.iter().find(|row| row.0 == self.name) {
            return row.1[width as usize].to_owned();
        }
        if let Some(row) = HANDLES.iter().find(|row| row.0 == self.name) {
            return row.1.to_owned();
        }
        match self.name.split_once(':') {
            Some(("fn", function)) => format!("MPI_{function} *"),
            Some(("xfn", function)) => format!("MPIX_{function} *"),
            Some(("cfn", function)) => match width {
                Width::Int => format!("MPI_{function} *"),
                Width::Large => format!("MPI_{function}_c *"),
            },
            _ => match self.name.as_str() {
                "buf" | "ptr" => "void *".to_owned(),
                "text" => "char *".to_owned(),
                "status" => "MPI_Status *".to_owned(),
                "argc" => "int *".to_owned(),
                "argv" => "char **".to_owned(),
                "pargv" | "argvs" => "char ***".to_owned(),
                tool => format!("MPI_{tool}"),
            },
        }
    }

    /// The type of a value in the Rust code of an export.
    pub(crate) fn rust(&self, width: Width) -> String {
        if let Some(row) = NUMBERS.iter().find(|row| row.0 == self.name) {
            return row.2[width as usize].to_owned();
        }
        if self.object().is_some() {
            return "Handle".to_owned();
        }
        match self.name.as_str() {
            "buf" | "ptr" => "*mut c_void",
            "text" => "*mut c_char",
            "status" => "*mut Status",
            "argc" => "*mut c_int",
            "argv" => "*mut *mut c_char",
            "pargv" | "argvs" => "*mut *mut *mut c_char",
            // Functions and the objects of tools.
            _ => "*mut c_void",
        }
        .to_owned()
    }

    /// Whether its values are addresses, so that an out parameter of it is one too.
    pub(crate) fn is_address(&self) -> bool {
        matches!(
            self.name.as_str(),
            "buf" | "ptr" | "text" | "status" | "argc" | "argv" | "pargv" | "argvs"
        ) || self.name.contains("fn:")
    }
}
