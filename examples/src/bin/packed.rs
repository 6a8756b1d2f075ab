//! See `longshore_examples::packed`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("packed")
}
