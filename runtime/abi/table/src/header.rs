//! `mpi.h`.

use std::fmt::Write;

use crate::constant::{Constant, constants};
use crate::function::{Function, Parameter, Way, functions};
use crate::kind::Width;

/// The types, before all else.
const TYPES: &str = r"
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

/* The result of a receive. The counts are asked for by MPI_Get_count. */
typedef struct {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int MPI_internal[5];
} MPI_Status;

/* Handles. Each kind is a type of its own, so a compiler finds handles of the wrong kind. */
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Session *MPI_Session;
typedef struct MPI_ABI_Win *MPI_Win;
typedef struct MPI_T_cvar_handle_t *MPI_T_cvar_handle;
typedef struct MPI_T_enum_t *MPI_T_enum;
typedef struct MPI_T_event_instance_t *MPI_T_event_instance;
typedef struct MPI_T_event_registration_t *MPI_T_event_registration;
typedef struct MPI_T_pvar_handle_t *MPI_T_pvar_handle;
typedef struct MPI_T_pvar_session_t *MPI_T_pvar_session;

typedef enum MPI_T_cb_safety {
  MPI_T_CB_REQUIRE_NONE = 0,
  MPI_T_CB_REQUIRE_MPI_RESTRICTED = 3,
  MPI_T_CB_REQUIRE_THREAD_SAFE = 15,
  MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE = 63
} MPI_T_cb_safety;

typedef enum MPI_T_source_order {
  MPI_T_SOURCE_ORDERED = 1,
  MPI_T_SOURCE_UNORDERED = 2
} MPI_T_source_order;

/* Functions of a program that MPI calls. */
";

/// The types of functions that programs pass: the result, the name, and the parameters.
const CALLBACKS: &[(&str, &str, &str)] = &[
    ("void", "User_function", "void *in, void *inout, int *len, MPI_Datatype *datatype"),
    ("void", "User_function_c", "void *in, void *inout, MPI_Count *len, MPI_Datatype *datatype"),
    ("void", "Comm_errhandler_function", "MPI_Comm *comm, int *code, ..."),
    ("void", "File_errhandler_function", "MPI_File *file, int *code, ..."),
    ("void", "Session_errhandler_function", "MPI_Session *session, int *code, ..."),
    ("void", "Win_errhandler_function", "MPI_Win *win, int *code, ..."),
    ("int", "Copy_function", "MPI_Comm, int keyval, void *extra, void *in, void *out, int *flag"),
    ("int", "Delete_function", "MPI_Comm, int keyval, void *value, void *extra"),
    (
        "int",
        "Comm_copy_attr_function",
        "MPI_Comm, int keyval, void *extra, void *in, void *out, int *flag",
    ),
    ("int", "Comm_delete_attr_function", "MPI_Comm, int keyval, void *value, void *extra"),
    (
        "int",
        "Type_copy_attr_function",
        "MPI_Datatype, int keyval, void *extra, void *in, void *out, int *flag",
    ),
    ("int", "Type_delete_attr_function", "MPI_Datatype, int keyval, void *value, void *extra"),
    (
        "int",
        "Win_copy_attr_function",
        "MPI_Win, int keyval, void *extra, void *in, void *out, int *flag",
    ),
    ("int", "Win_delete_attr_function", "MPI_Win, int keyval, void *value, void *extra"),
    ("int", "Grequest_query_function", "void *extra, MPI_Status *status"),
    ("int", "Grequest_free_function", "void *extra"),
    ("int", "Grequest_cancel_function", "void *extra, int complete"),
    ("int", "Datarep_extent_function", "MPI_Datatype, MPI_Aint *extent, void *extra"),
    (
        "int",
        "Datarep_conversion_function",
        "void *user, MPI_Datatype, int count, void *file, MPI_Offset position, void *extra",
    ),
    (
        "int",
        "Datarep_conversion_function_c",
        "void *user, MPI_Datatype, MPI_Count count, void *file, MPI_Offset position, void *extra",
    ),
    (
        "void",
        "T_event_cb_function",
        "MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, void *user",
    ),
    ("void", "T_event_free_cb_function", "MPI_T_event_registration, MPI_T_cb_safety, void *user"),
    (
        "void",
        "T_event_dropped_cb_function",
        "MPI_Count, MPI_T_event_registration, int source, MPI_T_cb_safety, void *user",
    ),
];

