//! See `longshore_examples::hashtable`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("hashtable")
}
