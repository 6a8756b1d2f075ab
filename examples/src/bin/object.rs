//! See `longshore_examples::object`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("object")
}
