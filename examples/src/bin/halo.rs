//! See `longshore_examples::halo`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("halo")
}
