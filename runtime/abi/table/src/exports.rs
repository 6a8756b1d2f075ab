//! The Rust functions that libmpi_abi exports. Each checks and converts its arguments by their
//! kinds, calls the function of the same name in the module of its table, and writes the results.

use std::fmt::Write;

use crate::constant::constants;
use crate::function::{Function, Parameter, Way, functions};
use crate::group::Group;
use crate::kind::Width;

/// The Rust code of all exports and constants. It is compiled in a module of longshore-abi, whose
/// `arg` and `call` have what it uses.
///
/// ```
/// assert!(longshore_abi_table::exports().contains("extern \"C\" fn PMPI_Get_address("));
/// ```
pub fn exports() -> String {
    let mut out = String::new();
    for function in functions() {
        for width in function.widths() {
            export(&mut out, function, *width);
        }
    }
    out
}

/// The Rust constants of all ints and handles.
pub fn numbers() -> String {
    let mut out = String::new();
    for constant in constants().iter().flat_map(|section| section.constants()) {
        let (name, Some(value)) = (constant.name(), constant.number()) else { continue };
        let name = match name.starts_with(|first: char| first.is_ascii_digit()) {
            true => format!("N{name}"),
            false => name.to_owned(),
        };
        match constant.object() {
            Some(_) => put(
                &mut out,
                format_args!("pub const {name}: Handle = Handle::predefined({value});\n"),
            ),
            None if constant.is_int() => {
                put(&mut out, format_args!("pub const {name}: i32 = {value};\n"));
            }
            None => {}
        }
    }
    out
}

fn export(out: &mut String, function: &Function, width: Width) {
    let parameters: Vec<&Parameter> = function.parameters_of(width).collect();
    let declared: Vec<String> =
        parameters.iter().map(|p| format!("{}: {}", p.name(), p.rust(width))).collect();
    let declared = declared.join(", ");
    let names: Vec<&str> = parameters.iter().map(|p| p.name()).collect();
    let names = names.join(", ");
    let result = function.result().map_or("c_int".to_owned(), |kind| kind.rust(width));
    let c_name = function.c_name(width);
    let inner = c_name.to_lowercase();
    let lower = function.name().to_lowercase();
    let arguments = quick_arguments(function);
    // Each function leaves to the next one what it can't do.
    let mut last = format!("unsafe fn {inner}");
    if function.has("quick") {
        let mut head = format!("#[inline(always)]\nunsafe fn {inner}");
        if function.has("attempt") {
            put(
                out,
                format_args!(
                    "{head}({declared}) -> {result} {{\n    \
                     match unsafe {{ crate::call::attempt::{lower}({arguments}) }} {{\n        \
                     Some(()) => 0,\n        None => unsafe {{ {inner}_rest({names}) }},\n    }}\n}}\n"
                ),
            );
            // It finds its arguments where the export has them, so the export only jumps to it.
            head = format!("#[cold]\n#[inline(never)]\nunsafe extern \"C\" fn {inner}_rest");
        }
        put(
            out,
            format_args!(
                "{head}({declared}) -> {result} {{\n    \
                 match unsafe {{ crate::call::quick::{lower}({arguments}) }} {{\n        \
                 Some(code) => code,\n        None => unsafe {{ {inner}_long({names}) }},\n    }}\n}}\n"
            ),
        );
        last = format!("#[cold]\nunsafe fn {inner}_long");
    }
    put(out, format_args!("{last}({declared}) -> {result} {{\n"));
    body(out, function, width);
    put(out, format_args!("}}\n"));
    for prefix in ["", "P"] {
        put(
            out,
            format_args!(
                "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{c_name}({declared}) \
                 -> {result} {{ unsafe {{ {inner}({names}) }} }}\n"
            ),
        );
    }
}

