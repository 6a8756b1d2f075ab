//! See `longshore_examples::stealing`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("stealing")
}
