//! Writes the table of the calls that the target `calls` makes, from the table of functions.

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, io};

use longshore_abi_table::{Function, Parameter, Way, Width, functions};

/// Functions that begin or end the job, and those that wait for what another rank or a later call
/// has to do: alone, a rank would wait for ever.
const LEFT_OUT: &[&str] = &[
    "Abort",
    "Finalize",
    "Init",
    "Init_thread",
    "Recv",
    "Ssend",
    "Probe",
    "Mprobe",
    "Sendrecv",
    "Sendrecv_replace",
    "Wait",
    "Waitall",
    "Waitany",
    "Waitsome",
    "Win_complete",
    "Win_post",
    "Win_start",
    "Win_wait",
    "Comm_disconnect",
    "Buffer_detach",
    "Buffer_flush",
    "Comm_detach_buffer",
    "Comm_flush_buffer",
    "Session_detach_buffer",
    "Session_flush_buffer",
    "Intercomm_create",
    "Intercomm_create_from_groups",
    "Comm_accept",
    "Comm_connect",
    "Comm_join",
];

/// Files and other processes are outside of the job, and objects of tools are no handles. The rest
/// are Longshore's own, which don't change the numbers of MPI's: an input names a call by its
/// number.
const MODULES_LEFT_OUT: &[&str] =
    &["file", "access", "datarep", "process", "tool", "extension", "described"];

fn is_called(function: &Function) -> bool {
    !LEFT_OUT.contains(&function.name()) && !MODULES_LEFT_OUT.contains(&function.module())
}

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let (mut declared, mut calls) = (String::new(), String::new());
    for function in functions().iter().filter(|function| is_called(function)) {
        for width in function.widths() {
            declare(&mut declared, function, *width);
            call(&mut calls, function, *width);
        }
    }
    let code = format!(
        "unsafe extern \"C\" {{\n{declared}}}\n\npub static CALLS: &[Call] = &[\n{calls}];\n"
    );
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or(io::ErrorKind::NotFound)?;
    fs::write(out.join("calls.rs"), code)
}

fn declare(out: &mut String, function: &Function, width: Width) {
    let parameters = function.parameters_of(width).enumerate();
    let parameters: Vec<String> =
        parameters.map(|(at, parameter)| format!("a{at}: {}", parameter.rust(width))).collect();
    let result = match function.result().map(|kind| kind.name()) {
        Some("double") => "f64",
        Some("aint") => "Aint",
        Some("int") | None => "c_int",
        Some(_) => "Handle",
    };
    let (name, parameters) = (function.c_name(width), parameters.join(", "));
    writeln!(out, "    fn {name}({parameters}) -> {result};").expect("text");
}

fn call(out: &mut String, function: &Function, width: Width) {
    let parameters: Vec<&Parameter> = function.parameters_of(width).collect();
    let specs: Vec<String> = parameters.iter().map(|parameter| spec(parameter, width)).collect();
    let passed = parameters.iter().enumerate();
    let passed: Vec<String> = passed
        .map(|(at, parameter)| match parameter.rust(width).as_str() {
            rust @ ("c_int" | "Aint" | "Count") => format!("a[{at}] as {rust}"),
            rust => format!("a[{at}] as usize as {rust}"),
        })
        .collect();
    let (name, specs, passed) = (function.c_name(width), specs.join(", "), passed.join(", "));
    // Only some functions return a code.
    let result = match function.result() {
        None => format!("{name}({passed})"),
        Some(_) => format!("{{ {name}({passed}); 0 }}"),
    };
    writeln!(
        out,
        "    Call {{ name: \"{name}\", parameters: &[{specs}], function: |a| unsafe {{ let _ = a; \
         {result} }} }},"
    )
    .expect("text");
}

/// What the target has to know of a parameter.
fn spec(parameter: &Parameter, width: Width) -> String {
    let kind = parameter.kind();
    let way = match parameter.way() {
        Way::In => "In",
        Way::Out => "Out",
        Way::Both => "Both",
    };
    let element = match parameter.rust(width).contains("c_int") {
        true => 4,
        false => 8,
    };
    let is_handle = kind.object().is_some();
    let (name, kind, is_array) = (parameter.name(), kind.name(), kind.is_array());
    format!(
        "Parameter {{ name: \"{name}\", way: Way::{way}, kind: \"{kind}\", is_array: {is_array}, \
         is_handle: {is_handle}, element: {element} }}"
    )
}
