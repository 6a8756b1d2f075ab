//! See `longshore_examples::histogram`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("histogram")
}