fn body(out: &mut String, function: &Function, width: Width) {
    let place = format!("crate::{}::{}", function.path(), function.name().to_lowercase());
    if function.result().is_some() {
        let arguments = quick_arguments(function);
        put(out, format_args!("    unsafe {{ {place}({arguments}) }}\n"));
        return;
    }
    let name = function.c_name(width);
    let raiser = raiser(function);
    let when = if function.has("any") { "Always" } else { "Active" };
    put(out, format_args!("    enter(\"{name}\", When::{when}, {raiser}, || unsafe {{\n"));
    if function.has("none") {
        let looked_at = function.parameters().iter().filter(|p| p.is_looked_at());
        let passed: Vec<String> = looked_at
            .map(|parameter| {
                if let Some(line) = parameter.converted() {
                    put(out, format_args!("        {line}\n"));
                }
                parameter.passed(width).unwrap_or_default()
            })
            .collect();
        put(out, format_args!("        {place}({})\n    }})\n", passed.join(", ")));
        return;
    }
    let refused = function.has("joint").then(|| refused(function));
    if let Some((object, _)) = &refused {
        // The conversions hide it.
        put(out, format_args!("        let joint = {object};\n"));
    }
    for parameter in function.parameters_of(width) {
        if let Some(mut line) = parameter.converted() {
            if let Some((_, refused)) = &refused {
                line = line.replace("?;", &format!(".map_err(|fault| {refused})?;"));
            }
            put(out, format_args!("        {line}\n"));
        }
    }
    let mut arguments = Vec::new();
    if function.has("width") {
        arguments.push(format!("arg::Width::{width:?}"));
    }
    arguments.extend(function.groups().iter().filter_map(|group| group.passed(width)));
    let results: Vec<&Parameter> =
        function.parameters().iter().filter(|parameter| parameter.is_returned()).collect();
    let bound: Vec<String> = (0..results.len()).map(|at| format!("r{at}")).collect();
    let bound = match bound.as_slice() {
        [] => "()".to_owned(),
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let call = format!("{place}({})", arguments.join(", "));
    put(out, format_args!("        let {bound} = {call}{}?;\n", or_null(&results)));
    for (at, parameter) in results.iter().enumerate() {
        if parameter.is_large_only() && width == Width::Int {
            put(out, format_args!("        let _ = r{at};\n"));
            continue;
        }
        put(out, format_args!("        arg::put({}, r{at});\n", parameter.name()));
    }
    for parameter in function.parameters_of(width).filter(|parameter| parameter.is_updated()) {
        let name = parameter.name();
        put(out, format_args!("        arg::put({name}_at, {name});\n"));
    }
    put(out, format_args!("        Ok(())\n    }})\n"));
}

/// The handle of the ranks of a collective call, and the expression by which a rank takes part in
/// the call with a fault, which it returns.
fn refused(function: &Function) -> (&str, String) {
    let ranks = |p: &&Parameter| matches!(p.kind().object(), Some("Comm" | "File"));
    let mut come_in = function.parameters().iter().filter(|p| p.way() == Way::In);
    let of = come_in.find(ranks).unwrap_or_else(|| panic!("{}: joint of what", function.name()));
    let name = function.name().to_lowercase();
    let module = of.kind().object().map_or_else(String::new, str::to_lowercase);
    let module = if module == "comm" { "communicator" } else { &module };
    (of.name(), format!("crate::{module}::refused_by(joint, \"{name}\", fault)"))
}

/// The arguments of a function that checks its arguments itself.
fn quick_arguments(function: &Function) -> String {
    let arguments: Vec<String> = function.groups().iter().map(Group::quick).collect();
    arguments.join(", ")
}

/// What a call that fails does: the handles that it would have returned become null, so that a
/// program that goes on has no undefined ones.
fn or_null(results: &[&Parameter]) -> String {
    let null = |parameter: &&Parameter| {
        let null = parameter.kind().null()?;
        Some(format!("arg::put({}, crate::edge::constants::{null});", parameter.name()))
    };
    let nulls: Vec<String> = results.iter().filter_map(null).collect();
    match nulls.is_empty() {
        true => String::new(),
        false => format!(".inspect_err(|_| {{ {} }})", nulls.join(" ")),
    }
}

/// The object whose error handler gets the function's errors.
fn raiser(function: &Function) -> String {
    if function.name().starts_with("T_") {
        return "Raiser::Nobody".to_owned();
    }
    let is_from_group =
        function.name().ends_with("_from_group") || function.name().ends_with("_from_groups");
    if is_from_group || function.name() == "Session_init" {
        // The handler of the object to come also gets the error of the call (MPI-5.0 sections 7.4.2
        // and 11.3.1).
        return "Raiser::Handler(errhandler)".to_owned();
    }
    if function.path().split("::").next() == Some("file")
        && !function.parameters().iter().any(|p| p.name() == "fh" && p.way() != Way::Out)
    {
        // MPI-5.0 section 14.7.
        return "Raiser::File(crate::edge::constants::FILE_NULL)".to_owned();
    }
    for (object, raiser) in
        [("Comm", "Comm"), ("Win", "Win"), ("File", "File"), ("Session", "Session")]
    {
        let is_it = |p: &&Parameter| p.kind().object() == Some(object) && !p.kind().is_array();
        match function.parameters().iter().find(is_it) {
            Some(parameter) if parameter.way() == Way::In => {
                return format!("Raiser::{raiser}({})", parameter.name());
            }
            Some(parameter) if parameter.way() == Way::Both => {
                return format!("unsafe {{ Raiser::{raiser}(arg::peek({})) }}", parameter.name());
            }
            _ => {}
        }
    }
    "Raiser::Own".to_owned()
}

impl Group<'_> {
    /// The argument that is passed on.
    fn passed(&self, width: Width) -> Option<String> {
        match self {
            Group::One(parameter) => parameter.passed(width),
            Group::Several(name, fields) => {
                let fields = fields.iter().filter_map(|(field, parameter)| {
                    Some(format!("{field}: {}", parameter.passed(width)?))
                });
                Some(value(name, fields))
            }
        }
    }

    /// The argument of a function that checks its arguments itself.
    fn quick(&self) -> String {
        match self {
            Group::One(parameter) => parameter.quick(),
            Group::Several(name, fields) => {
                let fields = fields.iter().map(|(field, parameter)| {
                    let argument = parameter.quick();
                    match parameter.kind().name() {
                        "buf" => format!("{field}: arg::Buffer::new({argument})"),
                        _ => format!("{field}: {argument}"),
                    }
                });
                value(name, fields)
            }
        }
    }
}

