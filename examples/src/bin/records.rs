//! See `longshore_examples::records`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("records")
}
