//! See `longshore_examples::foreign`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("foreign")
}
