//! See `longshore_examples::overflow`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("overflow")
}
