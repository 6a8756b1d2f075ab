//! See `longshore_examples::table`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("table")
}