/// The expression of a struct's value.
fn value(name: &str, fields: impl Iterator<Item = String>) -> String {
    let fields: Vec<String> = fields.collect();
    format!("crate::edge::elements::{name} {{ {} }}", fields.join(", "))
}

impl Parameter {
    /// The type of the parameter in Rust, by the names of longshore-abi.
    pub fn rust(&self, width: Width) -> String {
        let rust = self.kind().rust(width);
        let kind = self.kind();
        if kind.is_address() && !kind.is_array() {
            return rust;
        }
        match (kind.is_array(), self.way()) {
            (true, Way::In) => format!("*const {rust}"),
            (false, Way::In) => rust,
            _ => format!("*mut {rust}"),
        }
    }

    /// Whether its handle is passed on unchecked, since null is a legal value of it in most calls.
    fn is_lenient(&self) -> bool {
        self.kind().is_unchecked() || matches!(self.kind().name(), "request" | "message")
    }

    fn is_returned(&self) -> bool {
        self.way() == Way::Out && !self.kind().is_array() && !self.kind().is_address()
    }

    fn is_updated(&self) -> bool {
        self.way() == Way::Both && !self.kind().is_array() && self.kind().is_wide()
    }

    /// Whether a function of which no object has a value looks at it.
    fn is_looked_at(&self) -> bool {
        let is_handle = self.kind().name().starts_with("T_") && !self.kind().is_wide();
        let is_number = matches!(self.kind().name(), "int" | "text");
        self.way() == Way::In && !self.kind().is_array() && (is_handle || is_number)
    }