/// Other names of types of functions.
const ALIASES: [&str; 4] = ["Comm", "File", "Session", "Win"];

/// The text of `mpi.h`.
///
/// ```
/// let header = longshore_abi_table::header();
/// assert!(header.contains("int MPI_Comm_rank(MPI_Comm comm, int *rank);"));
/// ```
pub fn header() -> String {
    let mut out = String::from(
        "/* mpi.h of Longshore: MPI-5.0's standard ABI. Made from functions.table and\n   \
         constants.table, so changes belong there. */\n\
         #ifndef LONGSHORE_MPI_H\n#define LONGSHORE_MPI_H\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n",
    );
    out.push_str(TYPES);
    for (result, name, parameters) in CALLBACKS {
        put(&mut out, format_args!("typedef {result} (MPI_{name})({parameters});\n"));
    }
    for object in ALIASES {
        let (new, old) =
            (format!("{object}_errhandler_fn"), format!("{object}_errhandler_function"));
        put(&mut out, format_args!("typedef MPI_{old} MPI_{new};\n"));
    }
    for section in constants() {
        if section.constants().iter().all(Constant::is_own) {
            continue;
        }
        put(&mut out, format_args!("\n/* {} */\n", section.title()));
        let (ints, others): (Vec<_>, Vec<_>) =
            section.constants().iter().partition(|constant| !constant.is_macro());
        for constant in others {
            let (name, value) = (constant.name(), constant.expression());
            put(&mut out, format_args!("#define MPI_{name} {value}\n"));
        }
        let ints: Vec<String> = ints
            .into_iter()
            .map(|constant| format!("  MPI_{} = {}", constant.name(), constant.expression()))
            .collect();
        if !ints.is_empty() {
            put(&mut out, format_args!("enum {{\n{}\n}};\n", ints.join(",\n")));
        }
    }
    out.push_str(
        "\n/* Fortran's INTEGER, which the standard ABI doesn't have: with this macro, and by\n   \
         mpix_fint.h, which has the conversions of handles, too. */\n\
         #ifdef LONGSHORE_FINT\ntypedef LONGSHORE_FINT MPI_Fint;\n#endif\n",
    );
    out.push_str(&declarations("", false));
    out.push_str("\n/* The same functions for tools, which may define those above. */\n");
    out.push_str(&declarations("P", false));
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// The text of `mpix.h`, which declares Longshore's own functions.
///
/// ```
/// let header = longshore_abi_table::own_header();
/// assert!(header.contains("int MPIX_Type_is_portable(MPI_Datatype datatype, int *flag);"));
/// ```
pub fn own_header() -> String {
    let mut out = String::from(
        "/* mpix.h: functions that only Longshore has, for jobs of unlike machines. Made from\n   \
         functions.table and constants.table, so changes belong there. */\n\
         #ifndef LONGSHORE_MPIX_H\n#define LONGSHORE_MPIX_H\n\n#include <mpi.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n\n\
         /* A function of a program that is called for each datatype that is freed. */\n\
         typedef void (MPIX_Type_handler_function)(MPI_Datatype);\n",
    );
    for section in constants() {
        let own: Vec<String> = section
            .constants()
            .iter()
            .filter(|constant| constant.is_own())
            .map(|constant| format!("  MPIX_{} = {}", constant.name(), constant.expression()))
            .collect();
        if !own.is_empty() {
            let title = section.title();
            put(&mut out, format_args!("\n/* {title} */\nenum {{\n{}\n}};\n", own.join(",\n")));
        }
    }
    out.push_str(&declarations("", true));
    out.push_str(&declarations("P", true));
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// The text of `mpix_fint.h`: MPI_Fint and the conversions of handles to and from it, which MPI's
/// standard ABI leaves to a library for Fortran.
///
/// ```
/// let header = longshore_abi_table::fint_header();
/// assert!(header.contains("MPI_Fint MPI_Comm_c2f(MPI_Comm comm)"));
/// ```
pub fn fint_header() -> String {
    let mut out = String::from(
        "/* mpix_fint.h: MPI_Fint, and the conversions between handles and it (MPI-5.0 section\n   \
         19.3.4), which MPI's standard ABI doesn't have. Made from functions.table, so changes\n   \
         belong there. */\n\
         #ifndef LONGSHORE_MPIX_FINT_H\n#define LONGSHORE_MPIX_FINT_H\n\n#include <mpi.h>\n\n\
         /* With this macro mpi.h has the type itself. */\n\
         #ifndef LONGSHORE_FINT\n#define LONGSHORE_FINT int\ntypedef LONGSHORE_FINT MPI_Fint;\n\
         #endif\n\n",
    );
    for function in functions() {
        let Some(object) = function.name().strip_suffix("_toint") else { continue };
        let handle = if object == "Type" { "Datatype" } else { object };
        let name = handle.to_lowercase();
        put(
            &mut out,
            format_args!(
                "static inline MPI_Fint MPI_{object}_c2f(MPI_{handle} {name}) {{ return \
                 (MPI_Fint)MPI_{object}_toint({name}); }}\n\
                 static inline MPI_{handle} MPI_{object}_f2c(MPI_Fint {name}) {{ return \
                 MPI_{object}_fromint((int){name}); }}\n"
            ),
        );
    }
    out.push_str("\n#endif\n");
    out
}

/// The declarations of the functions of MPI, or of Longshore's own: with their names, or with `P`
/// before them.
fn declarations(before: &str, own: bool) -> String {
    let mut out = String::new();
    let mut module = "";
    for function in functions().iter().filter(|function| function.is_own() == own) {
        if function.module() != module {
            module = function.module();
            put(&mut out, format_args!("\n/* {module} */\n"));
        }
        for width in function.widths() {
            out.push_str(&declaration(function, *width, before));
        }
    }
    out
}

fn declaration(function: &Function, width: Width, before: &str) -> String {
    let result = function.result().map_or("int".to_owned(), |kind| kind.c(width));
    let name = function.c_name(width);
    let mut parameters: Vec<String> =
        function.parameters_of(width).map(|parameter| parameter.c(width)).collect();
    if function.name() == "Pcontrol" {
        parameters.push("...".to_owned());
    }
    let parameters = match parameters.is_empty() {
        true => "void".to_owned(),
        false => parameters.join(", "),
    };
    format!("{result} {before}{name}({parameters});\n")
}

impl Parameter {
    /// The parameter as C declares it.
    fn c(&self, width: Width) -> String {
        let (c, name) = (self.kind().c(width), self.name());
        let way = self.way();
        let kind = self.kind();
        if kind.is_address() && !kind.is_array() {
            let is_read = matches!(kind.name(), "buf" | "text" | "status");
            let lead = if way == Way::In && is_read { "const " } else { "" };
            return format!("{lead}{c}{name}");
        }
        if kind.name() == "triples" {
            return format!("int {name}[][3]");
        }
        match (kind.is_array(), way) {
            // Addresses that are no arrays, such as MPI_UNWEIGHTED, may be given in their place.
            (true, Way::In) if name.ends_with("weights") => format!("const {c} *{name}"),
            (true, _) if name.ends_with("weights") => format!("{c} *{name}"),
            (true, Way::In) => format!("const {c} {name}[]"),
            (true, _) => format!("{c} {name}[]"),
            (false, Way::In) => format!("{c} {name}"),
            (false, _) => format!("{c} *{name}"),
        }
    }
}

/// Writes to text, which can't fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
