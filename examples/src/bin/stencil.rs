//! See `longshore_examples::stencil`.

fn main() -> std::process::ExitCode {
    longshore_examples::main("stencil")
}