    /// The line that checks and converts it.
    fn converted(&self) -> Option<String> {
        let (name, kind) = (self.name(), self.kind());
        if self.is_returned() {
            return Some(format!("arg::room({name}, \"{name}\")?;"));
        }
        if kind.is_array() {
            let wrapper = match self.way() {
                Way::In if kind.is_wide() => "Numbers",
                Way::In => "List",
                _ => "Room",
            };
            return Some(format!("let {name} = arg::{wrapper}::new({name});"));
        }
        if kind.is_address() {
            return Some(self.converted_address());
        }
        match (self.way(), kind.object()) {
            (Way::Both, _) if kind.is_wide() => Some(format!(
                "let {name}_at = {name}; let mut {name} = arg::read({name}, \"{name}\")?;"
            )),
            (Way::Both, Some(_)) if kind.may_be_null() => {
                Some(format!("let {name} = arg::Room::new({name});"))
            }
            (Way::Both, _) => Some(format!("let {name} = arg::borrow({name}, \"{name}\")?;")),
            (_, Some(_)) if self.is_lenient() => None,
            (_, Some(object)) => {
                let find = if kind.may_be_null() { "find_optional" } else { "find" };
                Some(format!("let {name} = {find}::<{object}>({name})?;"))
            }
            (_, None) => self.converted_number(),
        }
    }

    fn converted_address(&self) -> String {
        let name = self.name();
        match (self.kind().name(), self.way()) {
            ("buf", _) => format!("let {name} = arg::Buffer::new({name});"),
            ("text", Way::In) if self.name() == "filename" => {
                format!("let {name} = arg::path({name}, \"{name}\")?;")
            }
            ("text", Way::In) if !self.kind().may_be_null() => {
                format!("let {name} = arg::text({name}, \"{name}\")?;")
            }
            ("text", way) if self.kind().may_be_null() && way != Way::In => {
                format!("let {name} = arg::Chars::new({name});")
            }
            ("text", way) if way != Way::In => {
                format!("arg::room({name}, \"{name}\")?; let {name} = arg::Chars::new({name});")
            }
            ("status", Way::Out) => format!("let {name} = arg::Room::new({name});"),
            ("status", _) => format!("let {name} = arg::borrow({name}, \"{name}\")?;"),
            _ => format!("let {name} = arg::Address::new({name}.cast());"),
        }
    }

    fn converted_number(&self) -> Option<String> {
        let (name, kind) = (self.name(), self.kind());
        match kind.name() {
            "count" | "length" => {
                Some(format!("let {name} = arg::{}({name}, \"{name}\")?;", kind.name()))
            }
            "flag" => Some(format!("let {name} = {name} != 0;")),
            _ if kind.is_wide() => Some(format!("let {name} = arg::number({name});")),
            _ => None,
        }
    }

    /// The argument that is passed on.
    fn passed(&self, width: Width) -> Option<String> {
        if self.is_returned() {
            return None;
        }
        let (name, kind) = (self.name(), self.kind());
        if self.is_large_only() && width == Width::Int {
            let absent = match kind.is_array() {
                true => "arg::Room::new(std::ptr::null_mut())",
                false => "0",
            };
            return Some(absent.to_owned());
        }
        let is_object = kind.object().is_some() && !self.is_lenient() && !kind.is_array();
        Some(match self.way() {
            Way::In if is_object && kind.may_be_null() => format!("{name}.as_deref()"),
            Way::In if is_object => format!("&{name}"),
            Way::In if kind.name() == "text" && !kind.may_be_null() => format!("&{name}"),
            Way::Both if self.is_updated() => format!("&mut {name}"),
            _ => name.to_owned(),
        })
    }

    /// The argument of a function that checks its arguments itself.
    fn quick(&self) -> String {
        match self.kind().is_wide() && self.way() == Way::In && !self.kind().is_array() {
            true => format!("arg::number({})", self.name()),
            false => self.name().to_owned(),
        }
    }
}

/// Writes to text, which can't fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
